package postgres

import (
	"sync"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// snapshotCache caches large snapshots that were read recently, because unpacking and sending them
// is most of the cost of a load. The key is the task, its creation time (an id may be reused) and
// the row of the snapshot. The cache is cleared on every new connection.
type snapshotCache struct {
	mu   sync.Mutex
	kept *lru.Cache[*cachedSnapshot]
}

type cachedSnapshot struct {
	created, seq int64
	snapshot     []byte
}

// largeSnapshot is the size in bytes from which a snapshot is cached. keptSnapshots is the total
// size of the cache.
const (
	largeSnapshot = 128 << 10
	keptSnapshots = 16 << 20
)

// knownLarges holds the keys of cached snapshots as query columns, so that the server does not send
// these snapshots.
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

// storeRead fills in the cached snapshots that were not sent, and caches the large snapshots that
// were sent.
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
