package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// A backlog is a large number of jobs that no carrier has started: they wait for a carrier of this
// member, or for a commit. Adding more would not finish work sooner and only take memory. So during
// a backlog, a dag task with many startable nodes keeps few attempts active: it starts as many as
// end.
const (
	backlog         = 1000 // jobs, of all tasks
	sharedAllowance = 4096 // active attempts that all tasks together may always have
	maxAllowance    = 256  // upper bound of the allowance of one task
	minAllowance    = 32   // lower bound of the allowance of one task
	backlogRecheck  = 5 * time.Millisecond
)

// addUnstored changes the number of attempts that this task has decided on and that are not stored
// yet.
func (t taskTurns) addUnstored(n int) {
	t.unstoredAttempts += n
	t.m.counts.unstoredAttempts.Add(int64(n))
}

// countActiveAttempts returns how many attempts of the task's plain steps are active on this
// member, including attempts that are not stored yet.
func (t taskTurns) countActiveAttempts() int {
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	return t.inbox.expectedJobs + t.unstoredAttempts
}

// attemptAllowance returns how many active attempts the task may always have. Each takes a few
// kilobytes of memory, so each task gets fewer when there are many tasks.
func (t taskTurns) attemptAllowance() int {
	return min(max(sharedAllowance/max(int(t.m.counts.taskActors.Load()), 1), minAllowance), maxAllowance)
}

// attemptLimit returns how many attempts of dag nodes the decision about a command may start. The
// limit is the room left before a backlog, or what the task may always have.
func (t taskTurns) attemptLimit(cmd flow.Command) int {
	room, own := backlog-int(t.m.counts.waitingJobs()), t.attemptAllowance()
	if room >= own {
		return room
	}
	least := 1
	switch c := cmd.(type) {
	case flow.Reports:
		least = len(c) // at least one new attempt for each attempt that ends
	case flow.Proceed:
		least = own // the pause after the cut decision is over
	}
	return max(least, room, own-t.countActiveAttempts())
}

// isThrottled reports whether the rest of a cut decision must still wait. Each waiting job delays
// the rest by one millisecond at most. The delay has this bound because the waiting jobs may be
// long or belong to other carriers.
func (t taskTurns) isThrottled() bool {
	line := t.m.counts.waitingJobs()
	if line < backlog || t.m.nowMillis()-t.cutAt >= line || t.countActiveAttempts() < t.attemptAllowance() {
		return false
	}
	return !slices.ContainsFunc(t.cutCommands, func(cmd flow.Command) bool { return cmd != flow.Command(flow.Proceed{}) })
}
