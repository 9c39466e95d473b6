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

// Roaming is a Relay whose workers may go to another member with the jobs they have, and come here
// with such jobs: when their member has gone, or the stream to it broke, or it was started anew.
type Roaming interface {
	Relay
	// Grace is for how long a worker is waited for whose member has gone. 0 = not at all: others
	// get its jobs at once.
	Grace() time.Duration
	// Roam tells it how jobs that a worker brings along become this member's: it asks for
	// flow.Bring of each, again when the answer is that somebody is busy. What becomes this
	// member's is sent as any other job, and goes to the worker that has it.
	Roam(bring func(ctx context.Context, jobs engine.Orders) engine.Outcomes)
}

// bringJobs asks those who have the tasks that this member carries jobs of theirs from now on,
// which a worker has brought along.
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

// errUnknownCarrier is the answer to a member that this one does not know to live yet, or not any
// longer.
var errUnknownCarrier = flow.Errorf(flow.Busy, "the owner of the task does not know the member that asks: try again in a moment")

// mayCarry reports whether a job may become a carrier's. Jobs of a member that joined after the
// last look at the members would be taken for lost.
func (m *Member) mayCarry(carrier string) bool {
	return carrier == m.incarnation || m.cfg.Others == nil || m.isMemberAlive(carrier)
}

// returnGrace is for how long workers are waited for.
func (m *Member) returnGrace() time.Duration {
	if r, ok := m.cfg.Relay.(Roaming); ok {
		return r.Grace()
	}
	return 0
}

// returnTerms is what is known of workers that may come to another member with their jobs.
func (m *Member) returnTerms() (r flow.Return) {
	if r.Grace = m.returnGrace().Milliseconds(); r.Grace > 0 && m.cfg.Workers != nil {
		r.Pushed = m.cfg.Workers.Pushed()
	}
	return r
}

// migratedJobs are the jobs with which their workers go on elsewhere when the member stops. Whoever
// still asks this one for them is to hear nothing: what it might say would have others begin them.
type migratedJobs struct {
	mu   sync.Mutex
	jobs map[string]map[flow.Address]int // by task: which times of their being given
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

// leaveCommand is what gives back the jobs of a member that stops. Only those who are told of it
// know that it went in order.
func (m *Member) leaveCommand(task string) flow.Leave {
	c := flow.Leave{Return: m.returnTerms()}
	if m.cfg.Others != nil {
		c.Parted = m.migratedJobs.jobsOf(task)
	}
	return c
}

// recoverCommand is what takes over the jobs of members that are gone.
func (m *Member) recoverCommand(task string) flow.Recover {
	r := flow.Recover{Since: m.owned.sinceOf(task), Visibility: m.cfg.Visibility.Milliseconds(), Alive: m.aliveMembers(), Return: m.returnTerms()}
	if r.Grace > 0 {
		r.Gone = m.listDepartures()
	}
	return r
}

// listDepartures tells which members were seen to go, and when.
func (m *Member) listDepartures() (all []flow.Departure) {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	for _, gone := range m.goneMembers {
		all = append(all, gone)
	}
	slices.SortFunc(all, func(a, b flow.Departure) int { return cmp.Compare(a.Member, b.Member) })
	return all
}
