package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/persistence"
)

// maxSnapshotBytes is the number of snapshot bytes on their way to the store above which no more
// snapshots are taken. Each is as large as its task's state. Without the bound, many large tasks at
// the same point would hold all of theirs in memory together, some of them several times. Actors
// that check at the same time may each take one.
const maxSnapshotBytes = 8 << 20

// snapshotBudget counts the snapshots on their way to the store.
type snapshotBudget struct {
	m       *Member
	mu      sync.Mutex
	bytes   int
	waiting []*actor.PID
}

// snapshotTurn tells a task that snapshots were written, so that there may be room for its own.
type snapshotTurn struct{}

// hasRoom reports whether another snapshot may be taken. If not, a waiting actor is notified when
// there may be room.
func (s *snapshotBudget) hasRoom(waits *actor.PID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes < maxSnapshotBytes {
		return true
	}
	if waits != nil {
		s.waiting = append(s.waiting, waits)
	}
	return false
}

func (s *snapshotBudget) addSnapshot(c *persistence.Commit) {
	if c.Snapshot.Len() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += c.Snapshot.Len()
}

// releaseBatch subtracts the snapshots of a finished batch. It notifies all waiting actors, because
// some of them may not need their turn anymore.
func (s *snapshotBudget) releaseBatch(batch []*pendingCommit) {
	n := 0
	for _, w := range batch {
		n += w.commit.Snapshot.Len()
	}
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes -= n; s.bytes >= maxSnapshotBytes {
		return
	}
	for _, pid := range s.waiting {
		s.m.sendMessage(pid, snapshotTurn{})
	}
	s.waiting = nil
}

// waitsForSnapshot reports whether the last commit of an ended task has to wait until there is room
// for its snapshot.
func (t *task) waitsForSnapshot(self *actor.PID) bool {
	return t.state.Status.Ended() && t.journal+t.openDraft.row.Len() >= smallJournal && !t.m.snapshots.hasRoom(self)
}
