package functions

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/job"
)

// jobOf converts a job to the form for functions. Its span is as expensive as all the rest, so it
// is included only if the task or the member is traced.
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

// sendNote stores a progress note of a function. It ignores errors, because the job may no longer
// be needed.
func (r *Registry) sendNote(ctx context.Context, j job.Job, text string) {
	if task, at, err := flow.ParseJobID(j.ID); err == nil {
		_ = r.opts.Note(ctx, task, flow.Note{Address: at, Text: text})
	}
}
