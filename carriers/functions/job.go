package functions

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/job"
)

// jobOf returns the job as a function gets it, with the same contents as for a worker, except the
// log. The span of its attempt costs as much as the rest, so it is included only if the task or the
// member is traced.
func jobOf(j *flow.Job, traced bool) job.Job {
	id, key := j.IDAndKey()
	told := job.WithKey(key, job.Job{ID: id, Service: j.Exec.Func, Input: j.Input, Params: j.Params, Task: j.Task, Step: j.Step(),
		Unit: j.Unit, Units: max(j.Units, 1), Attempt: j.Attempt})
	if j.Plan != nil {
		told.Flow = j.Plan.FlowSlug
	}
	if traced || j.Traced != nil {
		told.Trace = trace.Parent(j.Task, j.Traced, j.Address)
	}
	return told
}

// sendNote passes on a function's progress note. Errors are ignored: the job may no longer be
// needed.
func (r *Registry) sendNote(ctx context.Context, j job.Job, text string) {
	if task, at, err := flow.ParseJobID(j.ID); err == nil {
		_ = r.opts.Note(ctx, task, flow.Note{Address: at, Text: text})
	}
}
