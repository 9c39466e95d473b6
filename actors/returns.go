package actors

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Roaming is a Relay whose workers may move between members with their jobs. A worker moves when
// its member is gone or restarted, or when its stream to the member broke.
type Roaming interface {
	Relay
	// Grace returns how long to wait for a worker whose member is gone. With 0, other workers get
	// its jobs at once.
	Grace() time.Duration
	// Roam sets the function that sends orders about jobs to the owners of their tasks. The relay
	// retries after a busy answer.
	//
	// flow.Bring makes this member the carrier of a job that a worker brings. The job is then
	// dispatched as usual and goes to the worker that has it. flow.ReleaseFunction makes a held
	// function deliverable again.
	Roam(order func(ctx context.Context, orders engine.Orders) engine.Outcomes)
}

// sendJobOrders sends orders of the relay to the owners of tasks. It enters this member as the
// carrier of jobs that a worker brings.
func (m jobCarrying) sendJobOrders(ctx context.Context, jobs engine.Orders) engine.Outcomes {
	for i := range jobs {
		if b, brings := jobs[i].Command.(flow.Bring); brings {
			b.Carrier = m.incarnation
			jobs[i].Command = b
		}
	}
	if m.cfg.Others != nil {
		return m.cfg.Others.Do(ctx, jobs)
	}
	outcomes, err := m.DoAll(withPatience(ctx), jobs)
	if err != nil {
		outcomes = make(engine.Outcomes, len(jobs))
		for i := range outcomes {
			outcomes[i].Err = flow.Errorf(flow.Busy, "%v", err)
		}
	}
	return outcomes
}

// errUnknownCarrier is the answer to a member that is not known to be alive.
var errUnknownCarrier = flow.Errorf(flow.Busy, "the owner of the task does not know the member that asks: try again in a moment")

// migratedJobs are the jobs that workers take to other members when this member stops. Dispatches
// of these jobs are ignored, because an answer would make other workers start them again.
type migratedJobs struct {
	mu   sync.Mutex
	jobs map[string]map[flow.Address]int // deliveries by task and address
}

func (p *migratedJobs) addJob(job engine.JobKey, given int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == nil {
		p.jobs = map[string]map[flow.Address]int{}
	}
	if p.jobs[job.Task] == nil {
		p.jobs[job.Task] = map[flow.Address]int{}
	}
	p.jobs[job.Task][job.At] = given
}

func (p *migratedJobs) hasJob(job engine.JobKey, given int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.jobs[job.Task][job.At]
	return known && was >= given
}

func (p *migratedJobs) jobsOf(task string) (all []flow.Address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.jobs[task] {
		all = append(all, at)
	}
	return all
}
