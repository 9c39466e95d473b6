// Package values moves large values of tasks out of the store, and loads them for the carriers of
// jobs. Values has no state of its own.
package values

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Payloads stores large values outside the store and leaves references in their place. Carriers of
// jobs get the values themselves. Methods other than Large, Refers, Refer and DropMade may take
// long, so actors do not call them. If a decision opens a stored value, only its own actor waits.
type Payloads interface {
	// Large reports whether a value belongs outside the store.
	Large(v json.RawMessage) bool
	// Keep stores a value of a task and returns its reference. KeepFields does the same for each
	// large field of the task's params.
	Keep(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error)
	KeepFields(ctx context.Context, task string, params json.RawMessage) (json.RawMessage, error)
	// Refer returns a reference for a value that a decision has created, and the objects to store.
	// WriteMade must write these objects before the reference is stored. DropMade releases their
	// memory afterwards, or if the reference will not be stored.
	Refer(task string, v json.RawMessage) (json.RawMessage, []persistence.Object)
	WriteMade(ctx context.Context, made []persistence.Object) error
	DropMade(made []persistence.Object)
	// Refers reports whether a value contains references. WholeFor returns the value with the
	// referenced contents.
	Refers(v json.RawMessage) bool
	WholeFor(ctx context.Context, v json.RawMessage) (json.RawMessage, error)
	// Patiently returns a context for jobs. Calls with this context retry an unreachable place for
	// minutes.
	Patiently(ctx context.Context) context.Context
	// Aside sets the function that lets other actors continue while one actor waits for a value.
	Aside(aside func(do func()))
	// Foreign returns the objects of other tasks that a value refers to.
	Foreign(task string, v json.RawMessage) []persistence.Object
}

// Values moves large values of tasks out of the store and back.
type Values struct{ cfg Config }

// Config configures Values.
type Config struct {
	Payloads Payloads // nil if all values are in the store
	Limits   flow.Limits
	Store    Store
	Now      func() int64 // the store's time in Unix milliseconds
	Work     *background.Work
}

// Store is the part of the store that Values needs.
type Store interface {
	Hold(ctx context.Context, task, origin string, at int64, objects []persistence.Object) error
}

// New creates the values of a member.
func New(cfg Config) *Values { return &Values{cfg: cfg} }

// Offload stores a large value of a task outside the store and returns its reference. It keeps a
// value beyond the limits, because that value will be refused.
func (x *Values) Offload(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error) {
	if p := x.cfg.Payloads; p != nil && p.Large(v) && x.cfg.Limits.Takes(v) {
		return p.Keep(ctx, task, v)
	}
	return v, nil
}

// OffloadOutput stores a large output of a report outside the store. If that fails, the report
// becomes an error.
func (x *Values) OffloadOutput(task string, r flow.Report) flow.Report {
	if p := x.cfg.Payloads; p != nil && r.Error == "" {
		var err error
		if r.Output, err = x.Offload(p.Patiently(x.cfg.Work.Context()), task, r.Output); err != nil {
			r.Output, r.Deferred, r.Error = nil, nil, err.Error()
		}
	}
	return r
}

// OffloadCommand stores the large values of a command outside the store.
func (x *Values) OffloadCommand(ctx context.Context, task string, cmd flow.Command) (_ flow.Command, err error) {
	if x.cfg.Payloads == nil {
		return cmd, nil
	}
	switch c := cmd.(type) {
	case flow.Report:
		if c.Error == "" {
			c.Output, err = x.Offload(ctx, task, c.Output)
		}
		cmd = c
	case flow.Signal:
		c.Value, err = x.Offload(ctx, task, c.Value)
		cmd = c
	case flow.Append:
		c.Items = slices.Clone(c.Items)
		for i := range c.Items {
			if err == nil {
				c.Items[i], err = x.Offload(ctx, task, c.Items[i])
			}
		}
		cmd = c
	case flow.RecordSteps:
		c.Steps = slices.Clone(c.Steps)
		for i := range c.Steps {
			if err == nil {
				c.Steps[i].Output, err = x.Offload(ctx, task, c.Steps[i].Output)
			}
		}
		cmd = c
	}
	return cmd, toBusyError(err)
}

