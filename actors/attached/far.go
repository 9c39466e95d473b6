package attached

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// far is what another member has told of its credits.
type far struct {
	turn   int64
	groups map[string]*farGroup
}

// farGroup is a group of sessions at another member.
type farGroup struct {
	engine.Credit
	member string
	taken  int       // of its free credits, by jobs that were passed on since it was told of …
	since  time.Time // … the last one of them
}

// takenFor is how long it may take until a job that was passed on is taken note of where it went. Some never arrive.
const takenFor = 200 * time.Millisecond

// Credited says what credits another member has. Jobs that wait here go there as far as they reach.
func (s *Sessions) Credited(c *engine.Credits) {
	s.mu.Lock()
	f := s.far[c.Member]
	if f == nil {
		f = &far{groups: map[string]*farGroup{}}
		s.far[c.Member] = f
	}
	if c.Turn <= f.turn {
		s.mu.Unlock()
		return
	}
	f.turn = c.Turn
	if f.hear(c) {
		s.findFar()
	}
	passed, failed := s.passOn(), s.hopeless()
	s.mu.Unlock()
	land(passed)
	refuse(failed)
}

// hear takes what was told. It says whether there are other groups than before.
func (f *far) hear(c *engine.Credits) (others bool) {
	named := map[string]bool{}
	for _, credit := range c.List {
		key := keyOf(credit.Services, credit.Labels)
		named[key] = true
		known := f.groups[key]
		switch {
		case credit.Workers == 0:
			delete(f.groups, key)
			others = others || known != nil
		case known == nil:
			f.groups[key], others = &farGroup{Credit: credit, member: c.Member}, true
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
	return others
}

// Gone says that another member is no more.
func (s *Sessions) Gone(incarnation string) {
	s.mu.Lock()
	delete(s.far, incarnation)
	s.findFar()
	failed := s.hopeless()
	s.mu.Unlock()
	refuse(failed)
}

// findFar puts the groups of other members where jobs look for them.
func (s *Sessions) findFar() {
	s.farOffering = map[string][]*farGroup{}
	for _, member := range slices.Sorted(maps.Keys(s.far)) {
		groups := s.far[member].groups
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			g := groups[key]
			for _, service := range g.Services {
				s.farOffering[service] = append(s.farOffering[service], g)
			}
		}
	}
	s.look()
}

// freestFar is the group at another member with the most free credits of those that may get a job; nil = none has any.
func (s *Sessions) freestFar(exec *flow.Exec) (best *farGroup) {
	for _, g := range s.farOffering[exec.Service] {
		if free := g.Free - g.taken; free > 0 && (best == nil || free > best.Free-best.taken) && hasAll(g.Labels, exec.Labels) {
			best = g
		}
	}
	return best
}

// pass is the landing of a job that a group at another member is to have.
func (s *Sessions) pass(g *farGroup, p carry.Passage) landing {
	g.taken++
	g.since = s.host.Now()
	return landing{Passage: p, report: flow.Report{Lost: true, Unbegun: true, To: g.member}}
}

// passLate has jobs that wait go to members whose credits nobody has taken after all. Those for which nobody is listed any longer fail.
func (s *Sessions) passLate() {
	s.mu.Lock()
	for _, f := range s.far {
		for _, g := range f.groups {
			if s.since(g.since) > takenFor {
				g.taken = 0
			}
		}
	}
	passed, failed := s.passOn(), s.hopeless()
	s.mu.Unlock()
	land(passed)
	refuse(failed)
}

// passOn has jobs that wait go to members with free credits.
func (s *Sessions) passOn() (passed []landing) {
	if len(s.farOffering) == 0 {
		return nil
	}
	for _, key := range s.inTurn() {
		l := s.lines[key]
		for g := s.freestFar(l.exec); g != nil && len(l.jobs) > 0; g = s.freestFar(l.exec) {
			passed = append(passed, s.pass(g, s.pop(key, l).Passage))
		}
	}
	return passed
}
