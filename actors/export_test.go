package actors

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Shared are the jobs that a step's actor is sent, if a message is that.
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

// Bringing is how many orders a member has yet to bring to others.
func (m *Member) Bringing() (n int) {
	m.orderForwarder.mu.Lock()
	defer m.orderForwarder.mu.Unlock()
	for _, line := range m.orderForwarder.lineByShard {
		n += len(line.away) + len(line.waiting)
	}
	return n
}

// Departed is how many members are remembered to have gone.
func (m *Member) Departed() int {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	return len(m.goneMembers)
}

// Waiting reports whether a job of a task waits to be given to another member.
func (m *Member) Waiting(carrier, task string) bool {
	m.jobForwarder.mu.Lock()
	defer m.jobForwarder.mu.Unlock()
	line := m.jobForwarder.lineByCarrier[carrier]
	return line != nil && slices.ContainsFunc(line.waiting, func(l pendingErrand) bool { return l.Job.Task == task })
}

// SnapshotsAtOnce is how many bytes of snapshots may be on their way to the store before no more
// are taken.
const SnapshotsAtOnce = maxSnapshotBytes

// Snapshots are the bytes of those on their way to the store, and how many tasks wait with theirs.
func (m *Member) Snapshots() (bytes, waiting int) {
	m.snapshots.mu.Lock()
	defer m.snapshots.mu.Unlock()
	return m.snapshots.bytes, len(m.snapshots.waiting)
}

// Tally counts the end of an attempt, as the actor of its task does.
func (m *Member) Tally(end *flow.End) {
	m.metrics.tallies.countAttempt(nil, &flow.Over{End: *end}, nil)
}
