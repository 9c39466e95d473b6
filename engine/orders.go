package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Claim identifies a claim of a poller. Token may be "" if the worker's name is sufficient.
type Claim struct{ Job, Token string }

// Append adds units to a fanout that has started, and returns their indexes. The same request
// returns the same indexes. A route, if given, must be the step's.
func Append(ctx context.Context, e Engine, task string, a flow.Append, request string) ([]int, error) {
	out, err := e.Do(ctx, Order{Task: task, Command: a, Request: request})
	if err != nil {
		return nil, err
	}
	indexes := make([]int, len(a.Items))
	for i := range indexes {
		indexes[i] = out.First + i
	}
	return indexes, nil
}

// Completing returns the order that reports the end of a queue job. A late or repeated report is
// acknowledged and changes nothing.
func Completing(job string, r flow.Report) (Order, error) {
	task, at, err := flow.ParseJobID(job)
	r.Address, r.Poller = at, true
	return Order{Task: task, Command: r}, err
}

// Direct returns the order that reports the end of a unit whose route is direct. Of the address,
// only scope, node and unit are needed. An error is final, because only the caller could retry.
func Direct(task string, at flow.Address, output json.RawMessage, failure string) Order {
	return Order{Task: task, Command: flow.Report{Address: at, Output: output, Error: failure, Fatal: failure != "", Direct: true}}
}

// Extended is the result of extending claims.
type Extended struct {
	Canceled []string // jobs that no task waits for any more
	// jobs whose tasks could not be reached: their claims end when they did before
	Unheard []string
}

// Extend extends a worker's claims from now on by the given time; 0 is the usual duration of a
// claim. Invalid job ids are returned as canceled, so that they do not make the worker's other
// claims expire. For the same reason a task that cannot be reached before ctx ends is an error only
// if no task can be reached.
func Extend(ctx context.Context, e Engine, worker string, claims []Claim, by time.Duration) (x Extended, err error) {
	orders := make(Orders, 0, len(claims))
	jobs := make([]string, 0, len(claims)) // job ids of the orders
	for _, c := range claims {
		task, at, err := flow.ParseJobID(c.Job)
		if err != nil {
			x.Canceled = append(x.Canceled, c.Job)
			continue
		}
		orders = append(orders, Order{Task: task, Command: flow.Extend{Address: at, Worker: worker, Token: c.Token, MS: by.Milliseconds()}})
		jobs = append(jobs, c.Job)
	}
	outcomes, err := e.DoAll(ctx, orders)
	if err != nil {
		return Extended{}, err
	}
	for i, out := range outcomes {
		switch {
		case isTooLate(out.Err):
			x.Canceled = append(x.Canceled, jobs[i])
		case out.Err != nil && (!isRetryable(out.Err) || len(x.Unheard)+1 == len(orders)):
			return Extended{}, out.Err
		case out.Err != nil:
			x.Unheard = append(x.Unheard, jobs[i])
		}
	}
	return x, nil
}

// isRetryable reports whether the order may succeed when it is repeated.
func isRetryable(err error) bool {
	kind := flow.ErrorKindOf(err)
	return kind == flow.Busy || kind == flow.Moved || errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// GiveBack returns claimed jobs, so that other pollers get them at once. A job that is not claimed
// with that token (any more), or that was deleted with its task, does not change.
func GiveBack(ctx context.Context, e Engine, claims []Claim) error {
	orders := make(Orders, len(claims))
	for i, c := range claims {
		task, at, err := flow.ParseJobID(c.Job)
		if err != nil {
			return err
		}
		orders[i] = Order{Task: task, Command: flow.GiveBack{Address: at, Token: c.Token}}
	}
	outcomes, err := e.DoAll(ctx, orders)
	if err != nil {
		return err
	}
	return outcomes.firstFailure()
}

// firstFailure returns the first error that is not "too late".
func (o Outcomes) firstFailure() error {
	for i := range o {
		if err := o[i].Err; err != nil && !isTooLate(err) {
			return err
		}
	}
	return nil
}

// isTooLate reports whether an order came too late: no task waits for the job any more, another
// worker holds it, or it is deleted.
func isTooLate(err error) bool {
	kind := flow.ErrorKindOf(err)
	return kind == flow.Conflict || kind == flow.NotFound
}
