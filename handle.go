package troupe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/troupe-engine/troupe/job"
)

// What a handler is told and what it says is the same as in package worker: see package job.
type (
	// Job is what a handler gets to do: Input and Params are JSON.
	Job = job.Job
	// Handler carries out the jobs of a local function. What it returns becomes the job's output as
	// JSON.
	Handler = job.Handler
)

// JobFrom is the job that a handler is called for, whose context ctx is.
func JobFrom(ctx context.Context) Job { return job.From(ctx) }

// Stream is where to write what a program prints to "stdout" or "stderr" with a job whose Log is
// given, so that its log tells them apart.
func Stream(log io.Writer, name string) io.Writer { return job.Stream(log, name) }

// Progress says in a few words how far the job of a handler's context is: whoever looks at the task
// sees the last of them.
func Progress(ctx context.Context, text string) { job.Progress(ctx, text) }

// Count tells a number of the job of a handler's context, such as how many rows it has read. All of
// a name and the same labels are added up; they are kept with the attempt, whatever becomes of it,
// and counted by name (`troupe_job_metric`). Of a job up to 100 different ones are kept.
func Count(ctx context.Context, name string, value float64, labels map[string]string) {
	job.Count(ctx, name, value, labels)
}

// Fatal marks an error: trying again is of no use.
func Fatal(err error) error { return job.Fatal(err) }

// Detailed gives an error details beside its text, any JSON, which are kept with the attempt.
func Detailed(err error, details any) error { return job.Detailed(err, details) }

// Handle registers a function of this program: nodes with `func: name` call it. Its input is that
// of the node, or, where that is null, the node's params; its output is the node's, and
// post.action_key says which field of it is the action, if one is (package job tells more). An
// input that does not fit is a fatal error of the step. JobFrom tells fn which job it has.
//
// It panics, as a mistake of the program, when the name is empty or was registered before, or when
// JSON cannot hold what fn takes or gives.
func Handle[In, Out any](e *Engine, name string, fn func(ctx context.Context, in In) (Out, error)) {
	h, err := job.Typed(name, fn)
	if err != nil {
		panic(fmt.Sprintf("troupe: the function %q: %v", name, err))
	}
	e.Handle(name, h)
}

// claimName notes that the program registers a function of a name. It panics when there is one
// already.
func (e *Engine) claimName(name string) {
	if _, known := e.handled.LoadOrStore(name, true); known {
		panic(fmt.Sprintf("troupe: the function %q: there is a function of that name already", name))
	}
}

// Handle registers a function of this program that reads JSON itself: nodes with `func: name` call
// it. It panics, as a mistake of the program, when the name was registered before.
func (e *Engine) Handle(name string, h Handler) {
	e.claimName(name)
	e.functions.Register(name, h)
}

// HandleJSON registers a function of this program whose result is JSON already. It panics as Handle
// does.
func (e *Engine) HandleJSON(name string, h func(ctx context.Context, job Job) (json.RawMessage, error)) {
	e.claimName(name)
	e.functions.RegisterRaw(name, h)
}
