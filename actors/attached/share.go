package attached

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// What others are told of credits: changes are gathered for a moment, and everything is said again now and then, or when the others
// have changed, because word may get lost.
const (
	gatherFor  = 5 * time.Millisecond
	lookEvery  = 250 * time.Millisecond
	repeatFrom = 20 // looks without having said everything
)

// sharing is what relays tell each other. Its fields belong to the lock of Sessions.
type sharing struct {
	self    string
	alive   func() []string // nil = there are no others
	tell    func(*engine.Credits)
	stirred chan struct{}            // holds a token when something may have to be told
	changed []*group                 // since others were told
	told    map[string]engine.Credit // by the keys of groups
	said    int64                    // how often others were told
}

// Meet begins to share jobs with the relays of others.
func (s *Sessions) Meet(self string, alive func() []string, tell func(*engine.Credits)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sharing = sharing{self: self, alive: alive, tell: tell, stirred: make(chan struct{}, 1), told: map[string]engine.Credit{}}
	s.stirAll()
	s.done.Run(s.share)
}

// stir notes that others may have to be told of a group.
func (s *Sessions) stir(g *group) {
	if s.alive == nil || g.stirred {
		return
	}
	g.stirred = true
	s.changed = append(s.changed, g)
	select {
	case s.stirred <- struct{}{}:
	default:
	}
}

// taken notes that another member has given a job here: it counts one credit less than it was told, until it is told anew.
func (s *Sessions) taken(exec *flow.Exec) {
	for _, g := range s.offering[exec.Service] {
		if told, known := s.told[g.key]; known && hasAll(g.labels, exec.Labels) {
			told.Free = -1
			s.told[g.key] = told
			s.stir(g)
		}
	}
}

// stirAll notes it of all groups.
func (s *Sessions) stirAll() {
	for _, key := range s.groupKeys() {
		s.stir(s.groups[key])
	}
}

func (s *Sessions) groupKeys() []string { return slices.Sorted(maps.Keys(s.groups)) }

// share tells the others of credits until Close.
func (s *Sessions) share() {
	look, stop := s.host.Timer(lookEvery)
	defer func() { stop() }()
	looks, known := 0, ""
	for {
		stirred := s.idle(look)
		if stirred {
			s.gather()
		}
		if s.ctx.Err() != nil {
			return
		}
		if stirred {
			s.tellChanges()
		}
		if !host.Closed(look) {
			continue
		}
		look, stop = s.host.Timer(lookEvery)
		s.passLate()
		if now := names(s.alive()); now != known || looks >= repeatFrom {
			looks, known = 0, now
			s.tellWhole()
		}
		looks++
	}
}

// idle ends when something may have to be told, which it says, or it is time to look, or nobody is told any more.
func (s *Sessions) idle(look <-chan struct{}) (stirred bool) {
	s.host.Wait(func() bool { return len(s.stirred) > 0 || host.Closed(look) || s.ctx.Err() != nil })
	select {
	case <-s.ctx.Done():
	case <-s.stirred:
		stirred = true
	case <-look:
	}
	return take(s.stirred) || stirred // nothing depends on which it was of those that there were
}

// gather lets what is about to be told as well go along.
func (s *Sessions) gather() {
	over, stop := s.host.Timer(gatherFor)
	defer stop()
	s.host.Wait(func() bool { return host.Closed(over) || s.ctx.Err() != nil })
	select {
	case <-s.ctx.Done():
	case <-over:
	}
}

func names(all []string) (text string) {
	for _, name := range all {
		text += name + " "
	}
	return text
}

// tellChanges tells of the groups that differ from what others were told by so much that it matters.
func (s *Sessions) tellChanges() {
	var list []engine.Credit
	s.mu.Lock()
	for _, g := range s.changed {
		g.stirred = false
		now, was := s.credit(g), s.told[g.key]
		if !matters(was, now) {
			continue
		}
		if now.Workers == 0 {
			delete(s.told, g.key)
		} else {
			s.told[g.key] = now
		}
		list = append(list, now)
	}
	s.changed = nil
	news := s.news(list, false)
	s.mu.Unlock()
	if len(list) > 0 {
		s.tell(news)
	}
}

// matters says whether somebody who gives jobs would do so differently.
func matters(was, now engine.Credit) bool {
	by := max(now.Free-was.Free, was.Free-now.Free)
	return was.Workers != now.Workers || (was.Free == 0) != (now.Free == 0) || 4*by > was.Free
}

// tellWhole tells everything. A member that never had a worker has nothing to tell.
func (s *Sessions) tellWhole() {
	s.mu.Lock()
	if s.said == 0 && len(s.groups) == 0 {
		s.mu.Unlock()
		return
	}
	clear(s.told)
	list := make([]engine.Credit, 0, len(s.groups))
	for _, key := range s.groupKeys() {
		if c := s.credit(s.groups[key]); c.Workers > 0 {
			s.told[key] = c
			list = append(list, c)
		}
	}
	news := s.news(list, true)
	s.mu.Unlock()
	s.tell(news)
}

func (s *Sessions) news(list []engine.Credit, whole bool) *engine.Credits {
	s.said++
	return &engine.Credits{Member: s.self, Turn: s.said, Whole: whole, List: list}
}

// awaits says whether a worker that has no session, as far as is known, may soon have one: it is being attached, or was attached before the member
// began, or, for jobs that nobody else can carry out, its member has gone not long ago. Those that wait for a session's grace are there.
func (s *Sessions) awaits(exec *flow.Exec) bool {
	switch {
	case s.expects(exec):
		return true
	case s.opts.Workers == nil:
		return false
	case s.since(s.opened) < s.opts.Patience && s.opts.Workers.Awaited(exec):
		return true
	}
	return s.alive != nil && exec.Type == flow.ExecRemote && s.opts.Workers.Listed(exec)
}
