// Package job defines what handlers of jobs receive and return. It is the same for functions in a
// program with an engine inside (package troupe) and for workers (package worker); both pass on the
// names of this package.
//
// Typed makes a handler from a function whose input and output are Go values:
//
//   - The input is that of the node. If that is null, as in a graph node without prep, the input is
//     the node's params: its own, or else those that the task was started with. So graphs and dags
//     give their first steps the same input.
//   - The output is the node's output. In a dag, dependent nodes receive it; in a graph,
//     post.output_key writes it to shared.
//   - An action is a field of the output that the node names by post.action_key. So it is in the
//     history like every other result, and the function needs no knowledge of edges. A function
//     without such a field continues by the edge `default`, and a failing one by `error`.
//
// Promises: an input that does not fit is a fatal error with the function, the step and the field.
// A function whose input or output JSON cannot represent is refused at registration.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"unicode/utf8"
)

// Job is a unit of work for a handler.
type Job struct {
	// ID identifies the attempt. It is the same each time the attempt is delivered, and different
	// for the next attempt. External effects, such as a payment, should use Key instead. "" if the
	// engine sends none.
	ID  string
	key string
	// Service is the service of the job, the name under which its handler was registered.
	Service string
	Input   json.RawMessage
	Params  json.RawMessage // object

	// Task is the id of the job's task, Flow the slug of the task's flow, "" if it has none, and
	// Step the key of the node, as a path if it is in a nested flow.
	Task, Flow, Step string
	// Unit is the index of this unit among the step's Units, from 0. More units may be appended to
	// a fan-out later.
	Unit, Units int
	// Attempt is the number of the attempt, from 1; 0 if the engine does not send it.
	Attempt int
	// Labels holds the labels that the job requires; its worker has all of them.
	Labels []string
	// Trace is the attempt's span, in the format of the header traceparent of W3C Trace Context;
	// the job's own spans belong below it. It is "" if the engine sends none: for functions of its
	// own program, if the program exports no spans and the task was started without a trace.
	Trace string

	// Log stores everything written to it with the job, line by line, while the job runs; a write
	// never blocks and never fails. The log of a push worker's job is dropped. OpenOutput separates
	// the outputs of programs. Log is never nil.
	Log io.Writer

	streams StreamSink
}

// OpenOutput returns a writer for the "stdout" or "stderr" of a program, given the Log of its job,
// so that the log separates the two. For a Log that cannot, it returns the Log itself.
func OpenOutput(log io.Writer, name string) io.Writer {
	if s, ok := log.(interface{ Stream(name string) io.Writer }); ok {
		return s.Stream(name)
	}
	return log
}

// Key returns the idempotency key for external effects, such as a payment. It is the same for all
// attempts of a unit of a visit, however often these are delivered, taken over or retried with the
// same input, and different from all others. A new visit has a new key, and so has every unit of a
// rerun or a fork, because these are new tasks. Without an engine it is the ID.
func (j Job) Key() string {
	if j.key == "" {
		return j.ID
	}
	return j.key
}

// WithKey returns the job with the idempotency key that the engine sent.
func WithKey(key string, j Job) Job {
	j.key = key
	return j
}

// Handler carries out a job. Its result becomes the job's output as JSON. After an error the engine
// tries again, if the flow allows it and the error is not Fatal.
type Handler = func(ctx context.Context, job Job) (any, error)

type contextKey struct{}

// handlerContext is the context of a handler. It is one allocation, because every job has one.
type handlerContext struct {
	context.Context
	job      Job
	progress func(ctx context.Context, j Job, text string)
	numbers  lockedNumbers
	try      atomic.Int32 // see NoteTry
}

func (c *handlerContext) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// With returns the context for a handler. progress receives the handler's progress texts with ctx;
// nil = they are dropped.
func With(ctx context.Context, j Job, progress func(ctx context.Context, j Job, text string)) context.Context {
	return &handlerContext{Context: ctx, job: j, progress: progress}
}

// From returns the job of a handler from its context or a context derived from it. Without one it
// returns an empty Job.
func From(ctx context.Context) Job {
	if c, ok := ctx.Value(contextKey{}).(*handlerContext); ok {
		return c.job
	}
	return Job{Log: io.Discard}
}

// maxProgress is the maximum length of a progress text in bytes.
const maxProgress = 256

// Progress reports in a few words how far the job of a handler's context is. The task shows the
// last text (`status_text`), up to 256 bytes. A worker does not wait until it is stored; in a
// program with an engine inside it is stored when Progress returns. Texts of a push worker's jobs
// are dropped.
func Progress(ctx context.Context, text string) {
	c, ok := ctx.Value(contextKey{}).(*handlerContext)
	if !ok || c.progress == nil || text == "" {
		return
	}
	if len(text) > maxProgress {
		text = text[:maxProgress]
		for !utf8.ValidString(text) && len(text) > maxProgress-utf8.UTFMax {
			text = text[:len(text)-1]
		}
	}
	c.progress(c.Context, c.job, text)
}

// Fatal marks an error as permanent: the engine does not try again.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{err}
}

type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// Fatal marks the error as permanent for IsFatal.
func (e *fatalError) Fatal() bool { return true }

// Detailed adds details to an error: any JSON, which is stored with the attempt. A value that
// cannot be JSON is stored as a text.
func Detailed(err error, details any) error {
	if raw, ok := details.(json.RawMessage); err == nil || details == nil || ok && len(raw) == 0 {
		return err
	}
	return &detailedError{err, asJSON(details)}
}

// asJSON returns a value as JSON; a value that cannot be JSON becomes a text.
func asJSON(v any) json.RawMessage {
	text, isRaw := v.(json.RawMessage)
	if isRaw && json.Valid(text) {
		return text
	}
	if isRaw {
		v = string(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		text, _ = json.Marshal(fmt.Sprintf("%+v", v)) // a text never fails to marshal
	}
	return text
}

type detailedError struct {
	error
	details json.RawMessage
}

func (e *detailedError) Unwrap() error { return e.error }

// Details returns the details for DetailsOf.
func (e *detailedError) Details() json.RawMessage { return e.details }

// DetailsOf returns the details of an error from any package, if it has a method Details of this
// type; nil = none.
func DetailsOf(err error) json.RawMessage {
	var d interface{ Details() json.RawMessage }
	if !errors.As(err, &d) {
		return nil
	}
	if details := d.Details(); len(details) > 0 {
		return asJSON(details)
	}
	return nil
}

// IsFatal reports whether an error from any package has a method Fatal that returns true.
func IsFatal(err error) bool {
	var f interface{ Fatal() bool }
	return errors.As(err, &f) && f.Fatal()
}
