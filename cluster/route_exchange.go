package cluster

import (
	"context"
	"sync"

	"github.com/troupe-engine/troupe/engine"
)

// Exchange carries out orders at the members that own their tasks. Each of them claims jobs of its own, about as many as it has orders: a job that begins
// by an order begins where that is carried out.
func (r *Router) Exchange(ctx context.Context, x engine.Exchange) (engine.Exchanged, error) {
	if err := x.Next.Check(); err != nil { // else it would be told of each order
		return engine.Exchanged{}, err
	}
	p, err := r.here(ctx)
	if err != nil {
		return engine.Exchanged{}, err
	}
	m := r.many(p, x.Orders)
	m.next = &next{poll: x.Next, left: max(x.Next.Max, 1), bytes: maxClaimed}
	outcomes, err := m.all(ctx)
	if err != nil {
		r.giveBack(m.next.jobs)
		return engine.Exchanged{}, err
	}
	return engine.Exchanged{Outcomes: outcomes, Jobs: m.next.jobs}, nil
}

// giveBack returns jobs that were claimed for one who did not wait for them.
func (r *Router) giveBack(jobs engine.Jobs) {
	if len(jobs) == 0 {
		return
	}
	claims := make([]engine.Claim, len(jobs))
	for i := range jobs {
		claims[i] = engine.Claim{Job: jobs[i].Job.ID(), Token: jobs[i].Token}
	}
	ctx, cancel := r.cfg.Host.Within(r.ctx, r.cfg.Patience)
	defer cancel()
	_ = engine.GiveBack(ctx, r, claims) // else others get them when the claims run out
}

// maxClaimed is how many bytes of jobs all members bring together, unless single ones have more.
const maxClaimed = 8 << 20

// next is what is claimed beside orders, by each member once. Nil claims nothing.
type next struct {
	poll        engine.Poll
	left, bytes int // that may still be asked for

	mu   sync.Mutex
	jobs engine.Jobs
}

// part is what a member is asked for that gets so many orders; nil = nothing.
func (n *next) part(orders int) *engine.Poll {
	if n == nil || n.left == 0 {
		return nil
	}
	p := n.poll
	p.Max = min(orders, n.left)
	p.Bytes = n.bytes * p.Max / n.left
	n.left -= p.Max
	n.bytes -= p.Bytes
	return &p
}

// rest is what is left for this member, which is the last one to be asked.
func (n *next) rest() *engine.Poll {
	if n == nil {
		return nil
	}
	return n.part(n.left)
}

func (n *next) got(jobs engine.Jobs) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.jobs = append(n.jobs, jobs...)
}
