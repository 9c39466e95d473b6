package postgres

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// lastRowCache knows the last rows that this store has written to tasks which have not ended. Such
// a row is there, so the one that follows it need not look for it: rows go only together with their
// task, when retention deletes one that has ended, or when a flow is deleted. What others wrote to
// the journal since then is found by the primary key.
//
// Several members may use the database. So a flow is deleted at the beginning of an era: every
// member's row gets the number of the new one, which waits for batches under way, and a batch names
// the era that its memory is of. One of an earlier era writes nothing, learns the new one, forgets
// and is tried again. And a task that this member wrote to may be ended by another one, and be
// deleted, only after its shard was given back: that empties the memory, too.
//
// All this holds for one server with one history. A server that lost what it had confirmed (a
// replica that took over, a backup) is reached over new connections only, and each new connection
// empties the memory. A task that has not been heard of for a while is forgotten, too, and there is
// a bound on how many are known.
type lastRowCache struct {
	mu         sync.Mutex
	now        batchMoment
	young, old map[string]int64
	turned     time.Time
	versions   map[string]bool // that tasks have begun of: they are there until a flow is deleted
}

// batchMoment is when a batch was put together: what it learns counts only if nothing was forgotten
// since.
type batchMoment struct {
	era   int64 // of the database
	lapse int   // grows whenever everything is forgotten
}

// A task is forgotten after one to two terms without a commit, sooner when there are many.
const (
	memoryTerm = 30 * time.Second
	memorySize = 20_000
)

// beginBatch begins a batch.
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

// hasPrevious is true when the row before that of a commit is there.
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

// knowsVersion is true when a version is there.
func (m *lastRowCache) knowsVersion(version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.versions[version]
}

// learnVersion has room for as many versions as for tasks.
func (m *lastRowCache) learnVersion(id string) {
	if m.versions == nil || len(m.versions) >= memorySize {
		m.versions = map[string]bool{}
	}
	m.versions[id] = true
}

// recordBatch remembers the tasks of which it is known that they have not ended: they begin, or say
// so.
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

// forgetAll forgets everything.
func (m *lastRowCache) forgetAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clearLocked()
}

// enterEra begins an era, unless it has begun.
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
