package attached

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// sessionGroup holds the sessions with the same services and labels. A search for a free credit
// looks at the few groups, and takes the session with the most credits.
type sessionGroup struct {
	key      string
	services []string // sorted
	labels   []string // sorted
	byFree   byFree
	free     int  // free credits of all sessions
	changed  bool // the group may have to be announced
}

// byFree is a heap of sessions, most free credits first.
type byFree []*workerSession

func (h byFree) Len() int           { return len(h) }
func (h byFree) Less(i, j int) bool { return h[i].countedFree > h[j].countedFree }
func (h byFree) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}
func (h *byFree) Push(x any) {
	ses := x.(*workerSession)
	ses.heapIndex = len(*h)
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

// addToGroup adds a session to its group, so that it gets jobs.
func (s *Sessions) addToGroup(ses *workerSession, services, labels []string) {
	key := keyOf(services, labels)
	g := s.groups[key]
	if g == nil {
		g = &sessionGroup{key: key, services: services, labels: labels}
		s.groups[key] = g
		for _, service := range services {
			s.offering[service] = append(s.offering[service], g)
		}
	}
	ses.group, ses.countedFree = g, 0
	heap.Push(&g.byFree, ses)
	s.markChanged(g)
	s.updateFree(ses)
}

// removeFromGroup removes a session from its group.
func (s *Sessions) removeFromGroup(ses *workerSession) {
	g := ses.group
	g.free -= ses.countedFree
	heap.Remove(&g.byFree, ses.heapIndex)
	if len(g.byFree) == 0 {
		delete(s.groups, g.key)
		for _, service := range g.services {
			if s.offering[service] = slices.DeleteFunc(s.offering[service],
				func(o *sessionGroup) bool { return o == g }); len(s.offering[service]) == 0 {
				delete(s.offering, service)
			}
		}
	}
	s.markChanged(g)
}

// updateFree updates a session's position in its group. It is called whenever its free credits may
// have changed.
func (s *Sessions) updateFree(ses *workerSession) {
	g, free := ses.group, max(ses.freeCredits(), 0)
	if free == ses.countedFree {
		return
	}
	g.free += free - ses.countedFree
	ses.countedFree = free
	heap.Fix(&g.byFree, ses.heapIndex)
	s.markChanged(g)
}

// freestSession returns the matching session with the most free credits; nil if none has any.
func (s *Sessions) freestSession(exec *flow.Exec) (best *workerSession) {
	if s.isLeaving() {
		return nil
	}
	for _, g := range s.offering[exec.Service] {
		if ses := g.byFree[0]; ses.countedFree > 0 && (best == nil || ses.countedFree > best.countedFree) && hasAll(g.labels, exec.Labels) {
			best = ses
		}
	}
	return best
}

// canServe reports whether the sessions of the group match a job.
func (g *sessionGroup) canServe(exec *flow.Exec) bool {
	_, offered := slices.BinarySearch(g.services, exec.Service)
	return offered && hasAll(g.labels, exec.Labels)
}

// hasAll reports whether the sorted labels contain all wanted ones.
func hasAll(labels, wanted []string) bool {
	for _, label := range wanted {
		if _, has := slices.BinarySearch(labels, label); !has {
			return false
		}
	}
	return true
}

// creditOf returns the credits of a group to announce. A leaving member announces none.
func (s *Sessions) creditOf(g *sessionGroup) engine.Credit {
	c := engine.Credit{Services: g.services, Labels: g.labels}
	if !s.isLeaving() {
		c.Workers, c.Free = len(g.byFree), g.free
	}
	return c
}
