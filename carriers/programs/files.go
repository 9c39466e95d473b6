package programs

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// Files lets programs report through an object store.
type Files interface {
	// Dispatch writes the job's specification, and returns its address.
	Dispatch(ctx context.Context, job *flow.Job) (address string, x flow.External, err error)
	// Follow waits for the end of a job. It calls working when the program reports its start.
	// exited is closed when the program has ended. said reports whether the files contain the end.
	Follow(ctx context.Context, x flow.External, exited <-chan struct{}, working func(since int64)) (status flow.ExternalStatus, said bool)
	// Cancel writes a file that cancels the job.
	Cancel(ctx context.Context, x flow.External) error
}

// specVariable is the environment variable with the address of the job's specification.
const specVariable = "TASK_SPEC_PATH"

// mayStay is how long a program may continue after its reported end.
const mayStay = 5 * time.Second

// reported runs a program that reports its result through files.
func (c *Carrier) reported(ctx context.Context, job *flow.Job, p program.Job) program.Result {
	if c.opts.Files == nil {
		return program.Result{Error: "this server has no object store", Fatal: true}
	}
	address, x, err := c.opts.Files.Dispatch(ctx, job)
	if err != nil {
		return program.Result{Error: err.Error(), Fatal: flow.ErrorKindOf(err) != ""}
	}
	p.Facts.Own[specVariable] = address
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	over, told, exited := make(chan program.Result, 1), make(chan word, 1), make(chan struct{})
	go func() { over <- c.runner.Run(running, p) }() // ends with the program
	go func() { told <- followFiles(following, c.opts.Files, x, exited) }()
	var res program.Result
	var w word
	select {
	case res = <-over:
		if res.PID == 0 {
			return res
		}
		close(exited)
		w = <-told
	case w = <-told:
		if !w.said {
			end(errors.New(w.Error))
		}
		res = finish(over, end)
	}
	if !w.said {
		// cancels work that the program may have started elsewhere
		_ = c.opts.Files.Cancel(context.WithoutCancel(ctx), x)
	}
	return res.Hide(program.Result{Output: w.Output, Error: w.Error, Metrics: res.Metrics, PID: res.PID})
}

// word is the end of a job according to its files.
type word struct {
	flow.ExternalStatus
	said bool
}

func followFiles(ctx context.Context, files Files, x flow.External, exited <-chan struct{}) (w word) {
	w.ExternalStatus, w.said = files.Follow(ctx, x, exited, func(since int64) { carriers.Working(ctx, since) })
	return w
}

// finish waits for the exit of a program that has reported its end.
func finish(over <-chan program.Result, end context.CancelCauseFunc) program.Result {
	timer := time.AfterFunc(mayStay, func() { end(errors.New("it has said that it has ended, and goes on")) })
	defer timer.Stop()
	return <-over
}
