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

// StartTask starts a task at the owner of its shard.
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
		// the id is new, so this request or an earlier try of it created the task
		started.Created = true
	}
	return started, err
}

// freeTries is how many ids to try until one belongs to this member. It is enough unless the member
// owns very few shards.
const freeTries = 1000

// reachableID returns the id for a task with a free choice of id. It returns the given id, unless
// its owner is unreachable. Then it returns an id of a shard that this member owns.
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

// probeMember sends an empty request to an unreachable member, to detect when it is reachable
// again. It does not wait.
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

// Do carries out an order at the owner of its task.
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

// askMember sends a request to another member, and returns the response of the expected type.
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

// askOwner sends a request to the owner of a task. It retries if the owner has changed or is
// unreachable, until the patience ends.
func askOwner[A any](r *Router, ctx context.Context, task string,
	here func(context.Context) (A, error), there func(context.Context, persistence.MemberRow) (A,
		error)) (answer A, err error) {
	p := r.place.Load()
	if _, isHere, _ := p.findOwner(task); isHere { // the frequent case needs no timer
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

// storeAway returns why this host cannot reach the store. nil means that it can, so waiting for
// another member is useful.
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

// giveUp returns the error for a caller after its own or the router's patience has ended. Another
// member may reach the owner.
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
