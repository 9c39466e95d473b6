package actors

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Payloads stores large values outside the store and leaves references in their place. The carrier
// of a job gets the values themselves. Its methods may take a while, so actors call only Large,
// Refers, Refer and DropMade. If a decision opens a stored value, its actor waits, and no other
// one.
type Payloads interface {
	// Large reports whether a value belongs outside the store.
	Large(v json.RawMessage) bool
	// Keep stores a value of a task and returns its reference. KeepFields does so for each field of
	// the task's params.
	Keep(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error)
	KeepFields(ctx context.Context, task string, params json.RawMessage) (json.RawMessage, error)
	// Refer returns a reference for a value that a decision has made, and the objects behind it.
	// WriteMade has to write these before the reference is stored. DropMade releases them after
	// that, or if the reference will not be stored.
	Refer(task string, v json.RawMessage) (json.RawMessage, []persistence.Object)
	WriteMade(ctx context.Context, made []persistence.Object) error
	DropMade(made []persistence.Object)
	// Refers reports whether a value contains references. WholeFor returns the value with their
	// contents.
	Refers(v json.RawMessage) bool
	WholeFor(ctx context.Context, v json.RawMessage) (json.RawMessage, error)
	// Patiently returns a context for jobs: calls with it wait for minutes for a place that does
	// not answer.
	Patiently(ctx context.Context) context.Context
	// Aside sets the function that lets other actors continue while one waits for a value.
	Aside(aside func(do func()))
	// Foreign returns the objects of other tasks that a value refers to.
	Foreign(task string, v json.RawMessage) []persistence.Object
}

// offloadValue stores a value of a task outside if it is large. A value beyond the limits stays as
// it is, because it will be refused.
func (m *Member) offloadValue(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error) {
	if p := m.cfg.Payloads; p != nil && p.Large(v) && m.cfg.Limits.Takes(v) {
		return p.Keep(ctx, task, v)
	}
	return v, nil
}

// offloadOutput stores a report's output outside if it is large. If that fails, the attempt has
// failed.
func (m *Member) offloadOutput(task string, r flow.Report) flow.Report {
	if p := m.cfg.Payloads; p != nil && r.Error == "" {
		var err error
		if r.Output, err = m.offloadValue(p.Patiently(m.ctx), task, r.Output); err != nil {
			r.Output, r.Deferred, r.Error = nil, nil, err.Error()
		}
	}
	return r
}

// offloadCommand stores the large values of a command outside.
func (m *Member) offloadCommand(ctx context.Context, task string, cmd flow.Command) (_ flow.Command, err error) {
	if m.cfg.Payloads == nil {
		return cmd, nil
	}
	switch c := cmd.(type) {
	case flow.Report:
		if c.Error == "" {
			c.Output, err = m.offloadValue(ctx, task, c.Output)
		}
		cmd = c
	case flow.Signal:
		c.Value, err = m.offloadValue(ctx, task, c.Value)
		cmd = c
	case flow.Append:
		c.Items = slices.Clone(c.Items)
		for i := range c.Items {
			if err == nil {
				c.Items[i], err = m.offloadValue(ctx, task, c.Items[i])
			}
		}
		cmd = c
	}
	return cmd, toBusyError(err)
}

// toBusyError converts an error to one that allows the sender to retry.
func toBusyError(err error) error {
	if err == nil {
		return nil
	}
	return flow.Errorf(flow.Busy, "%v", err)
}

// offloadStart stores the large values of a task's start outside, and holds the objects that it
// shares with another task.
func (m *Member) offloadStart(ctx context.Context, id, origin string, start flow.Start) (flow.Start, error) {
	p := m.cfg.Payloads
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
			if shared[key], err = m.offloadValue(ctx, id, v); err != nil {
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
	return start, m.holdObjects(ctx, id, origin, held)
}

// heldAtOnce is how many objects one statement holds.
const heldAtOnce = 10_000

func (m *Member) holdObjects(ctx context.Context, id, origin string, held []persistence.Object) error {
	for some := range slices.Chunk(held, heldAtOnce) {
		err := m.store.Hold(ctx, id, origin, m.nowMillis(), some)
		if errors.Is(err, persistence.ErrUnknown) {
			return errNoTask(origin)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasReferences reports whether a job's values contain references, or lack something.
func (m *Member) hasReferences(job *flow.Job) bool {
	p := m.cfg.Payloads
	return p != nil && (job.Lacks != "" || p.Refers(job.Input) || p.Refers(job.Params) || p.Refers(job.Run))
}

// resolveValues returns a job with the contents of its references.
func (m *Member) resolveValues(ctx context.Context, job flow.Job) (flow.Job, error) {
	switch {
	case job.Lacks != "":
		return job, errors.New(job.Lacks)
	case !m.hasReferences(&job):
		return job, nil
	}
	p := m.cfg.Payloads
	ctx = p.Patiently(ctx)
	for _, v := range []*json.RawMessage{&job.Input, &job.Params, &job.Run} {
		var err error
		if *v, err = p.WholeFor(ctx, *v); err != nil {
			return job, err
		}
	}
	return job, nil
}

// unresolvedReport returns the report for a job whose values are unavailable. It is fatal if a
// retry cannot help, because they are gone or too large.
func unresolvedReport(err error) flow.Report {
	return flow.Report{Error: err.Error(), Fatal: errors.Is(err, flow.ErrNoContent) || flow.ErrorKindOf(err) == flow.Limit}
}

// objectWriteError is the error when a row is not stored because its objects could not be written.
type objectWriteError struct{ error }

func (u objectWriteError) Unwrap() error { return u.error }

// referenceFunc returns the function that creates references for values made by the task's
// decisions.
func (t *task) referenceFunc() func(json.RawMessage) json.RawMessage {
	p := t.m.cfg.Payloads
	if p == nil {
		return nil
	}
	return func(v json.RawMessage) json.RawMessage {
		ref, made := p.Refer(t.id, v)
		t.newObjects = append(t.newObjects, made...)
		return ref
	}
}

// releaseObjects releases the objects that a draft has made.
func (t *task) releaseObjects(p *journalDraft) {
	if p != nil && len(p.newObjects) > 0 {
		t.m.cfg.Payloads.DropMade(p.newObjects)
		p.newObjects = nil
	}
}

// dropUnstoredObjects releases all objects that are not stored.
func (t *task) dropUnstoredObjects() {
	t.releaseObjects(t.inflight)
	t.releaseObjects(t.openDraft)
	t.releaseObjects(&journalDraft{newObjects: t.newObjects})
	t.newObjects = nil
}
