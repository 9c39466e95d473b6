package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/persistence"
)

// maxSnapshotBytes is how many bytes of snapshots may be on their way to the store before no more
// are taken. Each is as large as its task's state: many large tasks that are at the same point
// would have all of theirs in memory together, some of them several times. Actors that look at the
// same time may each take one.
const maxSnapshotBytes = 8 << 20

// snapshotBudget are those on their way to the store.
type snapshotBudget struct {
	m       *Member
	mu      sync.Mutex
	bytes   int
	waiting []*actor.PID
}

// snapshotTurn tells a task that snapshots were written, so that there may be room for its own.
type snapshotTurn struct{}

// hasRoom reports whether one more may be taken. Who waits is told when it is worth asking again.
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

// releaseBatch forgets those of a batch that is done with. All who wait are told: one of them may
// have no use for its turn any more.
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

// waitsForSnapshot reports whether a task that has ended has to wait with that until there is room
// for its snapshot.
func (t *task) waitsForSnapshot(self *actor.PID) bool {
	return t.state.Status.Ended() && t.journal+t.openDraft.row.Len() >= smallJournal && !t.m.snapshots.hasRoom(self)
}
