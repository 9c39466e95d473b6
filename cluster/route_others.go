package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Others gives the member on this host access to tasks and jobs of other members.
type Others struct{ r *Router }

// Others returns the access to the other members.
func (r *Router) Others() Others { return Others{r} }

// Do carries out orders at the owners of their tasks until they are answered or ctx ends; orders
// may be repeated. A busy error is retried, except for a claim, because the poller may get other
// jobs.
func (o Others) Do(ctx context.Context, orders engine.Orders) engine.Outcomes {
	p, err := o.r.awaitStart(ctx)
	if err != nil {
		return failOrders(orders, err)
	}
	m := o.r.newBatch(p, orders)
	for wait := (retryBackoff{}); ; {
		seen := p.views.Current().Generation
		m.askOwners(ctx, ctx)
		if m.retainOpen(isUnanswered); len(m.open) == 0 || !o.r.waitForView(ctx, p, seen, &wait) {
			return m.outcomes
		}
	}
}

func failOrders(orders engine.Orders, err error) engine.Outcomes {
	outcomes := make(engine.Outcomes, len(orders))
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}

func isUnanswered(o engine.Order, err error) bool {
	if _, claim := o.Command.(flow.Claim); claim {
		return isRetryable(err)
	}
	return isRetryable(err) || flow.ErrorKindOf(err) == flow.Busy || errors.Is(err, engine.ErrUnavailable)
}

// Owner returns the known owner of a task; "" means none at the moment.
func (o Others) Owner(task string) string {
	p := o.r.place.Load()
	if p == nil {
		return ""
	}
	to, _, err := p.findOwner(task)
	if err != nil {
		return ""
	}
	return to.Incarnation
}

// Carry makes another member, given by its incarnation, carry out or stop jobs. A nil error means
// that the other member is now responsible.
func (o Others) Carry(ctx context.Context, carrier string, errands engine.Errands) error {
	p, err := o.r.awaitStart(ctx)
	if err != nil {
		return err
	}
	to, known := p.views.Current().Member(carrier)
	if !known || to.FencedAt != 0 {
		return fmt.Errorf("%w: the incarnation %s has gone", ErrAway, carrier)
	}
	_, err = askMember[*engine.Heard](ctx, o.r, to, &errands)
	return err
}

// Stir notifies the owners of keys of a change. It never blocks, and notices may be lost. A key
// belongs to the shard of a task with the same name.
func (o Others) Stir(keys engine.Keys) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	there := map[string]*ownedKeys{}
	for _, key := range keys.Names {
		to, isHere, nobody := p.findOwner(key)
		switch {
		case isHere, nobody != nil: // the next owner checks the key itself
		case there[to.Incarnation] == nil:
			there[to.Incarnation] = &ownedKeys{to, []string{key}}
		default:
			there[to.Incarnation].keys = append(there[to.Incarnation].keys, key)
		}
	}
	for _, incarnation := range slices.Sorted(maps.Keys(there)) {
		at := there[incarnation]
		for part := range slices.Chunk(at.keys, mostOrders) {
			o.r.cfg.Peers.Tell(at.to, &engine.Keys{Names: part, Anew: keys.Anew})
		}
	}
}

// ownedKeys are keys of another member.
type ownedKeys struct {
	to   persistence.MemberRow
	keys []string
}

// Credits announces to the other members which jobs the attached workers of this member can take.
// It never blocks, and notices may be lost.
func (o Others) Credits(c *engine.Credits) { o.sendToAll(c) }

// Wanted offers jobs to the pollers of other members. It never blocks, and notices may be lost.
func (o Others) Wanted(jobs []engine.Offer) {
	for part := range slices.Chunk(jobs, mostOrders) {
		offers := engine.Offers(part)
		o.sendToAll(&offers)
	}
}

func (o Others) sendToAll(m engine.Message) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	for _, to := range p.views.Current().Living() {
		if to.Incarnation != p.me {
			o.r.cfg.Peers.Tell(to, m)
		}
	}
}

// Alive returns the incarnations of the other live members.
func (o Others) Alive() (alive []string) {
	p := o.r.place.Load()
	if p == nil {
		return nil
	}
	for _, m := range p.views.Current().Living() {
		if m.Incarnation != p.me {
			alive = append(alive, m.Incarnation)
		}
	}
	return alive
}
