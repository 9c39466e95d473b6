package postgres

import (
	"sync"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// snapshotCache keeps the large snapshots that were read last: unpacking and sending one that this
// store has read before is most of what it takes to bring its task into memory. A snapshot is known
// by its task, when that was created (its id may be used again), and the row it was made after.
// Like the store's memory it is empty whenever there is a new connection.
type snapshotCache struct {
	mu   sync.Mutex
	kept *lru.Cache[*cachedSnapshot]
}

type cachedSnapshot struct {
	created, seq int64
	snapshot     []byte
}

// From how many bytes on a snapshot is kept, and how many bytes of them.
const (
	largeSnapshot = 128 << 10
	keptSnapshots = 16 << 20
)

// knownLarges are what a query is told of the snapshots that need not be sent, in columns.
type knownLarges struct {
	of           map[string]*cachedSnapshot
	ids          []string
	created, seq []int64
}

func (l *snapshotCache) findKnown(ids []string) (k knownLarges) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if one, ok := l.kept.Get(id); ok {
			if k.of == nil {
				k.of = map[string]*cachedSnapshot{}
			}
			k.of[id] = one
			k.ids, k.created, k.seq = append(k.ids, id), append(k.created, one.created), append(k.seq, one.seq)
		}
	}
	return k
}

// storeRead puts the snapshots in that were not sent, and keeps large ones that were.
func (l *snapshotCache) storeRead(k knownLarges, found []persistence.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range found {
		r := &found[i]
		one := k.of[r.ID]
		switch {
		case r.Snapshot == nil && one != nil && one.seq == r.SnapshotSeq && one.created == r.CreatedAt:
			r.Snapshot = one.snapshot
		case len(r.Snapshot) >= largeSnapshot:
			l.kept.Put(r.ID, &cachedSnapshot{r.CreatedAt, r.SnapshotSeq, r.Snapshot}, len(r.Snapshot))
		}
	}
}

func (l *snapshotCache) clearAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Clear()
}
