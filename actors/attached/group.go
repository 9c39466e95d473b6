package attached

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// group is the sessions that offer the same services and have the same labels. Whoever looks for a free credit looks at groups,
// of which there are few, and in one at the session that has the most.
type group struct {
	key      string
	services []string // sorted
	labels   []string // sorted
	byFree   byFree
	free     int  // credits of all of them
	stirred  bool // others may have to be told of it
}

// byFree is a heap of sessions, the one with the most free credits first.
type byFree []*session

func (h byFree) Len() int           { return len(h) }
func (h byFree) Less(i, j int) bool { return h[i].counted > h[j].counted }
func (h byFree) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *byFree) Push(x any) {
	ses := x.(*session)
	ses.place = len(*h)
	*h = append(*h, ses)
}
func (h *byFree) Pop() any {
	old := *h
	ses := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return ses
}

func keyOf(services, labels []string) string {
	return strings.Join(services, "\x00") + "\x01" + strings.Join(labels, "\x00")
}

// enter puts a session where jobs look for it.
func (s *Sessions) enter(ses *session, services, labels []string) {
	key := keyOf(services, labels)
	g := s.groups[key]
	if g == nil {
		g = &group{key: key, services: services, labels: labels}
		s.groups[key] = g
		for _, service := range services {
			s.offering[service] = append(s.offering[service], g)
		}
	}
	ses.group, ses.counted = g, 0
	heap.Push(&g.byFree, ses)
	s.stir(g)
	s.recount(ses)
}

// quit takes a session out again.
func (s *Sessions) quit(ses *session) {
	g := ses.group
	g.free -= ses.counted
	heap.Remove(&g.byFree, ses.place)
	if len(g.byFree) == 0 {
		delete(s.groups, g.key)
		for _, service := range g.services {
			if s.offering[service] = slices.DeleteFunc(s.offering[service], func(o *group) bool { return o == g }); len(s.offering[service]) == 0 {
				delete(s.offering, service)
			}
		}
	}
	s.stir(g)
}

// recount keeps a session in its place among the others of its group. It is called whenever its free credits may have changed.
func (s *Sessions) recount(ses *session) {
	g, free := ses.group, max(ses.free(), 0)
	if free == ses.counted {
		return
	}
	g.free += free - ses.counted
	ses.counted = free
	heap.Fix(&g.byFree, ses.place)
	s.stir(g)
}

// freest is the session with the most free credits of those that may get a job; nil = none has any.
func (s *Sessions) freest(exec *flow.Exec) (best *session) {
	if s.leaving() {
		return nil
	}
	for _, g := range s.offering[exec.Service] {
		if ses := g.byFree[0]; ses.counted > 0 && (best == nil || ses.counted > best.counted) && hasAll(g.labels, exec.Labels) {
			best = ses
		}
	}
	return best
}

// does says whether the sessions of the group may get a job.
func (g *group) does(exec *flow.Exec) bool {
	_, offered := slices.BinarySearch(g.services, exec.Service)
	return offered && hasAll(g.labels, exec.Labels)
}

// hasAll says whether labels, which are sorted, have all that are wanted.
func hasAll(labels, wanted []string) bool {
	for _, label := range wanted {
		if _, has := slices.BinarySearch(labels, label); !has {
			return false
		}
	}
	return true
}

// credit is what others are told of a group. Who leaves gets no more jobs.
func (s *Sessions) credit(g *group) engine.Credit {
	c := engine.Credit{Services: g.services, Labels: g.labels}
	if !s.leaving() {
		c.Workers, c.Free = len(g.byFree), g.free
	}
	return c
}
