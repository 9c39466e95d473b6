package attached

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// What others are told of credits: changes are gathered for a moment, and everything is said again
// now and then, or when the others have changed, because word may get lost.
const (
	gatherFor     = 5 * time.Millisecond
	shareInterval = 250 * time.Millisecond
	repeatFrom    = 20 // looks without having said everything
)

// creditSharing is what relays tell each other. Its fields belong to the lock of Sessions.
type creditSharing struct {
	self          string
	alive         func() []string // nil = there are no others
	sendCredits   func(*engine.Credits)
	changeSignal  chan struct{}            // holds a token when something may have to be told
	changed       []*sessionGroup          // since others were told
	announced     map[string]engine.Credit // by the keys of groups
	announceCount int64                    // how often others were told
}

// Meet begins to share jobs with the relays of others.
func (s *Sessions) Meet(self string, alive func() []string, tell func(*engine.Credits)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creditSharing = creditSharing{self: self, alive: alive, sendCredits: tell, changeSignal: make(chan struct{}, 1), announced: map[string]engine.Credit{}}
	s.markAllChanged()
	s.done.Run(s.runSharing)
}

// markChanged notes that others may have to be told of a group.
func (s *Sessions) markChanged(g *sessionGroup) {
	if s.alive == nil || g.changed {
		return
	}
	g.changed = true
	s.changed = append(s.changed, g)
	select {
	case s.changeSignal <- struct{}{}:
	default:
	}
}

// noteTaken notes that another member has given a job here: it counts one credit less than it was
// told, until it is told anew.
func (s *Sessions) noteTaken(exec *flow.Exec) {
	for _, g := range s.offering[exec.Service] {
		if told, known := s.announced[g.key]; known && hasAll(g.labels, exec.Labels) {
			told.Free = -1
			s.announced[g.key] = told
			s.markChanged(g)
		}
	}
}

// markAllChanged notes it of all groups.
func (s *Sessions) markAllChanged() {
	for _, key := range s.groupKeys() {
		s.markChanged(s.groups[key])
	}
}

func (s *Sessions) groupKeys() []string { return slices.Sorted(maps.Keys(s.groups)) }

// runSharing tells the others of credits until Close.
func (s *Sessions) runSharing() {
	look, stop := s.host.Timer(shareInterval)
	defer func() { stop() }()
	looks, known := 0, ""
	for {
		stirred := s.awaitChange(look)
		if stirred {
			s.awaitMoreChanges()
		}
		if s.ctx.Err() != nil {
			return
		}
		if stirred {
			s.announceChanges()
		}
		if !host.Closed(look) {
			continue
		}
		look, stop = s.host.Timer(shareInterval)
		s.passOverdue()
		if now := joinNames(s.alive()); now != known || looks >= repeatFrom {
			looks, known = 0, now
			s.announceAll()
		}
		looks++
	}
}

// awaitChange ends when something may have to be told, which it says, or it is time to look, or
// nobody is told any more.
func (s *Sessions) awaitChange(look <-chan struct{}) (stirred bool) {
	s.host.Wait(func() bool { return len(s.changeSignal) > 0 || host.Closed(look) || s.ctx.Err() != nil })
	select {
	case <-s.ctx.Done():
	case <-s.changeSignal:
		stirred = true
	case <-look:
	}
	return takeToken(s.changeSignal) || stirred // nothing depends on which it was of those that there were
}

// awaitMoreChanges lets what is about to be told as well go along.
func (s *Sessions) awaitMoreChanges() {
	over, stop := s.host.Timer(gatherFor)
	defer stop()
	s.host.Wait(func() bool { return host.Closed(over) || s.ctx.Err() != nil })
	select {
	case <-s.ctx.Done():
	case <-over:
	}
}

func joinNames(all []string) (text string) {
	for _, name := range all {
		text += name + " "
	}
	return text
}

// announceChanges tells of the groups that differ from what others were told by so much that it
// matters.
func (s *Sessions) announceChanges() {
	var list []engine.Credit
	s.mu.Lock()
	for _, g := range s.changed {
		g.changed = false
		now, was := s.creditOf(g), s.announced[g.key]
		if !isSignificant(was, now) {
			continue
		}
		if now.Workers == 0 {
			delete(s.announced, g.key)
		} else {
			s.announced[g.key] = now
		}
		list = append(list, now)
	}
	s.changed = nil
	news := s.newCredits(list, false)
	s.mu.Unlock()
	if len(list) > 0 {
		s.sendCredits(news)
	}
}

// isSignificant reports whether somebody who gives jobs would do so differently.
func isSignificant(was, now engine.Credit) bool {
	by := max(now.Free-was.Free, was.Free-now.Free)
	return was.Workers != now.Workers || (was.Free == 0) != (now.Free == 0) || 4*by > was.Free
}

// announceAll tells everything. A member that never had a worker has nothing to tell.
func (s *Sessions) announceAll() {
	s.mu.Lock()
	if s.announceCount == 0 && len(s.groups) == 0 {
		s.mu.Unlock()
		return
	}
	clear(s.announced)
	list := make([]engine.Credit, 0, len(s.groups))
	for _, key := range s.groupKeys() {
		if c := s.creditOf(s.groups[key]); c.Workers > 0 {
			s.announced[key] = c
			list = append(list, c)
		}
	}
	news := s.newCredits(list, true)
	s.mu.Unlock()
	s.sendCredits(news)
}

func (s *Sessions) newCredits(list []engine.Credit, whole bool) *engine.Credits {
	s.announceCount++
	return &engine.Credits{Member: s.self, Turn: s.announceCount, Whole: whole, List: list}
}

// isWorkerAwaited reports whether a worker that has no session, as far as is known, may soon have
// one: it is being attached, or was attached before the member began, or, for jobs that nobody else
// can carry out, its member has gone not long ago. Those that wait for a session's grace are there.
func (s *Sessions) isWorkerAwaited(exec *flow.Exec) bool {
	switch {
	case s.isExpected(exec):
		return true
	case s.opts.Workers == nil:
		return false
	case s.elapsedSince(s.opened) < s.opts.Patience && s.opts.Workers.Awaited(exec):
		return true
	}
	return s.alive != nil && exec.Type == flow.ExecRemote && s.opts.Workers.Listed(exec)
}
