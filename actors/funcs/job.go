package funcs

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/job"
)

// jobOf is what a function is told of its job, but for where its log is: what a worker would be
// told. The span of its attempt costs as much as all the rest, so that it is told where somebody
// traces.
func jobOf(j *flow.Job, traced bool) job.Job {
	told := job.WithKey(j.Key(), job.Job{ID: j.ID(), Service: j.Exec.Func, Input: j.Input, Params: j.Params, Task: j.Task, Step: j.Step(),
		Unit: j.Unit, Units: max(j.Units, 1), Attempt: j.Attempt})
	if j.Plan != nil {
		told.Flow = j.Plan.FlowSlug
	}
	if traced || j.Traced != nil {
		told.Trace = trace.Parent(j.Task, j.Traced, j.Address)
	}
	return told
}

// sendNote passes on what a function says of itself. What nobody waits for any longer is not told.
func (r *Registry) sendNote(ctx context.Context, j job.Job, text string) {
	if task, at, err := flow.ParseJobID(j.ID); err == nil {
		_ = r.opts.Note(ctx, task, flow.Note{Address: at, Text: text})
	}
}
