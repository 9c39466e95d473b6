package journal

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/persistence"
)

// MaxSnapshotBytes is the number of unwritten snapshot bytes above which no more snapshots are
// taken. It bounds memory when many large tasks reach a snapshot at the same time. Actors that
// check at the same time may exceed it.
const MaxSnapshotBytes = 8 << 20

// SnapshotBudget counts the bytes of unwritten snapshots.
type SnapshotBudget struct {
	send    func(to *actor.PID, message any)
	mu      sync.Mutex
	bytes   int
	waiting []*actor.PID
}

// SnapshotTurn notifies a task that snapshots were written, so that it may check again for room.
type SnapshotTurn struct{}

// HasRoom reports whether another snapshot may be taken. If not, it notifies waits later, when
// there may be room.
func (s *SnapshotBudget) HasRoom(waits *actor.PID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes < MaxSnapshotBytes {
		return true
	}
	if waits != nil {
		s.waiting = append(s.waiting, waits)
	}
	return false
}

// Usage returns the bytes of unwritten snapshots, and how many tasks wait for room.
func (s *SnapshotBudget) Usage() (bytes, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, len(s.waiting)
}

func (s *SnapshotBudget) addSnapshot(c *persistence.Commit) {
	if c.Snapshot.Len() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += c.Snapshot.Len()
}

// releaseBatch subtracts the snapshots of a finished batch. It notifies all waiting actors, because
// some may no longer need room.
func (s *SnapshotBudget) releaseBatch(batch []*Pending) {
	n := 0
	for _, w := range batch {
		n += w.Commit.Snapshot.Len()
	}
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes -= n; s.bytes >= MaxSnapshotBytes {
		return
	}
	for _, pid := range s.waiting {
		s.send(pid, SnapshotTurn{})
	}
	s.waiting = nil
}
