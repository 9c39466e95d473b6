package postgres

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// lastRowCache remembers the last rows that this store wrote to unfinished tasks, so that the next
// commit need not check for them. Rows are deleted only with their task: by retention after its
// end, or with its flow. Rows that others wrote since then collide by the primary key.
//
// Several members may use the database. So deleting a flow begins a new era: it writes the new
// number into every member's row, which waits for batches in progress. A batch of an earlier era
// writes nothing. The store then learns the new era, clears its cache and tries again. Another
// member can delete a task of this member only after its shard was released, which also clears the
// cache.
//
// The cache is valid for one server with one history. A server that lost confirmed writes is
// reached only through new connections, and each new connection clears the cache. Tasks without
// recent commits are dropped, and the number of tasks is bounded.
type lastRowCache struct {
	mu         sync.Mutex
	now        batchMoment
	young, old map[string]int64
	turned     time.Time
	versions   map[string]bool // versions of tasks started here; valid until a flow is deleted
}

// batchMoment identifies the state of the cache when a batch was assembled. The results of the
// batch are remembered only if the cache was not cleared since.
type batchMoment struct {
	era   int64 // era of the database
	lapse int   // number of times that the cache was cleared
}

// memoryTerm is the time after which tasks without a commit are dropped; it may take twice as long.
// memorySize bounds the number of tasks.
const (
	memoryTerm = 30 * time.Second
	memorySize = 20_000
)

// beginBatch drops old tasks and returns the current moment.
func (m *lastRowCache) beginBatch(now time.Time) batchMoment {
	m.mu.Lock()
	defer m.mu.Unlock()
	age := now.Sub(m.turned)
	if age > memoryTerm || len(m.young) > memorySize {
		m.young, m.old, m.turned = map[string]int64{}, m.young, now
	}
	if age > 2*memoryTerm {
		m.old = nil
	}
	return m.now
}

// hasPrevious reports whether the row before a commit is known to exist.
func (m *lastRowCache) hasPrevious(c *persistence.Commit) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.lastRow(c.Task)
	return known && last == c.Seq-1
}

func (m *lastRowCache) lastRow(task string) (int64, bool) {
	if last, known := m.young[task]; known {
		return last, true
	}
	last, known := m.old[task]
	return last, known
}

// knowsVersion reports whether a version is known to exist.
func (m *lastRowCache) knowsVersion(version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.versions[version]
}

// learnVersion remembers a version. It clears all versions when there are too many.
func (m *lastRowCache) learnVersion(id string) {
	if m.versions == nil || len(m.versions) >= memorySize {
		m.versions = map[string]bool{}
	}
	m.versions[id] = true
}

// recordBatch remembers the last rows of tasks that have not ended. A task is known not to have
// ended if it starts, or if its columns show that.
func (m *lastRowCache) recordBatch(at batchMoment, batch []persistence.Commit, answers []error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at != m.now {
		return
	}
	for i := range batch {
		c := &batch[i]
		_, known := m.lastRow(c.Task)
		if c.Create != nil && answers[i] == nil {
			m.learnVersion(c.Create.VersionID)
		}
		switch {
		case answers[i] != nil, c.Columns != nil && c.Columns.EndedAt != 0:
			delete(m.young, c.Task)
			delete(m.old, c.Task)
		case known, c.Create != nil, c.Columns != nil:
			m.young[c.Task] = c.Seq
		}
	}
}

// forgetAll clears the cache.
func (m *lastRowCache) forgetAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clearLocked()
}

// enterEra switches to an era. A new era clears the cache.
func (m *lastRowCache) enterEra(era int64) batchMoment {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.era != era {
		m.now.era = era
		m.clearLocked()
	}
	return m.now
}

func (m *lastRowCache) clearLocked() {
	m.now.lapse++
	m.young, m.old, m.versions = map[string]int64{}, nil, nil
}
