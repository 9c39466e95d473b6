package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Claim is a claim as a poller knows it. Its Token may be missing where the worker's name is
// enough.
type Claim struct{ Job, Token string }

// Append adds units to a fanout that has begun and tells their indexes. The same request tells the
// same ones. A route, if given, must be the step's.
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

// Completing reports the end of a queue job. A late or repeated report is acknowledged and changes
// nothing.
func Completing(job string, r flow.Report) (Order, error) {
	task, at, err := flow.ParseJobID(job)
	r.Address, r.Poller = at, true
	return Order{Task: task, Command: r}, err
}

// Direct reports the end of a unit whose route is direct. Of the address only scope, node and unit
// are needed. An error is not tried again: nobody but the caller would.
func Direct(task string, at flow.Address, output json.RawMessage, failure string) Order {
	return Order{Task: task, Command: flow.Report{Address: at, Output: output, Error: failure, Fatal: failure != "", Direct: true}}
}

// Extended is what came of prolonging claims.
type Extended struct {
	Canceled []string // jobs that nobody waits for any longer
	Unheard  []string // jobs whose tasks were not to be reached for the moment: their claims last as long as before
}

// Extend prolongs a worker's claims from now on, by 0 as long as a claim holds. Ids that no job can
// have are among the canceled ones: the worker's other claims must not run out because of one. Nor
// must they because of one whose task is not to be reached before ctx ends; that is an error only
// when no task is.
func Extend(ctx context.Context, e Engine, worker string, claims []Claim, by time.Duration) (x Extended, err error) {
	orders := make(Orders, 0, len(claims))
	jobs := make([]string, 0, len(claims)) // of the orders
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

// isRetryable says that an order may be carried out when it comes again.
func isRetryable(err error) bool {
	kind := flow.ErrorKindOf(err)
	return kind == flow.Busy || kind == flow.Moved || errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// GiveBack returns claims, so that other pollers get the jobs at once. What is not claimed with
// that token (any longer), or was deleted with its task, stays as it is.
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

// firstFailure is the first refusal that is not for the reason that what was asked for is over.
func (o Outcomes) firstFailure() error {
	for i := range o {
		if err := o[i].Err; err != nil && !isTooLate(err) {
			return err
		}
	}
	return nil
}

// isTooLate says that an order came too late: nobody waits for the job any longer, somebody else
// has it, or it is deleted.
func isTooLate(err error) bool {
	kind := flow.ErrorKindOf(err)
	return kind == flow.Conflict || kind == flow.NotFound
}
