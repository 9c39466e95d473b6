package attached

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// memberCredits holds the credits that another member has announced.
type memberCredits struct {
	lastTurn int64
	groups   map[string]*remoteGroup
}

// remoteGroup is a group of sessions at another member.
type remoteGroup struct {
	engine.Credit
	member string
	taken  int       // free credits used by jobs passed on since the announcement
	since  time.Time // time of the last job that was passed on
}

// takenTimeout is how long a job that was passed on may take to appear in the announcements of the
// other member. Some jobs never arrive.
const takenTimeout = 200 * time.Millisecond

// Credited stores the credits of another member, and passes waiting jobs to that member.
func (s *Sessions) Credited(c *engine.Credits) {
	s.mu.Lock()
	f := s.remoteMembers[c.Member]
	if f == nil {
		f = &memberCredits{groups: map[string]*remoteGroup{}}
		s.remoteMembers[c.Member] = f
	}
	if c.Turn <= f.lastTurn {
		s.mu.Unlock()
		return
	}
	f.lastTurn = c.Turn
	others, more := f.updateCredits(c)
	if others {
		s.indexRemoteGroups()
	}
	s.releaseHeld(more)
	passed, failed := s.passWaiting(), s.removeUnservable()
	s.mu.Unlock()
	landReports(passed)
	refuseJobs(failed)
}

// updateCredits applies an announcement. others reports whether the set of groups has changed. more
// lists the services with more workers.
func (f *memberCredits) updateCredits(c *engine.Credits) (others bool, more []string) {
	named := map[string]bool{}
	for _, credit := range c.List {
		key := keyOf(credit.Services, credit.Labels)
		named[key] = true
		known := f.groups[key]
		if known == nil || credit.Workers > known.Workers {
			more = append(more, credit.Services...)
		}
		switch {
		case credit.Workers == 0:
			delete(f.groups, key)
			others = others || known != nil
		case known == nil:
			f.groups[key], others = &remoteGroup{Credit: credit, member: c.Member}, true
		default:
			known.Credit, known.taken = credit, 0
		}
	}
	for key := range f.groups {
		if c.Whole && !named[key] {
			delete(f.groups, key)
			others = true
		}
	}
	return others, more
}

// Gone removes the credits of another member.
func (s *Sessions) Gone(incarnation string) {
	s.mu.Lock()
	delete(s.remoteMembers, incarnation)
	s.indexRemoteGroups()
	failed := s.removeUnservable()
	s.mu.Unlock()
	refuseJobs(failed)
}

// indexRemoteGroups rebuilds the index of other members' groups by service.
func (s *Sessions) indexRemoteGroups() {
	s.remoteOffering = map[string][]*remoteGroup{}
	for _, member := range slices.Sorted(maps.Keys(s.remoteMembers)) {
		groups := s.remoteMembers[member].groups
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			g := groups[key]
			for _, service := range g.Services {
				s.remoteOffering[service] = append(s.remoteOffering[service], g)
			}
		}
	}
	s.updateMayServe()
}

// freestRemote returns the matching group at another member with the most free credits; nil if none
// has any.
func (s *Sessions) freestRemote(exec *flow.Exec) (best *remoteGroup) {
	for _, g := range s.remoteOffering[exec.Service] {
		if free := g.Free - g.taken; free > 0 && (best == nil || free > best.Free-best.taken) && hasAll(g.Labels, exec.Labels) {
			best = g
		}
	}
	return best
}

// passJob returns the lost report that passes a job to a group at another member.
func (s *Sessions) passJob(g *remoteGroup, p carriers.Passage) reportedJob {
	g.taken++
	g.since = s.host.Now()
	return reportedJob{Passage: p, report: flow.Report{Lost: true, Unbegun: true, To: g.member}}
}

// passOverdue frees reserved credits of other members that were not used in time, and passes
// waiting jobs to these members. Jobs without a listed worker fail.
func (s *Sessions) passOverdue() {
	s.mu.Lock()
	for _, f := range s.remoteMembers {
		for _, g := range f.groups {
			if s.elapsedSince(g.since) > takenTimeout {
				g.taken = 0
			}
		}
	}
	passed, failed := s.passWaiting(), s.removeUnservable()
	s.mu.Unlock()
	landReports(passed)
	refuseJobs(failed)
}

// passWaiting passes waiting jobs to members with free credits.
func (s *Sessions) passWaiting() (passed []reportedJob) {
	if len(s.remoteOffering) == 0 {
		return nil
	}
	for _, key := range s.keysByAge() {
		l := s.queues[key]
		for g := s.freestRemote(l.exec); g != nil && len(l.jobs) > 0; g = s.freestRemote(l.exec) {
			passed = append(passed, s.passJob(g, s.popJob(key, l).Passage))
		}
	}
	return passed
}
