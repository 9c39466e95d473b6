package actors

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// addExternals adds the changes to rows of external work to the commit of the events that they
// follow from.
func (t taskJournal) addExternals(c *persistence.Commit, e flow.Effect) {
	if c.Externals == nil {
		c.Externals = &persistence.ExternalChanges{}
	}
	id := func(a flow.Address, index int) persistence.ExternalID {
		return persistence.ExternalID{Task: t.id, Job: flow.JobID(t.id, a), Index: index}
	}
	switch e := e.(type) {
	case flow.Track:
		for _, x := range e.Jobs {
			c.Externals.Track = append(c.Externals.Track, persistence.ExternalRow{External: x, NextAt: x.StartedAt})
		}
	case flow.Untrack:
		c.Externals.Untrack = append(c.Externals.Untrack, id(e.Address, e.Index))
	case flow.Recall:
		for _, index := range e.Indexes {
			c.Externals.Recall = append(c.Externals.Recall, id(e.Address, index))
		}
	}
}

// recallsOf finds the external work of a task that cannot be read. It returns the effects that
// cancel the work.
func (m taskLeftovers) recallsOf(task string) (recalls []flow.Effect, err error) {
	ctx, cancel := m.work.StoreCall()
	defer cancel()
	rows, err := m.store.ExternalsOf(ctx, task)
	for i := range rows {
		_, a, err := flow.ParseJobID(rows[i].Job)
		if err == nil && !rows[i].Recalled {
			recalls = append(recalls, flow.Recall{Address: a, Indexes: []int{rows[i].Index}})
		}
	}
	return slices.Clip(recalls), err
}

// hasDeferredWork reports whether the report of a job names external work that was started for the
// job. If the task has no actor anymore, this member must cancel the work, because no other
// component knows it.
func (f *activeJob) hasDeferredWork() bool {
	r, ok := f.report.(flow.Report)
	return ok && len(r.Deferred) > 0
}
