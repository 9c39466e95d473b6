package actors

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Shared returns the jobs in a message to a step's actor, if it contains effects.
func Shared(message any) (jobs []flow.Job) {
	m, _ := message.(effectShare)
	for _, e := range m.effects {
		switch e := e.(type) {
		case flow.Dispatch:
			jobs = append(jobs, e.Job)
		case outstandingEffects:
			jobs = append(jobs, Shared(effectShare{effects: e.effects})...)
		}
	}
	return jobs
}

// Bringing returns how many orders for other members a member has not delivered yet.
func (m *Member) Bringing() (n int) {
	m.orderForwarder.mu.Lock()
	defer m.orderForwarder.mu.Unlock()
	for _, line := range m.orderForwarder.lineByShard {
		n += len(line.away) + len(line.waiting)
	}
	return n
}

// Departed returns how many departed members are remembered.
func (m *Member) Departed() int {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	return len(m.goneMembers)
}

// Waiting reports whether a job of a task waits to be sent to another member.
func (m *Member) Waiting(carrier, task string) bool {
	m.jobForwarder.mu.Lock()
	defer m.jobForwarder.mu.Unlock()
	line := m.jobForwarder.lineByCarrier[carrier]
	return line != nil && slices.ContainsFunc(line.waiting, func(l pendingErrand) bool { return l.Job.Task == task })
}

// SnapshotsAtOnce is the number of snapshot bytes on their way to the store above which no more are
// taken.
const SnapshotsAtOnce = maxSnapshotBytes

// Snapshots returns the bytes of snapshots on their way to the store, and how many tasks wait to
// write theirs.
func (m *Member) Snapshots() (bytes, waiting int) {
	m.snapshots.mu.Lock()
	defer m.snapshots.mu.Unlock()
	return m.snapshots.bytes, len(m.snapshots.waiting)
}

// Tally counts the end of an attempt, like the actor of its task.
func (m *Member) Tally(end *flow.End) {
	m.metrics.tallies.countAttempt(nil, &flow.Over{End: *end}, nil)
}
