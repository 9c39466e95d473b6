// Package job is what somebody who carries out jobs is told and what he answers: the same for the
// functions of a program with an engine inside (package troupe) and for a worker (package worker),
// which pass on the names of this package.
//
// A handler that takes its input as a Go value is made of a function by Typed:
//
//   - Its input is that of the node. Where that is null, as it is of a graph's node without prep, the input is the node's params: those
//     that the node has, or else what the task was started with. So the first step of a graph gets what the first step of a dag gets.
//   - Its output is the node's. In a dag those who wait for the node see it, in a graph post.output_key writes it to shared.
//   - An action is a field of the output: the node says which one by post.action_key, so that it is in the history like every other result,
//     and the function knows nothing of edges. A function without such a field leads on by the edge `default`, one that fails by `error`.
//
// Promises: an input that does not fit is a fatal error, which names the function, the step and the
// field; a function that cannot be one, because JSON cannot hold what it takes or gives, is refused
// when it is registered.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Job is something to be carried out.
type Job struct {
	// ID names the attempt: it is the same whenever that is delivered again, and another one for
	// the next attempt. Effects outside, such as a payment, take Key. "" when the engine sends
	// none.
	ID  string
	key string
	// Service is what the job is for: the name that its handler was registered with.
	Service string
	Input   json.RawMessage
	Params  json.RawMessage // object

	// Task and Step are where the job comes from: the id of the task, and the key of the node, as a
	// path if it is in a flow inside another. Flow is the slug of the task's flow, "" when it has
	// none.
	Task, Flow, Step string
	// Unit says which of the step's Units this is, from 0. More may be appended to a fan-out later
	// on.
	Unit, Units int
	// Attempt says which try it is, from 1; 0 when the engine does not tell.
	Attempt int
	// Trace is the attempt's span, as the header traceparent of W3C Trace Context: what is traced
	// of the job belongs below it. "" where the engine does not tell: to functions of its own
	// program, if neither does it tell spans nor was the task started with one.
	Trace string

	// Log keeps what is written to it with the job, line by line, while the job goes on; writing
	// never waits and never fails. With the jobs of a push worker nothing is kept. Stream tells
	// what programs print apart. It is never nil.
	Log io.Writer
}

// Stream is where to write what a program prints to "stdout" or "stderr" with a job whose Log is
// given, so that its log tells them apart. A Log that knows no streams takes it as it is.
func Stream(log io.Writer, name string) io.Writer {
	if s, ok := log.(interface{ Stream(name string) io.Writer }); ok {
		return s.Stream(name)
	}
	return log
}

// Key is the idempotency key for effects outside, such as a payment: the same for all attempts at a
// unit of a visit, however often it is delivered, taken over or retried with the same input, and
// for no other. A new visit has a new key, and so has every unit of a rerun or a fork, which are
// new tasks. Without an engine it is the ID.
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

// Handler carries out a job. Its result becomes the job's output as JSON. An error makes the engine
// try again, if the flow says so and the error is not Fatal.
type Handler = func(ctx context.Context, job Job) (any, error)

type contextKey struct{}

// handlerContext is the context of a handler, in one piece, because there is one for every job.
type handlerContext struct {
	context.Context
	job      Job
	progress func(ctx context.Context, j Job, text string)
	numbers  lockedNumbers
}

func (c *handlerContext) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// With is the context that a handler is called with. progress passes on what the handler says of
// itself, with ctx; nil = nobody hears it.
func With(ctx context.Context, j Job, progress func(ctx context.Context, j Job, text string)) context.Context {
	return &handlerContext{Context: ctx, job: j, progress: progress}
}

// From is the job that a handler is called for, whose context ctx is or was made of. Elsewhere it
// is a Job without anything.
func From(ctx context.Context) Job {
	if c, ok := ctx.Value(contextKey{}).(*handlerContext); ok {
		return c.job
	}
	return Job{Log: io.Discard}
}

// maxProgress is how many bytes of what a handler says of itself are told.
const maxProgress = 256

// Progress says in a few words how far the job of a handler's context is: whoever looks at the task
// sees the last of them (`note`), up to 256 bytes. A worker does not wait until it is told; in a
// program with an engine inside it is stored when Progress returns. Nobody hears what jobs of a
// push worker say.
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

// Fatal marks an error: trying again is of no use.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{err}
}

type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// Fatal is how the error is recognized, whoever made it.
func (e *fatalError) Fatal() bool { return true }

// Detailed gives an error details beside its text: any JSON, which is kept with the attempt. What
// cannot be JSON is told as a text.
func Detailed(err error, details any) error {
	if raw, ok := details.(json.RawMessage); err == nil || details == nil || ok && len(raw) == 0 {
		return err
	}
	return &detailedError{err, asJSON(details)}
}

// asJSON is a value as JSON; what is none is a text.
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
		text, _ = json.Marshal(fmt.Sprintf("%+v", v)) // a text is always marshaled
	}
	return text
}

type detailedError struct {
	error
	details json.RawMessage
}

func (e *detailedError) Unwrap() error { return e.error }

// Details is how they are found, whoever made the error.
func (e *detailedError) Details() json.RawMessage { return e.details }

// DetailsOf are those of an error of any package that has such a method, whatever it returns; nil =
// none.
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

// IsFatal recognizes the errors of any package whose method says that trying again is of no use.
func IsFatal(err error) bool {
	var f interface{ Fatal() bool }
	return errors.As(err, &f) && f.Fatal()
}
