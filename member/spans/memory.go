package spans

import (
	"hash/maphash"

	"github.com/troupe-engine/troupe/flow/trace"
)

// followedTask is a task with a journal that was read up to row seq.
type followedTask struct {
	trace   *trace.Trace // nil if the journal could not be read
	seq     int64
	flow    string
	version int
	size    int // size as counted in taskMemory
}

// taskMemory holds the most recently followed tasks in two halves. When the newer half is full, the
// older half is dropped. For a dropped task, the number of the last exported row stays for a long
// time. So the journal is read only once more, at the end of the task, and nothing is exported
// twice.
type taskMemory struct {
	newer, older map[string]*followedTask
	size         int // bytes of the newer half
	seed         maphash.Seed
	// newerMarks and olderMarks hold last exported rows by hashes of task ids, in two halves as
	// well.
	newerMarks, olderMarks map[uint64]int64
}

const (
	maxHalfBytes = 32 << 20 // maximum bytes of a half
	taskBytes    = 700      // estimated bytes of a task
	spanBytes    = 600      // estimated bytes of a held span
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

// keepTask stores a task with its current state.
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

// removeTask removes a task from both halves.
func (m *taskMemory) removeTask(task string) {
	if k := m.newer[task]; k != nil {
		m.size -= k.size
	}
	delete(m.newer, task)
	delete(m.older, task)
}

// forgetEnded removes a task that has ended, with its mark.
func (m *taskMemory) forgetEnded(task string) {
	m.removeTask(task)
	hash := maphash.String(m.seed, task)
	delete(m.newerMarks, hash)
	delete(m.olderMarks, hash)
}

// evictOlder drops the older half. The last exported rows of its tasks stay as marks.
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

// forgottenAt returns the number of the last exported row of a dropped task. It returns false if
// the task was not dropped.
func (m *taskMemory) forgottenAt(task string) (told int64, ok bool) {
	hash := maphash.String(m.seed, task)
	if told, ok = m.newerMarks[hash]; !ok {
		told, ok = m.olderMarks[hash]
	}
	return told, ok
}
