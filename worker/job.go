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

// Handlers receive and return the same types as in package troupe, which is for programs with an
// engine inside; see package job.
type (
	// Job is a unit of work for a handler.
	Job = job.Job
	// Handler carries out a job. The result becomes the job's output as JSON. After an error the
	// engine tries again, if the flow allows it and the error is not Fatal.
	Handler = job.Handler
)

// JobFrom returns the job of a handler from its context.
func JobFrom(ctx context.Context) Job { return job.From(ctx) }

// Progress reports in a few words the progress of the job of a handler's context. The task shows
// the last text. For a push worker the texts are dropped.
func Progress(ctx context.Context, text string) { job.Progress(ctx, text) }

// Count reports a number for the job of a handler's context, such as the number of rows read.
// Numbers with the same name and labels are summed. They are stored with the attempt (`metrics`),
// also if it fails. Members count them by name (`troupe_job_metric`). At most 100 different numbers
// per job are stored.
func Count(ctx context.Context, name string, value float64, labels map[string]string) {
	job.Count(ctx, name, value, labels)
}

// OpenOutput returns a writer for the "stdout" or "stderr" of a program, given the Log of its job,
// so that the log separates the two.
func OpenOutput(log io.Writer, name string) io.Writer { return job.OpenOutput(log, name) }

// Stream returns a stream of the task of a handler's context: values that others can read while the
// job runs, such as the tokens of a model.
func Stream(ctx context.Context, name string) *job.StreamWriter { return job.Stream(ctx, name) }

// Fatal marks an error as permanent, so that the engine does not try again.
func Fatal(err error) error { return job.Fatal(err) }

// Detailed adds details to an error. The details are any JSON, and are stored with the attempt.
func Detailed(err error, details any) error { return job.Detailed(err, details) }

// callHandler calls a handler and returns an answer for every outcome, including a panic. token is
// the token of the claim; "" if the job is not claimed. progress receives the handler's progress
// texts; if nil, they are dropped.
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

// maxDetailBytes is the maximum size of details in bytes. The engine would reject an error with
// larger details.
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
