package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/job"
)

// What a handler is told and what it says is the same as in package troupe, for a program with an
// engine inside: see package job.
type (
	// Job is something to be carried out.
	Job = job.Job
	// Handler carries out a job. Its result becomes the job's output as JSON. An error makes the
	// engine try again, if the flow says so and the error is not Fatal.
	Handler = job.Handler
)

// JobFrom is the job that a handler is called for, whose context ctx is.
func JobFrom(ctx context.Context) Job { return job.From(ctx) }

// Progress says in a few words how far the job of a handler's context is: whoever looks at the task
// sees the last of them. Jobs of a push worker have nobody to tell.
func Progress(ctx context.Context, text string) { job.Progress(ctx, text) }

// Count tells a number of the job of a handler's context, such as how many rows it has read. All of
// a name and the same labels are added up; they are kept with the attempt (`metrics`), whatever
// becomes of it, and members count them by name (`troupe_job_metric`). Of a job up to 100 different
// ones are kept.
func Count(ctx context.Context, name string, value float64, labels map[string]string) {
	job.Count(ctx, name, value, labels)
}

// Stream is where to write what a program prints to "stdout" or "stderr" with a job whose Log is
// given, so that its log tells them apart.
func Stream(log io.Writer, name string) io.Writer { return job.Stream(log, name) }

// Fatal marks an error: trying again is of no use.
func Fatal(err error) error { return job.Fatal(err) }

// Detailed gives an error details beside its text, any JSON, which are kept with the attempt.
func Detailed(err error, details any) error { return job.Detailed(err, details) }

// callHandler runs a handler and makes an answer of what comes out of it, whatever that is.
// progress passes on what it says of itself; nil = nobody hears it.
func (w *Worker) callHandler(ctx context.Context, h Handler, j Job, progress func(context.Context, Job, string)) (answer wire.ExecAnswer) {
	defer func() {
		if p := recover(); p != nil {
			w.cfg.Logger.Error("a handler panicked", "service", j.Service, "job", j.ID, "stack", string(debug.Stack()))
			answer = wire.ExecAnswer{Error: fmt.Sprintf("handler panicked: %.200v", p)}
		}
	}()
	ctx = job.With(ctx, j, progress)
	defer func() { answer.Metrics = job.Told(ctx) }()
	result, err := h(ctx, j)
	if err != nil {
		return errorAnswer(err)
	}
	raw, err := encodeResult(result)
	if err != nil {
		return errorAnswer(Fatal(fmt.Errorf("the handler's result cannot be sent: %w", err)))
	}
	return wire.ExecAnswer{Result: raw}
}

// maxDetailBytes is how large details may be that the engine keeps. Larger ones would only keep it
// from taking the error.
const maxDetailBytes = 64 << 10

func errorAnswer(err error) wire.ExecAnswer {
	answer := wire.ExecAnswer{Error: err.Error(), Details: job.DetailsOf(err), Fatal: job.IsFatal(err)}
	if answer.Error == "" { // it would mean success
		answer.Error = "failed"
	}
	if size := len(answer.Details); size > maxDetailBytes {
		answer.Error += fmt.Sprintf(" (its details have %d bytes, more than the %d that are kept)", size, maxDetailBytes)
		answer.Details = nil
	}
	return answer
}

func encodeResult(result any) (json.RawMessage, error) {
	raw, ok := result.(json.RawMessage)
	if !ok {
		return json.Marshal(result)
	}
	if len(raw) > 0 && !json.Valid(raw) {
		return nil, errors.New("it is not valid JSON")
	}
	return raw, nil
}
