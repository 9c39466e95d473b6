package workers

// removedMemory is the minimum time, in milliseconds, for which a removed worker is remembered.
const removedMemory = int64(10_000)

// removedWorkers are recently removed workers with their registration times. Late announcements of
// such registrations are ignored.
type removedWorkers struct {
	// registration times in milliseconds by id; all entries of before are older
	fresh, before map[string]int64
	since         int64 // when the first worker of fresh was removed
}

func (s *removedWorkers) addRemoved(id string, joined, now int64) {
	if s.fresh == nil || now-s.since > removedMemory {
		s.fresh, s.before, s.since = map[string]int64{}, s.fresh, now
	}
	s.fresh[id] = max(joined, s.fresh[id])
}

// hasRemoved reports whether a worker with a registration at that time was removed.
func (s *removedWorkers) hasRemoved(id string, joined int64) bool {
	for _, went := range []map[string]int64{s.fresh, s.before} {
		if last, ok := went[id]; ok && joined <= last {
			return true
		}
	}
	return false
}
