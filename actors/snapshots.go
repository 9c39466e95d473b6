package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/persistence"
)

// snapshotsAtOnce is how many bytes of snapshots may be on their way to the store before no more are taken. Each is as large as its task's state:
// many large tasks that are at the same point would have all of theirs in memory together, some of them several times. Actors that look at the
// same time may each take one.
const snapshotsAtOnce = 8 << 20

// snapshots are those on their way to the store.
type snapshots struct {
	m       *Member
	mu      sync.Mutex
	bytes   int
	waiting []*actor.PID
}

// snapshotTurn tells a task that snapshots were written, so that there may be room for its own.
type snapshotTurn struct{}

// room says whether one more may be taken. Who waits is told when it is worth asking again.
func (s *snapshots) room(waits *actor.PID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes < snapshotsAtOnce {
		return true
	}
	if waits != nil {
		s.waiting = append(s.waiting, waits)
	}
	return false
}

func (s *snapshots) take(c *persistence.Commit) {
	if c.Snapshot.Len() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += c.Snapshot.Len()
}

// gone forgets those of a batch that is done with. All who wait are told: one of them may have no use for its turn any more.
func (s *snapshots) gone(batch []*writing) {
	n := 0
	for _, w := range batch {
		n += w.commit.Snapshot.Len()
	}
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes -= n; s.bytes >= snapshotsAtOnce {
		return
	}
	for _, pid := range s.waiting {
		s.m.tell(pid, snapshotTurn{})
	}
	s.waiting = nil
}

// waitsForSnapshot says whether a task that has ended has to wait with that until there is room for its snapshot.
func (t *task) waitsForSnapshot(self *actor.PID) bool {
	return t.state.Status.Ended() && t.journal+t.open.row.Len() >= smallJournal && !t.m.snapshots.room(self)
}
