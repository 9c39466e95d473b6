package errands

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// permitHold is a permit according to a journal. The time of its request is in milliseconds by the
// clock of the member that owned the task.
type permitHold struct {
	flow.Permit
	task        string
	holder      string // job id of an attempt, or of the task itself
	ofTask      bool   // the holder is the task
	asked       int64
	given, over bool
}

// addHolds records requested permits.
func (l *journalLedger) addHolds(a flow.Address, e *flow.Event, list []flow.Permit) {
	for _, p := range list {
		l.holds = append(l.holds, &permitHold{Permit: p, task: l.task, holder: flow.JobID(l.task, a), ofTask: a.Node == "", asked: e.At})
	}
}

// grantHold records that a holder got its permit and requests the next one. The holders within one
// task are known exactly.
func (l *journalLedger) grantHold(e *flow.Event) {
	holder, given := flow.JobID(l.task, e.Address()), false
	if e.Node == "" {
		holder = flow.JobID(l.task, flow.Address{Attempt: e.Attempt})
	}
	for _, h := range l.holds {
		switch {
		case h.holder != holder || h.given:
		case given:
			h.asked = e.At
		case h.Key != e.Key || h.over:
			l.addProblem("%s was given the key %s, which it did not wait for", e.Address(), e.Key)
			return
		default:
			h.given, given = true, true
			l.checkLimit(h)
		}
	}
	if !given {
		l.addProblem("%s was given the key %s, which it has not asked for", e.Address(), e.Key)
	}
}

// checkLimit counts the holders of a key within one task.
func (l *journalLedger) checkLimit(h *permitHold) {
	n := 0
	for _, other := range l.holds {
		if other.Key == h.Key && other.given && !other.over && h.PerMS == 0 {
			n++
		}
	}
	if n > h.Limit {
		l.addProblem("%s is one of %d who have the key %s, of which %d may", h.holder, n, h.Key, h.Limit)
	}
}

// releaseHolds records that a holder has ended; "" means all.
func (l *journalLedger) releaseHolds(holder string) {
	for _, h := range l.holds {
		h.over = h.over || holder == "" || h.holder == holder
	}
}

// holdInterval is the minimal time for which a permit was held.
type holdInterval struct {
	*permitHold
	from, to int64
}

// holdIntervals returns the intervals for which permits were held, as observed by the workers. A
// job's interval lasts from its first start to its last end, because it keeps its permit across
// redeliveries. A task's interval covers all its jobs.
func holdIntervals(holds []*permitHold, stints []*jobExecution) (stays []holdInterval, problems []string) {
	began := map[string][]*jobExecution{} // by job and by task
	for _, s := range stints {
		task, _, err := flow.ParseJobID(s.job)
		if err != nil {
			return nil, []string{err.Error()}
		}
		began[s.job], began[task] = append(began[s.job], s), append(began[task], s)
	}
	for _, h := range holds {
		at := began[h.holder]
		if h.ofTask {
			at = began[h.task]
		}
		if len(at) == 0 {
			continue
		}
		if !h.given {
			problems = append(problems, fmt.Sprintf("%s began %s, which was never given the key %s", at[0].worker, at[0].job, h.Key))
		}
		last := at[len(at)-1]
		stays = append(stays, holdInterval{h, at[0].begunAt, max(last.begunAt, last.endedAt)})
	}
	return stays, problems
}

// checkConcurrency checks that the holders of a key never exceed its limit. It returns how often
// the limit was reached.
func checkConcurrency(stays []holdInterval) (full int, problems []string) {
	slices.SortFunc(stays, func(a, b holdInterval) int { return cmp.Compare(a.from, b.from) })
	there := map[string][]holdInterval{} // by key
	for _, s := range stays {
		if s.PerMS > 0 {
			continue
		}
		now := append(slices.DeleteFunc(there[s.Key], func(other holdInterval) bool { return other.to <= s.from }), s)
		if there[s.Key] = now; len(now) > s.Limit {
			problems = append(problems, fmt.Sprintf(
				"at %d, %s is one of %d who have the key %s, of which %d may", s.from, s.holder,
				len(now), s.Key, s.Limit))
		}
		if len(now) == s.Limit {
			full++
		}
	}
	return full, problems
}

// clockSkewMS is how many milliseconds a member may be ahead of the store's clock.
const clockSkewMS = 1000

// checkRates checks the limits of rates. The store grants a start at an unknown time between the
// request and the start observed by a worker. So it counts only holders that requested and started
// within a period.
func checkRates(stays []holdInterval) (problems []string) {
	byKey := map[string][]holdInterval{}
	for _, s := range stays {
		if s.PerMS > 0 {
			byKey[s.Key] = append(byKey[s.Key], s)
		}
	}
	for key, list := range byKey {
		slices.SortFunc(list, func(a, b holdInterval) int { return cmp.Compare(a.from, b.from) })
		for _, first := range list {
			n := 0
			for _, s := range list {
				if s.asked < first.asked {
					continue
				}
				if n++; n > s.Limit*int((s.from-first.asked+clockSkewMS)/s.PerMS+1) {
					problems = append(problems, fmt.Sprintf("%d of the key %s asked and began from %d to %d, of which %d may in %d ms",
						n, key, first.asked, s.from, s.Limit, s.PerMS))
				}
			}
		}
	}
	return problems
}

// Seen checks the diary of the workers against the limits of keys. It returns how often a limit was
// reached.
func (f Figures) Seen(t *testing.T, diary string) (full int) {
	t.Helper()
	stints, err := readExecutions(diary)
	require.NoError(t, err)
	stays, problems := holdIntervals(f.holds, stints)
	full, beyond := checkConcurrency(stays)
	assert.Empty(t, slices.Concat(problems, beyond, checkRates(stays)), "limits of keys, as workers saw it")
	return full
}
