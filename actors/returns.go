package actors

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Roaming is a Relay whose workers may move to another member with their jobs, and come here with
// such jobs. That happens when their member is gone or was restarted, or their stream to it broke.
type Roaming interface {
	Relay
	// Grace returns how long to wait for a worker whose member is gone. 0 means not at all: other
	// workers get its jobs at once.
	Grace() time.Duration
	// Roam sets the function by which this member becomes the carrier of jobs that a worker brings.
	// The relay sends flow.Bring for each job, and retries if the answer is busy. The jobs are then
	// sent like any other, and go to the worker that has them.
	Roam(bring func(ctx context.Context, jobs engine.Orders) engine.Outcomes)
}

// bringJobs asks the owners of tasks to make this member the carrier of jobs that a worker has
// brought.
func (m *Member) bringJobs(ctx context.Context, jobs engine.Orders) engine.Outcomes {
	for i := range jobs {
		b := jobs[i].Command.(flow.Bring)
		b.Carrier = m.incarnation
		jobs[i].Command = b
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

// errUnknownCarrier is the answer to a member that is not, or no longer, known to be alive.
var errUnknownCarrier = flow.Errorf(flow.Busy, "the owner of the task does not know the member that asks: try again in a moment")

// mayCarry reports whether a member may become the carrier of a job. Jobs of a member that joined
// after the last view of the cluster would be taken for lost.
func (m *Member) mayCarry(carrier string) bool {
	return carrier == m.incarnation || m.cfg.Others == nil || m.isMemberAlive(carrier)
}

// returnGrace returns how long to wait for returning workers.
func (m *Member) returnGrace() time.Duration {
	if r, ok := m.cfg.Relay.(Roaming); ok {
		return r.Grace()
	}
	return 0
}

// returnTerms returns the conditions for workers that may move to another member with their jobs.
func (m *Member) returnTerms() (r flow.Return) {
	if r.Grace = m.returnGrace().Milliseconds(); r.Grace > 0 && m.cfg.Workers != nil {
		r.Pushed = m.cfg.Workers.Pushed()
	}
	return r
}

// migratedJobs are the jobs that their workers take along to other members when this member stops.
// Requests for them are not answered, because an answer would make others start them again.
type migratedJobs struct {
	mu   sync.Mutex
	jobs map[string]map[flow.Address]int // by task: the deliveries
}

func (p *migratedJobs) addJob(job jobKey, given int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == nil {
		p.jobs = map[string]map[flow.Address]int{}
	}
	if p.jobs[job.task] == nil {
		p.jobs[job.task] = map[flow.Address]int{}
	}
	p.jobs[job.task][job.at] = given
}

func (p *migratedJobs) hasJob(job jobKey, given int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.jobs[job.task][job.at]
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

// leaveCommand returns the command that gives back the jobs of a stopping member. Only in a cluster
// does it name the migrated jobs, because only other members learn that this one left in order.
func (m *Member) leaveCommand(task string) flow.Leave {
	c := flow.Leave{Return: m.returnTerms()}
	if m.cfg.Others != nil {
		c.Parted = m.migratedJobs.jobsOf(task)
	}
	return c
}

// recoverCommand returns the command that recovers the jobs of members that are gone.
func (m *Member) recoverCommand(task string) flow.Recover {
	r := flow.Recover{Since: m.owned.sinceOf(task), Visibility: m.cfg.Visibility.Milliseconds(),
		Alive: m.aliveMembers(), Return: m.returnTerms()}
	if r.Grace > 0 {
		r.Gone = m.listDepartures()
	}
	return r
}

// listDepartures returns the departed members with their times.
func (m *Member) listDepartures() (all []flow.Departure) {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	for _, gone := range m.goneMembers {
		all = append(all, gone)
	}
	slices.SortFunc(all, func(a, b flow.Departure) int { return cmp.Compare(a.Member, b.Member) })
	return all
}
