package cluster

import (
	"context"
	"sync"

	"github.com/troupe-engine/troupe/engine"
)

// Exchange carries out orders at the owners of their tasks. At each owner it also claims about as
// many jobs as it has orders there, because jobs that orders start are at the same member.
func (r *Router) Exchange(ctx context.Context, x engine.Exchange) (engine.Exchanged, error) {
	if err := x.Next.Check(); err != nil { // otherwise each order would return this error
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

// giveBack returns claimed jobs whose poller did not wait for them.
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
	_ = engine.GiveBack(ctx, r, claims) // on failure, other pollers get them later
}

// maxClaimed bounds the total bytes of jobs from all members, unless a single job is larger.
const maxClaimed = 8 << 20

// jointClaim is a claim of jobs that is split among members. Each member is asked once. A nil
// jointClaim claims nothing.
type jointClaim struct {
	poll             engine.Poll
	remaining, bytes int // number of jobs and bytes that were not requested yet

	mu   sync.Mutex
	jobs engine.Jobs
}

// splitPoll returns the part of the claim for a member that gets the given number of orders; nil
// means none.
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

// takeRest returns the rest of the claim, for this member, which is asked last.
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
