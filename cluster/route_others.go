package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Others reaches what other members own and carry, for the member on this host.
type Others struct{ r *Router }

// Others is what the member on this host needs to know of the rest of the cluster.
func (r *Router) Others() Others { return Others{r} }

// Do carries out orders at whoever owns their tasks, here or elsewhere, until they are answered or ctx ends; each may be
// repeated. That somebody is busy is no answer.
func (o Others) Do(ctx context.Context, orders engine.Orders) engine.Outcomes {
	p, err := o.r.here(ctx)
	if err != nil {
		return all(orders, err)
	}
	m := o.r.many(p, orders)
	for wait := (pauses{}); ; {
		seen := p.views.Current().Generation
		m.round(ctx, ctx)
		if m.retain(unanswered); len(m.open) == 0 || !o.r.pause(ctx, p, seen, &wait) {
			return m.outcomes
		}
	}
}

func all(orders engine.Orders, err error) engine.Outcomes {
	outcomes := make(engine.Outcomes, len(orders))
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}

func unanswered(err error) bool {
	return again(err) || flow.ErrorKindOf(err) == flow.Busy || errors.Is(err, engine.ErrUnavailable)
}

// Withdraw tells the member that carries jobs that nobody waits for them any longer; best effort, it never blocks.
func (o Others) Withdraw(carrier string, jobs []string) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	to, known := p.views.Current().Member(carrier)
	if !known || to.FencedAt != 0 {
		return
	}
	for part := range slices.Chunk(jobs, mostOrders) {
		w := engine.Withdrawn(part)
		o.r.cfg.Peers.Tell(to, &w)
	}
}

// Wanted tells the other members of jobs, for the pollers that wait there; best effort, it never blocks.
func (o Others) Wanted(jobs []engine.Offer) {
	p := o.r.place.Load()
	if p == nil {
		return
	}
	for _, to := range p.views.Current().Living() {
		if to.Incarnation == p.me {
			continue
		}
		for part := range slices.Chunk(jobs, mostOrders) {
			offers := engine.Offers(part)
			o.r.cfg.Peers.Tell(to, &offers)
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
