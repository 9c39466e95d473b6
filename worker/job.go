package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
)

// Handler carries out a job. Its result becomes the job's output as JSON. An error makes the engine
// try again, if the flow says so and the error is not Fatal.
type Handler = func(ctx context.Context, job Job) (any, error)

// Job is something to be carried out.
type Job struct {
	// ID is the same whenever the same job is delivered again, so that work with effects outside
	// can be recognized. "" when the engine does not tell.
	ID      string
	Service string
	Input   json.RawMessage
	Params  json.RawMessage // object

	// Task and Step are where the job comes from: the id of the task, and the name of the step, as a path if it is
	// in a flow inside another. Flow is the slug of the task's flow, "" when it has none.
	Task, Flow, Step string
	// Unit says which of the step's Units this is, from 0. More may be appended to a fan-out later on.
	Unit, Units int
	// Attempt says which try it is, from 1; 0 when the engine does not tell.
	Attempt int

	// Log keeps what is written to it with a pulled or attached worker's job, up to 256 KiB. It is never nil.
	Log io.Writer
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

// Fatal is how the error is recognized, here and by an engine in the same program.
func (e *fatalError) Fatal() bool { return true }

// call runs a handler and makes an answer of what comes out of it, whatever that is.
func (w *Worker) call(ctx context.Context, h Handler, job Job) (answer wire.ExecAnswer) {
	defer func() {
		if p := recover(); p != nil {
			w.cfg.Logger.Error("a handler panicked", "service", job.Service, "job", job.ID, "stack", string(debug.Stack()))
			answer = wire.ExecAnswer{Error: fmt.Sprintf("handler panicked: %.200v", p)}
		}
	}()
	result, err := h(ctx, job)
	if err != nil {
		return failure(err)
	}
	raw, err := encode(result)
	if err != nil {
		return failure(Fatal(fmt.Errorf("the handler's result cannot be sent: %w", err)))
	}
	return wire.ExecAnswer{Result: raw}
}

func failure(err error) wire.ExecAnswer {
	var f interface{ Fatal() bool }
	answer := wire.ExecAnswer{Error: err.Error(), Fatal: errors.As(err, &f) && f.Fatal()}
	if answer.Error == "" { // it would mean success
		answer.Error = "failed"
	}
	return answer
}

func encode(result any) (json.RawMessage, error) {
	raw, ok := result.(json.RawMessage)
	if !ok {
		return json.Marshal(result)
	}
	if len(raw) > 0 && !json.Valid(raw) {
		return nil, errors.New("it is not valid JSON")
	}
	return raw, nil
}

const maxLog = 256 << 10

// log keeps what handlers write; they may do so from several goroutines.
type log struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Write(p[:min(len(p), maxLog-l.kept.Len())])
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}
