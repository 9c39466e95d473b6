package spans

import (
	"hash/maphash"

	"github.com/troupe-engine/troupe/flow/trace"
)

// followedTask is a task whose journal was followed up to a row.
type followedTask struct {
	trace   *trace.Trace // nil = its journal could not be read
	seq     int64
	flow    string
	version int
	size    int // as it was counted
}

// taskMemory has the tasks that are followed: those that were heard of last, in two halves, of
// which the older one is forgotten when the other is full. Of what was forgotten it knows for long
// up to which row it was told, so its journal is read once more, at its end, and nothing is told
// twice.
type taskMemory struct {
	newer, older           map[string]*followedTask
	size                   int // of the newer ones
	seed                   maphash.Seed
	newerMarks, olderMarks map[uint64]int64 // rows by hashes of ids, likewise
}

const (
	maxHalfBytes = 32 << 20 // bytes
	taskBytes    = 700      // bytes
	spanBytes    = 600      // bytes of one that is held
	maxHalfMarks = 1 << 17
)

func newMemory() taskMemory {
	return taskMemory{newer: map[string]*followedTask{}, newerMarks: map[uint64]int64{}, seed: maphash.MakeSeed()}
}

func (m *taskMemory) findTask(task string) *followedTask {
	if k := m.newer[task]; k != nil {
		return k
	}
	return m.older[task]
}

// keepTask remembers a task as it is now.
func (m *taskMemory) keepTask(task string, k *followedTask) {
	m.removeTask(task)
	m.newer[task] = k
	k.size = taskBytes + len(task)
	if k.trace != nil {
		k.size += spanBytes * k.trace.Held()
	}
	if m.size += k.size; m.size > maxHalfBytes {
		m.evictOlder()
	}
}

// removeTask takes a task out of both halves.
func (m *taskMemory) removeTask(task string) {
	if k := m.newer[task]; k != nil {
		m.size -= k.size
	}
	delete(m.newer, task)
	delete(m.older, task)
}

// forgetEnded forgets a task that has ended.
func (m *taskMemory) forgetEnded(task string) {
	m.removeTask(task)
	hash := maphash.String(m.seed, task)
	delete(m.newerMarks, hash)
	delete(m.olderMarks, hash)
}

// evictOlder lets the older half go.
func (m *taskMemory) evictOlder() {
	for task, k := range m.older {
		if k.trace == nil {
			continue
		}
		if len(m.newerMarks) >= maxHalfMarks {
			m.newerMarks, m.olderMarks = map[uint64]int64{}, m.newerMarks
		}
		m.newerMarks[maphash.String(m.seed, task)] = k.seq
	}
	m.newer, m.older, m.size = map[string]*followedTask{}, m.newer, 0
}

// forgottenAt says up to which row a task was told that is known no longer.
func (m *taskMemory) forgottenAt(task string) (told int64, ok bool) {
	hash := maphash.String(m.seed, task)
	if told, ok = m.newerMarks[hash]; !ok {
		told, ok = m.olderMarks[hash]
	}
	return told, ok
}
