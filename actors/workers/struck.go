package workers

// removedMemory is for how long it is remembered at least, in milliseconds, that a worker has gone.
const removedMemory = int64(10_000)

// removedWorkers are the workers that went not long ago, and when they had registered. What is told
// of such a registration afterwards was on its way and brings nobody back.
type removedWorkers struct {
	fresh, before map[string]int64 // by id, in milliseconds; all before are older than the fresh ones
	since         int64            // when the first of the fresh ones went
}

func (s *removedWorkers) addRemoved(id string, joined, now int64) {
	if s.fresh == nil || now-s.since > removedMemory {
		s.fresh, s.before, s.since = map[string]int64{}, s.fresh, now
	}
	s.fresh[id] = max(joined, s.fresh[id])
}

// hasRemoved reports whether a worker has gone that registered then.
func (s *removedWorkers) hasRemoved(id string, joined int64) bool {
	for _, went := range []map[string]int64{s.fresh, s.before} {
		if last, ok := went[id]; ok && joined <= last {
			return true
		}
	}
	return false
}
