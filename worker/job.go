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

// Handlers receive and return the same as in package troupe, for a program with an engine inside:
// see package job.
type (
	// Job is a unit of work for a handler.
	Job = job.Job
	// Handler carries out a job. Its result becomes the job's output as JSON. After an error the
	// engine tries again, if the flow allows it and the error is not Fatal.
	Handler = job.Handler
)

// JobFrom returns the job of a handler from its context.
func JobFrom(ctx context.Context) Job { return job.From(ctx) }

// Progress reports in a few words how far the job of a handler's context is. The task shows the
// last text. Texts of a push worker's jobs are dropped.
func Progress(ctx context.Context, text string) { job.Progress(ctx, text) }

// Count reports a number for the job of a handler's context, such as the number of rows read.
// Numbers of the same name and labels are summed. They are stored with the attempt (`metrics`),
// whatever its result, and members count them by name (`troupe_job_metric`). Up to 100 different
// ones per job are kept.
func Count(ctx context.Context, name string, value float64, labels map[string]string) {
	job.Count(ctx, name, value, labels)
}

// OpenOutput returns a writer for the "stdout" or "stderr" of a program, given the Log of its job,
// so that the log separates the two.
func OpenOutput(log io.Writer, name string) io.Writer { return job.OpenOutput(log, name) }

// Stream returns a stream of the task of a handler's context: values that others can read while the
// job runs, such as the tokens of a model.
func Stream(ctx context.Context, name string) *job.StreamWriter { return job.Stream(ctx, name) }

// Fatal marks an error as permanent: the engine does not try again.
func Fatal(err error) error { return job.Fatal(err) }

// Detailed adds details to an error, any JSON, which is stored with the attempt.
func Detailed(err error, details any) error { return job.Detailed(err, details) }

// callHandler calls a handler and returns an answer for every outcome, including a panic. token is
// that of the claim; "" if the job is not claimed. progress receives the handler's progress texts;
// nil = they are dropped.
func (w *Worker) callHandler(ctx context.Context, h Handler, j Job, token string,
	progress func(context.Context, Job, string)) (answer wire.ExecAnswer) {
	streams := w.openStreams(ctx, j.ID, token)
	defer streams.Close(j.Log)
	defer func() {
		if p := recover(); p != nil {
			w.cfg.Logger.Error("job handler panicked", "service", j.Service, "job", j.ID, "stack", string(debug.Stack()))
			answer = wire.ExecAnswer{Error: fmt.Sprintf("handler panicked: %.200v", p)}
		}
	}()
	ctx = job.With(ctx, job.WithStreams(streams, j), progress)
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

// maxDetailBytes is the maximum size of details. The engine would refuse the error with larger
// ones.
const maxDetailBytes = 64 << 10

func errorAnswer(err error) wire.ExecAnswer {
	answer := wire.ExecAnswer{Error: err.Error(), Details: job.DetailsOf(err), Fatal: job.IsFatal(err)}
	if answer.Error == "" { // an empty error would mean success
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
