package actors

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// otherPeers knows the other members: which are alive, which have departed, and how to recover the
// jobs of those that have. It is a structure with a lock.
type otherPeers struct {
	others      interface{ Alive() []string } // nil if there are none
	relay       Relay
	workers     Liveness
	shards      interface{ SinceOf(task string) int64 }
	incarnation string // of this member
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

// forgetGone forgets members that departed long ago. No task waits for their workers anymore, and
// no view calls them alive.
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

// aliveMembers returns the other members whose jobs continue when this one loads a task. A member
// that was reported gone is not alive, whatever the cluster's view says.
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

// mayCarry reports whether a member may become the carrier of a job. Jobs of a member that joined
// after the last view of the cluster would be taken for lost.
func (p *otherPeers) mayCarry(carrier string) bool {
	return carrier == p.incarnation || p.others == nil || p.isMemberAlive(carrier)
}

// returnGrace returns how long to wait for returning workers.
func (p *otherPeers) returnGrace() time.Duration {
	if r, ok := p.relay.(Roaming); ok {
		return r.Grace()
	}
	return 0
}

// returnTerms returns the conditions for workers that may move to another member with their jobs.
func (p *otherPeers) returnTerms() (r flow.Return) {
	if r.Grace = p.returnGrace().Milliseconds(); r.Grace > 0 && p.workers != nil {
		r.Pushed = p.workers.Pushed()
	}
	return r
}

// leaveCommand returns the command that gives back the jobs of a stopping member. Only in a cluster
// does it name the migrated jobs, because only other members learn that this one left in order.
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
