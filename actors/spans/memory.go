package spans

import (
	"hash/maphash"

	"github.com/troupe-engine/troupe/flow/trace"
)

// known is a task whose journal was followed up to a row.
type known struct {
	trace   *trace.Trace // nil = its journal could not be read
	seq     int64
	flow    string
	version int
	size    int // as it was counted
}

// memory has the tasks that are followed: those that were heard of last, in two halves, of which the older one is forgotten when the other is full. Of
// what was forgotten it knows for long up to which row it was told, so its journal is read once more, at its end, and nothing is told twice.
type memory struct {
	newer, older  map[string]*known
	size          int // of the newer ones
	seed          maphash.Seed
	marks, marked map[uint64]int64 // rows by hashes of ids, likewise
}

const (
	half     = 32 << 20 // bytes
	oneTask  = 700      // bytes
	oneSpan  = 600      // bytes of one that is held
	halfMark = 1 << 17
)

func newMemory() memory {
	return memory{newer: map[string]*known{}, marks: map[uint64]int64{}, seed: maphash.MakeSeed()}
}

func (m *memory) of(task string) *known {
	if k := m.newer[task]; k != nil {
		return k
	}
	return m.older[task]
}

// keep remembers a task as it is now.
func (m *memory) keep(task string, k *known) {
	m.take(task)
	m.newer[task] = k
	k.size = oneTask + len(task)
	if k.trace != nil {
		k.size += oneSpan * k.trace.Held()
	}
	if m.size += k.size; m.size > half {
		m.forget()
	}
}

// take takes a task out of both halves.
func (m *memory) take(task string) {
	if k := m.newer[task]; k != nil {
		m.size -= k.size
	}
	delete(m.newer, task)
	delete(m.older, task)
}

// drop forgets a task that has ended.
func (m *memory) drop(task string) {
	m.take(task)
	hash := maphash.String(m.seed, task)
	delete(m.marks, hash)
	delete(m.marked, hash)
}

// forget lets the older half go.
func (m *memory) forget() {
	for task, k := range m.older {
		if k.trace == nil {
			continue
		}
		if len(m.marks) >= halfMark {
			m.marks, m.marked = map[uint64]int64{}, m.marks
		}
		m.marks[maphash.String(m.seed, task)] = k.seq
	}
	m.newer, m.older, m.size = map[string]*known{}, m.newer, 0
}

// forgotten says up to which row a task was told that is known no longer.
func (m *memory) forgotten(task string) (told int64, ok bool) {
	hash := maphash.String(m.seed, task)
	if told, ok = m.marks[hash]; !ok {
		told, ok = m.marked[hash]
	}
	return told, ok
}
