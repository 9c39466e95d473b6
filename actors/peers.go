package actors

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// otherPeers tracks the other members: the live ones, the departed ones, and how to recover the
// jobs of departed ones. It is a structure with a lock.
type otherPeers struct {
	others      interface{ Alive() []string } // nil if there are none
	relay       Relay
	workers     Liveness
	shards      interface{ SinceOf(task string) int64 }
	incarnation string // incarnation of this member
	visibility  time.Duration
	now         func() int64 // the store's time in Unix milliseconds
	migrated    migratedJobs

	mu sync.Mutex
	// departed members, by incarnation, with the time of the notice
	gone map[string]flow.Departure
}

func newPeers(m *Member) *otherPeers {
	return &otherPeers{others: m.cfg.Others, relay: m.cfg.Relay, workers: m.cfg.Workers, shards: &m.owned, incarnation: m.incarnation,
		visibility: m.cfg.Visibility, now: m.nowMillis, gone: map[string]flow.Departure{}}
}

// markGone records that another member has left in order, or was fenced.
func (p *otherPeers) markGone(incarnation string, left bool) {
	p.forgetGone()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone[incarnation] = flow.Departure{Member: incarnation, At: p.now(), Left: left}
}

// forgetGone forgets members that departed long ago. By then, no task waits for their workers, and
// the cluster no longer lists them as alive.
func (p *otherPeers) forgetGone() {
	now, alive := p.now(), p.others.Alive()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.gone, func(incarnation string, d flow.Departure) bool {
		return now > d.At+p.returnGrace().Milliseconds()+goneFor && !slices.Contains(alive, incarnation)
	})
}

// goneFor is how long, in milliseconds, a departure is remembered after the time in which its
// workers may return.
const goneFor = 60_000

// aliveMembers returns the live members whose jobs continue when this member loads a task. A member
// that was reported gone is omitted even if the cluster still lists it.
func (p *otherPeers) aliveMembers() []string {
	if p.others == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.others.Alive()),
		func(incarnation string) bool { return p.gone[incarnation].Member != "" })
}

// isMemberAlive reports whether another member is alive.
func (p *otherPeers) isMemberAlive(incarnation string) bool {
	return slices.Contains(p.aliveMembers(), incarnation)
}

// mayCarry reports whether a member may become the carrier of a job. A member that is not known to
// be alive may not, because its jobs would count as lost.
func (p *otherPeers) mayCarry(carrier string) bool {
	return carrier == p.incarnation || p.others == nil || p.isMemberAlive(carrier)
}

// returnGrace returns how long to wait for workers that may return with their jobs.
func (p *otherPeers) returnGrace() time.Duration {
	if r, ok := p.relay.(Roaming); ok {
		return r.Grace()
	}
	return 0
}

// returnTerms returns the conditions for workers that may take their jobs to another member.
func (p *otherPeers) returnTerms() (r flow.Return) {
	if r.Grace = p.returnGrace().Milliseconds(); r.Grace > 0 && p.workers != nil {
		r.Pushed = p.workers.Pushed()
	}
	return r
}

// leaveCommand returns the command that gives back the jobs of a stopping member. In a cluster, the
// command names the jobs that workers take to other members.
func (p *otherPeers) leaveCommand(task string) flow.Leave {
	c := flow.Leave{Return: p.returnTerms()}
	if p.others != nil {
		c.Parted = p.migrated.jobsOf(task)
	}
	return c
}

// recoverCommand returns the command that recovers the jobs of members that are gone.
func (p *otherPeers) recoverCommand(task string) flow.Recover {
	r := flow.Recover{Since: p.shards.SinceOf(task), Visibility: p.visibility.Milliseconds(),
		Alive: p.aliveMembers(), Return: p.returnTerms()}
	if r.Grace > 0 {
		r.Gone = p.listDepartures()
	}
	return r
}

// listDepartures returns the departed members with their times.
func (p *otherPeers) listDepartures() (all []flow.Departure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, gone := range p.gone {
		all = append(all, gone)
	}
	slices.SortFunc(all, func(a, b flow.Departure) int { return cmp.Compare(a.Member, b.Member) })
	return all
}
