package actors

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Payloads keeps large values elsewhere than in the store: what comes in leaves a reference behind,
// and whoever carries out a job gets what that stands for. Its methods may take a while, so no
// actor asks but for Large, Refers, Refer and DropMade. Where a decision opens a value that is kept
// by it, the actor waits, and no other.
type Payloads interface {
	// Large reports whether a value is to be kept elsewhere.
	Large(v json.RawMessage) bool
	// Keep gives what is to travel in place of a value of a task; KeepFields does so for each field
	// of its params.
	Keep(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error)
	KeepFields(ctx context.Context, task string, params json.RawMessage) (json.RawMessage, error)
	// Refer gives what is to stand for a value that a decision has made, and the objects which that
	// refers to: WriteMade has to write them before it is stored, and DropMade tells that it was,
	// or will not be.
	Refer(task string, v json.RawMessage) (json.RawMessage, []persistence.Object)
	WriteMade(ctx context.Context, made []persistence.Object) error
	DropMade(made []persistence.Object)
	// Refers reports whether there are references in a value. WholeFor is the value with what they
	// stand for.
	Refers(v json.RawMessage) bool
	WholeFor(ctx context.Context, v json.RawMessage) (json.RawMessage, error)
	// Patiently is for jobs: what is asked with it waits for minutes for a place that does not
	// answer.
	Patiently(ctx context.Context) context.Context
	// Aside gives it what lets others go on while an actor waits for a value.
	Aside(aside func(do func()))
	// Foreign lists the objects that a value refers to and that are another task's.
	Foreign(task string, v json.RawMessage) []persistence.Object
}

// offloadValue has a value of a task kept elsewhere, if it is large. What will be refused stays as
// it is.
func (m *Member) offloadValue(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error) {
	if p := m.cfg.Payloads; p != nil && p.Large(v) && m.cfg.Limits.Takes(v) {
		return p.Keep(ctx, task, v)
	}
	return v, nil
}

// offloadOutput is a report whose output is kept elsewhere, if it is large. Where that is not
// possible the attempt has failed.
func (m *Member) offloadOutput(task string, r flow.Report) flow.Report {
	if p := m.cfg.Payloads; p != nil && r.Error == "" {
		var err error
		if r.Output, err = m.offloadValue(p.Patiently(m.ctx), task, r.Output); err != nil {
			r.Output, r.Deferred, r.Error = nil, nil, err.Error()
		}
	}
	return r
}

// offloadCommand has the values of a command kept elsewhere that are large.
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

// toBusyError tells whoever has sent a value why it is not taken: sent again it may be.
func toBusyError(err error) error {
	if err == nil {
		return nil
	}
	return flow.Errorf(flow.Busy, "%v", err)
}

// offloadStart has the values that a task begins with kept elsewhere, and holds for it what it has
// in common with another one.
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

// heldAtOnce is how many objects are held by one statement.
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

// hasReferences reports whether there are references in what a job is about, or something is
// missing there.
func (m *Member) hasReferences(job *flow.Job) bool {
	p := m.cfg.Payloads
	return p != nil && (job.Lacks != "" || p.Refers(job.Input) || p.Refers(job.Params) || p.Refers(job.Run))
}

// resolveValues is a job with what its references stand for.
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

// unresolvedReport is the report on a job whose values cannot be had. Trying again is of no use
// when they are gone, or too large.
func unresolvedReport(err error) flow.Report {
	return flow.Report{Error: err.Error(), Fatal: errors.Is(err, flow.ErrNoContent) || flow.ErrorKindOf(err) == flow.Limit}
}

// objectWriteError is why a row is not stored: what it refers to could not be written.
type objectWriteError struct{ error }

func (u objectWriteError) Unwrap() error { return u.error }

// referenceFunc is what stands for values that decisions of a task make.
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

// releaseObjects tells that nothing refers to what a draft has made but what is stored.
func (t *task) releaseObjects(p *journalDraft) {
	if p != nil && len(p.newObjects) > 0 {
		t.m.cfg.Payloads.DropMade(p.newObjects)
		p.newObjects = nil
	}
}

// dropUnstoredObjects lets go of all that is not stored.
func (t *task) dropUnstoredObjects() {
	t.releaseObjects(t.inflight)
	t.releaseObjects(t.openDraft)
	t.releaseObjects(&journalDraft{newObjects: t.newObjects})
	t.newObjects = nil
}
