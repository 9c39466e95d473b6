package functions

import (
	"context"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/internal/streambuffer"
	"github.com/troupe-engine/troupe/job"
)

// jobOutput is the log and the streams of a job.
type jobOutput struct {
	log     *logs.Writer
	streams *streambuffer.Buffer // nil if the member stores no streams
}

// openOutput opens the log and the streams of a job, and sets them in the job. ctx is the context
// of the job.
func (r *Registry) openOutput(ctx context.Context, j *job.Job) jobOutput {
	o := jobOutput{log: r.opts.Logs.Open(j.Task, j.ID)}
	j.Log = o.log
	if r.opts.Streams != nil {
		o.streams = r.opts.Streams.Open(ctx, j.Task, j.ID)
		*j = job.WithStreams(o.streams, *j)
	}
	return o
}

// closeOutput stores the remaining output of the job, and reports whether the job has a log.
func (o *jobOutput) closeOutput() bool {
	if o.streams != nil {
		o.streams.Close(o.log)
	}
	return o.log.Close()
}
