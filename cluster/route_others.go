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

// Others reaches what other members own and carry, for the member on this host.
type Others struct{ r *Router }

// Others is what the member on this host needs to know of the rest of the cluster.
func (r *Router) Others() Others { return Others{r} }

// Do carries out orders at whoever owns their tasks, here or elsewhere, until they are answered or
// ctx ends; each may be repeated. That somebody is busy is no answer, but to a claim: there are
// other jobs.
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

// Owner is who has a task as far as is known here; "" = nobody for the moment.
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

// Carry has another member, by its incarnation, carry out jobs, or let go of some. Without an error
// that is its business from now on.
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

// Stir tells the owners of keys that something has changed about them; best effort, it never
// blocks. A key is where a task of its name would be.
func (o Others) Stir(keys engine.Keys) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	there := map[string]*ownedKeys{}
	for _, key := range keys.Names {
		to, isHere, nobody := p.findOwner(key)
		switch {
		case isHere, nobody != nil: // whoever gets it looks for himself
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

// ownedKeys are keys that another member owns.
type ownedKeys struct {
	to   persistence.MemberRow
	keys []string
}

// Credits tells the other members for which jobs this one has attached workers; best effort, it
// never blocks.
func (o Others) Credits(c *engine.Credits) { o.sendToAll(c) }

// Wanted tells the other members of jobs, for the pollers that wait there; best effort, it never
// blocks.
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

// Alive are the other incarnations that live.
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