// toBusyError converts an error to flow.Busy, so that the sender retries.
func toBusyError(err error) error {
	if err == nil {
		return nil
	}
	return flow.Errorf(flow.Busy, "%v", err)
}

// OffloadStart stores the large values of a task's start outside the store. It also holds the
// objects that the start shares with another task.
func (x *Values) OffloadStart(ctx context.Context, id, origin string, start flow.Start) (flow.Start, error) {
	p := x.cfg.Payloads
	if p == nil {
		return start, nil
	}
	var err error
	if start.Params, err = p.KeepFields(ctx, id, start.Params); err != nil {
		return start, toBusyError(err)
	}
	held := p.Foreign(id, start.Params)
	if start.Fork != nil {
		shared := make(map[string]json.RawMessage, len(start.Fork.Shared))
		for key, v := range start.Fork.Shared {
			if shared[key], err = x.Offload(ctx, id, v); err != nil {
				return start, toBusyError(err)
			}
		}
		start.Fork.Shared = shared
		held = append(held, p.Foreign(id, start.Fork.Began)...)
		for i := range start.Fork.Events {
			e := &start.Fork.Events[i]
			for _, v := range []json.RawMessage{e.Params, e.Input, e.Output} {
				held = append(held, p.Foreign(id, v)...)
			}
		}
	}
	return start, x.holdObjects(ctx, id, origin, held)
}

// heldAtOnce is how many objects one statement holds.
const heldAtOnce = 10_000

func (x *Values) holdObjects(ctx context.Context, id, origin string, held []persistence.Object) error {
	for some := range slices.Chunk(held, heldAtOnce) {
		err := x.cfg.Store.Hold(ctx, id, origin, x.cfg.Now(), some)
		if errors.Is(err, persistence.ErrUnknown) {
			return flow.Errorf(flow.NotFound, "there is no task %s", origin)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HasReferences reports whether a job's values contain references, or a value is missing.
func (x *Values) HasReferences(job *flow.Job) bool {
	p := x.cfg.Payloads
	return p != nil && (job.Lacks != "" || p.Refers(job.Input) || p.Refers(job.Params) || p.Refers(job.Run) ||
		job.Function != nil && slices.ContainsFunc(job.Function.Steps, func(s flow.CodeStep) bool { return p.Refers(s.Output) }))
}

// Resolve returns a job with the contents of its references.
func (x *Values) Resolve(ctx context.Context, job flow.Job) (flow.Job, error) {
	switch {
	case job.Lacks != "":
		return job, errors.New(job.Lacks)
	case !x.HasReferences(&job):
		return job, nil
	}
	return x.replaceReferences(ctx, job)
}

// replaceReferences returns a copy of a job with the contents of its references. It is separate
// from Resolve, so that only jobs with references are copied.
func (x *Values) replaceReferences(ctx context.Context, job flow.Job) (flow.Job, error) {
	p := x.cfg.Payloads
	ctx = p.Patiently(ctx)
	referring := []*json.RawMessage{&job.Input, &job.Params, &job.Run}
	if job.Function != nil {
		function := *job.Function
		function.Steps = slices.Clone(function.Steps)
		job.Function = &function
		for i := range function.Steps {
			referring = append(referring, &function.Steps[i].Output)
		}
	}
	for _, v := range referring {
		var err error
		if *v, err = p.WholeFor(ctx, *v); err != nil {
			return job, err
		}
	}
	return job, nil
}

// ResolveStep returns a recorded step of a function with the content of its reference.
func (x *Values) ResolveStep(ctx context.Context, s flow.CodeStep) (_ flow.CodeStep, err error) {
	if p := x.cfg.Payloads; p != nil && p.Refers(s.Output) {
		s.Output, err = p.WholeFor(p.Patiently(ctx), s.Output)
	}
	return s, err
}

// UnresolvedReport returns the report for a job whose values are unavailable. The report is fatal
// if the values are gone or too large, because a retry cannot help.
func UnresolvedReport(err error) flow.Report {
	return flow.Report{Error: err.Error(), Fatal: errors.Is(err, flow.ErrNoContent) || flow.ErrorKindOf(err) == flow.Limit}
}
