package attached

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// gatherFor is how long changes of credits are collected. shareInterval is the pause between
// checks. After repeatFrom checks, or when the members have changed, all credits are announced
// again, because notices may be lost.
const (
	gatherFor     = 5 * time.Millisecond
	shareInterval = 250 * time.Millisecond
	repeatFrom    = 20 // number of checks without a full announcement
)

// creditSharing is the exchange of credits between relays. The lock of Sessions guards its fields.
type creditSharing struct {
	self          string
	alive         func() []string // nil if there are no other members
	sendCredits   func(*engine.Credits)
	changeSignal  chan struct{}            // holds a token when there may be changes to announce
	changed       []*sessionGroup          // groups changed since the last announcement
	announced     map[string]engine.Credit // last announced credits by group key
	announceCount int64                    // number of announcements
}

// Meet starts to share jobs with the relays of other members.
func (s *Sessions) Meet(self string, alive func() []string, tell func(*engine.Credits)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creditSharing = creditSharing{self: self, alive: alive, sendCredits: tell,
		changeSignal: make(chan struct{}, 1), announced: map[string]engine.Credit{}}
	s.markAllChanged()
	s.done.Run(s.runSharing)
}

// markChanged marks a group as changed, so that it is announced.
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

// noteTaken records that another member has sent a job here. That member counts one credit less
// than announced, so the group must be announced again.
func (s *Sessions) noteTaken(exec *flow.Exec) {
	for _, g := range s.offering[exec.Service] {
		if told, known := s.announced[g.key]; known && hasAll(g.labels, exec.Labels) {
			told.Free = -1
			s.announced[g.key] = told
			s.markChanged(g)
		}
	}
}

// markAllChanged marks all groups as changed.
func (s *Sessions) markAllChanged() {
	for _, key := range s.groupKeys() {
		s.markChanged(s.groups[key])
	}
}

func (s *Sessions) groupKeys() []string { return slices.Sorted(maps.Keys(s.groups)) }

// runSharing announces credits to the other members until Close.
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

// awaitChange waits until there may be changes to announce, the next check is due, or the sessions
// are closed. It reports whether there may be changes.
func (s *Sessions) awaitChange(look <-chan struct{}) (stirred bool) {
	s.host.Wait(func() bool { return len(s.changeSignal) > 0 || host.Closed(look) || s.ctx.Err() != nil })
	select {
	case <-s.ctx.Done():
	case <-s.changeSignal:
		stirred = true
	case <-look:
	}
	// the result must not depend on the random choice of select
	return takeToken(s.changeSignal) || stirred
}

// awaitMoreChanges waits for further changes, so that they are announced together.
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

// announceChanges announces the groups with significant changes of credits.
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

// isSignificant reports whether a change of credits affects where other members send jobs.
func isSignificant(was, now engine.Credit) bool {
	by := max(now.Free-was.Free, was.Free-now.Free)
	return was.Workers != now.Workers || (was.Free == 0) != (now.Free == 0) || 4*by > was.Free
}

// announceAll announces all groups, unless this member never had a worker.
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

// isWorkerAwaited reports whether a worker without a session here may soon get one. The worker is
// being attached, or was attached before the start. For jobs that only attached workers can carry
// out, its member may also have gone recently. Sessions in their grace period do not count.
func (s *Sessions) isWorkerAwaited(exec *flow.Exec) bool {
	switch {
	case s.isExpected(exec):
		return true
	case s.opts.Workers == nil:
		return false
	case s.elapsedSince(s.opened) < s.opts.Patience && s.opts.Workers.Awaited(exec):
		return true
	}
	return s.alive != nil && (exec.Type == flow.ExecRemote || exec.Type == flow.ExecCode) && s.opts.Workers.Listed(exec)
}
