package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Claim identifies a claim of a poller. Token may be "" if the name of the worker identifies the
// claim.
type Claim struct{ Job, Token string }

// Append adds units to a fanout that has started, and returns their indexes. A repetition with the
// same request id returns the same indexes. A route, if given, must be that of the step.
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
// accepted and changes nothing.
func Completing(job string, r flow.Report) (Order, error) {
	task, at, err := flow.ParseJobID(job)
	r.Address, r.Poller = at, true
	return Order{Task: task, Command: r}, err
}

// Direct returns the order that reports the end of a unit whose route is direct. The address needs
// only scope, node and unit. An error is final, because no carrier could repeat the work.
func Direct(task string, at flow.Address, output json.RawMessage, failure string) Order {
	return Order{Task: task, Command: flow.Report{Address: at, Output: output, Error: failure, Fatal: failure != "", Direct: true}}
}

// Extended is the result of extending claims.
type Extended struct {
	Canceled []string // jobs that no task waits for any more
	// Unheard lists jobs whose tasks could not be reached. Their claims were not extended.
	Unheard []string
}

// Extend extends a worker's claims from now on by the given time; 0 means the usual duration of a
// claim. Invalid job ids are returned as canceled, so that the worker's other claims are still
// extended. If only some tasks can be reached before ctx ends, there is no error.
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

// isRetryable reports whether a repetition of the order may succeed after this error.
func isRetryable(err error) bool {
	kind := flow.ErrorKindOf(err)
	return kind == flow.Busy || kind == flow.Moved || errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// GiveBack returns claimed jobs, so that other pollers get them at once. A job does not change if
// it is not claimed with that token any more, or was deleted with its task.
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

// firstFailure returns the first error except for orders that came too late.
func (o Outcomes) firstFailure() error {
	for i := range o {
		if err := o[i].Err; err != nil && !isTooLate(err) {
			return err
		}
	}
	return nil
}

// isTooLate reports whether the error means that an order came too late: no task waits for the job,
// another worker holds the job, or the task was deleted.
func isTooLate(err error) bool {
	kind := flow.ErrorKindOf(err)
	return kind == flow.Conflict || kind == flow.NotFound
}
