package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// A backlog is many jobs that nobody has come to: they wait for a carrier of this member, or for
// what they follow from to be stored. More of them would not be done sooner and only take memory.
// So while there is one, a task of a dag with many nodes that could begin has few of them under
// way: as many begin as end.
const (
	backlog         = 1000 // jobs, of all tasks
	sharedAllowance = 4096 // attempts under way that tasks may always have, together …
	maxAllowance    = 256  // … each of them so many at most …
	minAllowance    = 32   // … and at least
	backlogRecheck  = 5 * time.Millisecond
)

// waitingJobs is how many jobs nobody has come to.
func (m *Member) waitingJobs() int64 { return m.ready.Load() + m.unstoredAttempts.Load() }

// addUnstored counts attempts that this task has decided upon, and forgets those that are stored.
func (t *task) addUnstored(n int) {
	t.unstoredAttempts += n
	t.m.unstoredAttempts.Add(int64(n))
}

// countActiveAttempts is how many attempts of the task's plain steps are under way, as far as this
// member carries them.
func (t *task) countActiveAttempts() int {
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	return t.inbox.expectedJobs + t.unstoredAttempts
}

// attemptAllowance is how many attempts under way the task may always have. Each takes a few
// kilobytes of memory, so of many tasks each has fewer.
func (t *task) attemptAllowance() int {
	return min(max(sharedAllowance/max(int(t.m.taskActors.Load()), 1), minAllowance), maxAllowance)
}

// attemptLimit is how many attempts a decision about a command begins at most of nodes of a dag:
// until there is a backlog, or what the task may always have.
func (t *task) attemptLimit(cmd flow.Command) int {
	room, own := backlog-int(t.m.waitingJobs()), t.attemptAllowance()
	if room >= own {
		return room
	}
	least := 1
	switch c := cmd.(type) {
	case flow.Reports:
		least = len(c) // as many as end
	case flow.Proceed:
		least = own // it was held back long enough
	}
	return max(least, room, own-t.countActiveAttempts())
}

// isThrottled reports whether what was cut is not to go on yet. Each job that waits holds it back
// for a millisecond at most: those may be long ones, and what was cut may be for others than those
// who are busy.
func (t *task) isThrottled() bool {
	line := t.m.waitingJobs()
	if line < backlog || t.m.nowMillis()-t.cutAt >= line || t.countActiveAttempts() < t.attemptAllowance() {
		return false
	}
	return !slices.ContainsFunc(t.cutCommands, func(cmd flow.Command) bool { return cmd != flow.Command(flow.Proceed{}) })
}
