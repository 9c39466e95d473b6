package cluster

import (
	"context"
	"sync"

	"github.com/troupe-engine/troupe/engine"
)

// Exchange carries out orders at the members that own their tasks. Each of them claims jobs of its
// own, about as many as it has orders: a job that begins by an order begins where that is carried
// out.
func (r *Router) Exchange(ctx context.Context, x engine.Exchange) (engine.Exchanged, error) {
	if err := x.Next.Check(); err != nil { // else it would be told of each order
		return engine.Exchanged{}, err
	}
	p, err := r.awaitStart(ctx)
	if err != nil {
		return engine.Exchanged{}, err
	}
	m := r.newBatch(p, x.Orders)
	m.next = &jointClaim{poll: x.Next, remaining: max(x.Next.Max, 1), bytes: maxClaimed}
	outcomes, err := m.askAll(ctx)
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

// jointClaim is what is claimed beside orders, by each member once. Nil claims nothing.
type jointClaim struct {
	poll             engine.Poll
	remaining, bytes int // that may still be asked for

	mu   sync.Mutex
	jobs engine.Jobs
}

// splitPoll is what a member is asked for that gets so many orders; nil = nothing.
func (n *jointClaim) splitPoll(orders int) *engine.Poll {
	if n == nil || n.remaining == 0 {
		return nil
	}
	p := n.poll
	p.Max = min(orders, n.remaining)
	p.Bytes = n.bytes * p.Max / n.remaining
	n.remaining -= p.Max
	n.bytes -= p.Bytes
	return &p
}

// takeRest is what is left for this member, which is the last one to be asked.
func (n *jointClaim) takeRest() *engine.Poll {
	if n == nil {
		return nil
	}
	return n.splitPoll(n.remaining)
}

func (n *jointClaim) addJobs(jobs engine.Jobs) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.jobs = append(n.jobs, jobs...)
}
