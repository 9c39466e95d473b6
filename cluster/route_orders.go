package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// StartTask starts a task at the member that owns its shard.
func (r *Router) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	n.Traced = cmp.Or(n.Traced, engine.TracedOf(ctx))
	p, err := r.awaitStart(ctx)
	if err != nil {
		return engine.Started{}, err
	}
	plan, err := r.cfg.Plans.Plan(ctx, n.VersionID)
	if err != nil {
		return engine.Started{}, planReadError(err)
	}
	isFree := n.Task == "" && n.Key == "" && n.ID == ""
	if n.Task, err = n.TaskID(plan.FlowID); err != nil {
		return engine.Started{}, err
	}
	if isFree {
		n.Task = r.reachableID(p, n.Task)
	}
	if n.Key != "" || n.ID != "" {
		n.Request = rand.Text()
	}
	started, err := askOwner(r, ctx, n.Task, func(ctx context.Context) (engine.Started, error) {
		return p.local.StartTask(ctx, n)
	}, func(ctx context.Context, to persistence.MemberRow) (engine.Started, error) {
		m, err := askMember[*engine.Started](ctx, r, to, &n)
		if err != nil {
			return engine.Started{}, err
		}
		return *m, nil
	})
	if n.Key == "" && n.ID == "" && err == nil {
		// the id is new, so this request created the task, even if an earlier try did it
		started.Created = true
	}
	return started, err
}

// freeTries is the number of ids to try until one belongs to this member, if it owns any
// significant number of shards.
const freeTries = 1000

// reachableID returns the id for a task whose id is free to choose: the given one, unless its owner
// cannot be reached at the moment. Then it returns one that this member owns.
func (r *Router) reachableID(p *localMember, id string) string {
	to, _, nobody := p.findOwner(id)
	if nobody == nil && !r.unreachable.has(to.Incarnation) {
		return id
	}
	if nobody == nil {
		r.probeMember(to)
	}
	for range freeTries {
		other := engine.NewTaskID()
		if _, isHere, _ := p.findOwner(other); isHere {
			return other
		}
	}
	return id
}

// probeMember sends an empty request to a member that could not be reached, to notice when it can
// be reached again. It does not wait.
func (r *Router) probeMember(to persistence.MemberRow) {
	if !r.unreachable.isDue(to.Incarnation, r.cfg.Host.Now()) {
		return
	}
	r.work.Run(func() {
		ctx, cancel := r.cfg.Host.Within(r.ctx, probeTime)
		defer cancel()
		// askMember records the result
		_, _ = askMember[*engine.Outcomes](ctx, r, to, &engine.Orders{})
	})
}

// planReadError returns the engine's error for a plan that could not be read.
func planReadError(err error) error {
	if errors.Is(err, persistence.ErrUnavailable) {
		return fmt.Errorf("%w: %w", engine.ErrUnavailable, err)
	}
	return err
}

// Do carries out an order at the member that owns its task.
func (r *Router) Do(ctx context.Context, o engine.Order) (engine.Outcome, error) {
	p, err := r.awaitStart(ctx)
	if err != nil {
		return engine.Outcome{}, err
	}
	o = o.Named()
	return askOwner(r, ctx, o.Task, func(ctx context.Context) (engine.Outcome, error) {
		return p.local.Do(ctx, o)
	}, func(ctx context.Context, to persistence.MemberRow) (engine.Outcome, error) {
		m, err := askMember[*engine.Outcomes](ctx, r, to, &engine.Orders{o})
		if err != nil {
			return engine.Outcome{}, err
		}
		if len(*m) != 1 {
			return engine.Outcome{}, errors.New("another member has answered an order with none, or several")
		}
		out := (*m)[0]
		err, out.Err = out.Err, nil
		return out, ofAnother(err)
	})
}

// askMember sends a request to another member, and expects one type of response.
func askMember[A engine.Message](ctx context.Context, r *Router, to persistence.MemberRow, q engine.Message) (answer A, err error) {
	m, err := r.cfg.Peers.Ask(ctx, to, q)
	r.unreachable.recordReach(to.Incarnation, err)
	answer, ok := m.(A)
	if err == nil && !ok {
		err = errors.New("another member has answered something that was not asked")
	}
	r.forwards.countQuestion(q, m, err)
	return answer, ofAnother(err)
}

// askOwner sends a request to the owner of a task. It retries if the owner has changed or cannot be
// reached, until the caller's patience ends.
func askOwner[A any](r *Router, ctx context.Context, task string,
	here func(context.Context) (A, error), there func(context.Context, persistence.MemberRow) (A,
		error)) (answer A, err error) {
	p := r.place.Load()
	if _, isHere, _ := p.findOwner(task); isHere { // the hot path needs no timer
		if answer, err = here(ctx); !isRetryable(err) {
			return answer, err
		}
	}
	patient, cancel := r.withPatience(ctx)
	defer cancel()
	for wait := (retryBackoff{}); ; {
		seen := p.views.Current().Generation
		to, isHere, err := p.findOwner(task)
		switch {
		case isHere:
			answer, err = here(ctx)
		case err == nil:
			answer, err = there(patient, to)
		}
		if !isRetryable(err) {
			return answer, err
		}
		if away := p.storeAway(); away != nil {
			return answer, away
		}
		if !r.waitForView(patient, p, seen, &wait) {
			return answer, giveUp(ctx, task, err)
		}
	}
}

// storeAway returns why this host cannot reach the store; nil = it can, so waiting for another
// member makes sense.
func (p *localMember) storeAway() error {
	if err := p.local.Ready(); errors.Is(err, engine.ErrUnavailable) {
		return err
	}
	return nil
}

// withPatience limits how long a caller waits for an owner, unless the caller has a deadline.
func (r *Router) withPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return r.cfg.Host.Within(ctx, r.cfg.Patience)
}

// giveUp returns the error for a caller after its patience, or ours, has ended. Another member may
// reach the owner that this one cannot reach.
func giveUp(ctx context.Context, task string, err error) error {
	late, cut := errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled)
	switch {
	case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && late:
		return ctx.Err()
	case late || cut: // the context was not the caller's
		return engine.Unable(flow.Errorf(flow.Busy,
			"task %s: the member that has it has not answered in time: try again in a moment", task))
	}
	return engine.Unable(flow.Errorf(flow.Busy, "task %s cannot be reached for the moment: %v: try again in a moment", task, err))
}
