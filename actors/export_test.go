package actors

import (
	"github.com/troupe-engine/troupe/actors/journal"
	"github.com/troupe-engine/troupe/actors/metrics"
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

// PendingOrders returns how many orders for other members a member has not delivered yet.
func (m *Member) PendingOrders() int { return m.orderForwarder.CountPending() }

// Departed returns how many departed members are remembered.
func (m *Member) Departed() int {
	m.peers.mu.Lock()
	defer m.peers.mu.Unlock()
	return len(m.peers.gone)
}

// IsJobQueued reports whether a job of a task waits to be sent to another member.
func (m *Member) IsJobQueued(carrier, task string) bool {
	return m.jobForwarder.IsQueued(carrier, task)
}

// SnapshotsAtOnce is the number of snapshot bytes on their way to the store above which no more are
// taken.
const SnapshotsAtOnce = journal.MaxSnapshotBytes

// Snapshots returns the bytes of snapshots on their way to the store, and how many tasks wait to
// write theirs.
func (m *Member) Snapshots() (bytes, waiting int) { return m.committer.Snapshots.Usage() }

// Tally counts the end of an attempt, like the actor of its task.
func (m *Member) Tally(end *flow.End) {
	m.metrics.CountRow(&metrics.Row{State: &flow.State{}, Effects: []flow.Effect{flow.Over{End: *end}}})
}
