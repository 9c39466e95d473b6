// Package job defines what handlers of jobs receive and return. It is the same for functions in a
// program with an engine inside (package troupe) and for workers (package worker); both pass on the
// names of this package.
//
// Typed makes a handler from a function whose input and output are Go values:
//
//   - The input is the input of the node. If that is null, as in a graph node without prep, the
//     input is the params of the node, or else the params of the task. So graphs and dags give
//     their first steps the same input.
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
	// ID identifies the attempt. It is the same for each delivery of the attempt, and different for
	// the next attempt. Use Key instead for external effects, such as a payment. ID is "" if the
	// engine sends none.
	ID  string
	key string
	// Service is the service of the job. The handler is registered under this name.
	Service string
	Input   json.RawMessage
	Params  json.RawMessage // object

	// Task is the id of the job's task. Flow is the slug of the task's flow, or "" if it has none.
	// Step is the key of the node, as a path if the node is in a nested flow.
	Task, Flow, Step string
	// Unit is the index of this unit among the step's Units, from 0. Further units may be appended
	// to a fan-out later.
	Unit, Units int
	// Attempt is the number of the attempt, from 1; 0 if the engine does not send it.
	Attempt int
	// Labels holds the labels that the job requires; its worker has all of them.
	Labels []string
	// Trace is the attempt's span, in the format of the header traceparent of W3C Trace Context.
	// Spans of the job should have it as their parent. It is "" if the engine sends none. For
	// functions of the engine's own program, this means that the program exports no spans and the
	// task started without a trace.
	Trace string

	// Log stores what is written to it with the job, line by line, while the job runs. A write
	// never blocks and never fails. For a push worker the log is dropped. OpenOutput separates the
	// outputs of programs. Log is never nil.
	Log io.Writer

	streams StreamSink
}

// OpenOutput returns a writer for the "stdout" or "stderr" of a program. The log of the job, which
// must be given, then separates the two outputs. If the log does not support this, it returns the
// log itself.
func OpenOutput(log io.Writer, name string) io.Writer {
	if s, ok := log.(interface{ Stream(name string) io.Writer }); ok {
		return s.Stream(name)
	}
	return log
}

// Key returns the idempotency key for external effects, such as a payment. It is the same for all
// attempts of a unit of a visit, also after repeated deliveries and after retries with the same
// input. All other units have other keys. A new visit has a new key, and so has every unit of a
// rerun or a fork, because these are new tasks. Without an engine, Key returns the ID.
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

// Handler carries out a job. The result becomes the job's output as JSON. After an error the engine
// tries again, if the flow allows it and the error is not Fatal.
type Handler = func(ctx context.Context, job Job) (any, error)

type contextKey struct{}

// handlerContext is the context of a handler. It is a single allocation, because every job needs
// one.
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

// With returns the context for a handler. progress receives the handler's progress texts and ctx;
// if progress is nil, the texts are dropped.
func With(ctx context.Context, j Job, progress func(ctx context.Context, j Job, text string)) context.Context {
	return &handlerContext{Context: ctx, job: j, progress: progress}
}

// From returns the job of a handler from its context, or from a context derived from it. For any
// other context it returns an empty Job.
func From(ctx context.Context) Job {
	if c, ok := ctx.Value(contextKey{}).(*handlerContext); ok {
		return c.job
	}
	return Job{Log: io.Discard}
}

// maxProgress is the maximum length of a progress text in bytes.
const maxProgress = 256

// Progress reports in a few words the progress of the job of a handler's context. The task shows
// the last text (`status_text`), up to 256 bytes. In a program with an engine inside, the text is
// stored when Progress returns; a worker does not wait for that. For a push worker the texts are
// dropped.
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

// Fatal marks an error as permanent, so that the engine does not try again.
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

// Detailed adds details to an error. The details are any JSON, and are stored with the attempt. A
// value that cannot be JSON is stored as a text.
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
		text, _ = json.Marshal(fmt.Sprintf("%+v", v)) // a text can always be encoded
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

// DetailsOf returns the details of an error of any package that has a method Details of this type.
// It returns nil if there are none.
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
