package troupe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/troupe-engine/troupe/job"
)

// Handlers get and return the same types as in package worker: see package job.
type (
	// Job is the job that a handler carries out: Input and Params are JSON.
	Job = job.Job
	// Handler carries out the jobs of a local function. Its result becomes the job's output, as
	// JSON.
	Handler = job.Handler
)

// JobFrom returns the job whose handler was called with ctx.
func JobFrom(ctx context.Context) Job { return job.From(ctx) }

// OpenOutput returns a writer for the program output "stdout" or "stderr" of a job with the given
// Log, so that the log separates the two.
func OpenOutput(log io.Writer, name string) io.Writer { return job.OpenOutput(log, name) }

// Stream returns a stream of the task of ctx: values that others can read while the job runs, such
// as the tokens of a model.
func Stream(ctx context.Context, name string) *job.StreamWriter { return job.Stream(ctx, name) }

// Progress reports in a few words how far the job of ctx is. Readers of the task see the latest
// text.
func Progress(ctx context.Context, text string) { job.Progress(ctx, text) }

// Count adds to a counter of the job of ctx, such as the number of rows read. Values with the same
// name and labels are added up. They are kept with the attempt, however it ends, and exported by
// name (`troupe_job_metric`). A job keeps up to 100 different counters.
func Count(ctx context.Context, name string, value float64, labels map[string]string) {
	job.Count(ctx, name, value, labels)
}

// Fatal marks an error as final: the job is not retried.
func Fatal(err error) error { return job.Fatal(err) }

// Detailed adds details to an error, as any JSON. They are kept with the attempt.
func Detailed(err error, details any) error { return job.Detailed(err, details) }

// Handle registers a function of this program: nodes with `func: name` call it. Its input is the
// input of the node, or the node's params if that is null. Its output is the node's output;
// post.action_key names the field of it that holds the action, if any (see package job). An input
// that does not fit is a fatal error of the step. JobFrom returns the job of fn's context.
//
// It panics, as an error of the program, if the name is empty or already registered, or if JSON
// cannot represent the types of fn.
func Handle[In, Out any](e *Engine, name string, fn func(ctx context.Context, in In) (Out, error)) {
	h, err := job.Typed(name, fn)
	if err != nil {
		panic(fmt.Sprintf("troupe: the function %q: %v", name, err))
	}
	e.Handle(name, h)
}

// claimName reserves the name of a function. It panics if the name is already registered.
func (e *Engine) claimName(name string) {
	if _, known := e.handled.LoadOrStore(name, true); known {
		panic(fmt.Sprintf("troupe: the function %q: there is a function of that name already", name))
	}
}

// Handle registers a function of this program that decodes JSON itself: nodes with `func: name`
// call it. It panics, as an error of the program, if the name is already registered.
func (e *Engine) Handle(name string, h Handler) {
	e.claimName(name)
	e.functions.Register(name, h)
}

// HandleJSON registers a function of this program whose result is already JSON. It panics like
// Handle.
func (e *Engine) HandleJSON(name string, h func(ctx context.Context, job Job) (json.RawMessage, error)) {
	e.claimName(name)
	e.functions.RegisterRaw(name, h)
}
