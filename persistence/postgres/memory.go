package postgres

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// lastRowCache remembers the last rows that this store wrote to unfinished tasks. Such a row still
// exists, so the commit that follows need not check for it. Rows are deleted only together with
// their task: by retention after its end, or with its flow. Rows that others wrote since then
// collide by the primary key.
//
// Several members may use the database. Deleting a flow therefore begins a new era: it writes the
// new number into every member's row, which waits for batches in progress. A batch carries the era
// of its memory. A batch of an earlier era writes nothing; the store then learns the new era, drops
// its memory and tries again. Another member can end and delete a task of this member only after
// its shard was released, and releasing drops the memory, too.
//
// All this holds for one server with one history. A server that lost confirmed writes (a promoted
// replica, a backup) is reached over new connections only, and each new connection drops the
// memory. Tasks without recent commits are dropped, too, and the number of tasks is bounded.
type lastRowCache struct {
	mu         sync.Mutex
	now        batchMoment
	young, old map[string]int64
	turned     time.Time
	versions   map[string]bool // versions of tasks started here; they exist until a flow is deleted
}

// batchMoment is the state in which a batch was assembled. Its results are remembered only if
// nothing was dropped since.
type batchMoment struct {
	era   int64 // era of the database
	lapse int   // grows with each complete drop
}

// A task is dropped after one to two terms without a commit, or sooner if there are many tasks.
const (
	memoryTerm = 30 * time.Second
	memorySize = 20_000
)

// beginBatch returns the current moment and drops old tasks.
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

// hasPrevious reports whether the row before that of a commit is known to exist.
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

// learnVersion remembers a version; there may be as many versions as tasks.
func (m *lastRowCache) learnVersion(id string) {
	if m.versions == nil || len(m.versions) >= memorySize {
		m.versions = map[string]bool{}
	}
	m.versions[id] = true
}

// recordBatch remembers the tasks that are known not to have ended: those that start, and those
// whose columns show it.
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

// forgetAll drops everything.
func (m *lastRowCache) forgetAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clearLocked()
}

// enterEra switches to an era; a new one drops everything.
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
