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

// hold is somebody's key as a journal tells of it, with when he asked, in milliseconds by the member that had the task then.
type hold struct {
	flow.Permit
	task        string
	holder      string // job id of an attempt, or of the task itself
	whole       bool   // it is the task's
	asked       int64
	given, over bool
}

// asks notes who asks for keys.
func (l *ledger) asks(a flow.Address, e *flow.Event, list []flow.Permit) {
	for _, p := range list {
		l.holds = append(l.holds, &hold{Permit: p, task: l.task, holder: flow.JobID(l.task, a), whole: a.Node == "", asked: e.At})
	}
}

// granted notes that somebody has the key that he asks for, and asks for the next one. Within one task it is known who has one.
func (l *ledger) granted(e *flow.Event) {
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
			l.problem("%s was given the key %s, which it did not wait for", e.Address(), e.Key)
			return
		default:
			h.given, given = true, true
			l.fits(h)
		}
	}
	if !given {
		l.problem("%s was given the key %s, which it has not asked for", e.Address(), e.Key)
	}
}

// fits counts who has a key in one task.
func (l *ledger) fits(h *hold) {
	n := 0
	for _, other := range l.holds {
		if other.Key == h.Key && other.given && !other.over && h.PerMS == 0 {
			n++
		}
	}
	if n > h.Limit {
		l.problem("%s is one of %d who have the key %s, of which %d may", h.holder, n, h.Key, h.Limit)
	}
}

// letsGo notes that a holder is over; "" = all are.
func (l *ledger) letsGo(holder string) {
	for _, h := range l.holds {
		h.over = h.over || holder == "" || h.holder == holder
	}
}

// stay is the time for which somebody had a key at least.
type stay struct {
	*hold
	from, to int64
}

// seen are the times for which somebody had keys, as workers saw it: from when the first one began a job until the last one was done, since a job
// keeps its place from one worker to the next; and a task while there are jobs of it.
func seen(holds []*hold, stints []*stint) (stays []stay, problems []string) {
	began := map[string][]*stint{} // by job, and by task
	for _, s := range stints {
		task, _, err := flow.ParseJobID(s.job)
		if err != nil {
			return nil, []string{err.Error()}
		}
		began[s.job], began[task] = append(began[s.job], s), append(began[task], s)
	}
	for _, h := range holds {
		at := began[h.holder]
		if h.whole {
			at = began[h.task]
		}
		if len(at) == 0 {
			continue
		}
		if !h.given {
			problems = append(problems, fmt.Sprintf("%s began %s, which was never given the key %s", at[0].worker, at[0].job, h.Key))
		}
		last := at[len(at)-1]
		stays = append(stays, stay{h, at[0].begun, max(last.begun, last.over)})
	}
	return stays, problems
}

// atOnce holds stays to limits: whoever has a key is one of no more than he may be one of. It tells how often somebody had the last place.
func atOnce(stays []stay) (full int, problems []string) {
	slices.SortFunc(stays, func(a, b stay) int { return cmp.Compare(a.from, b.from) })
	there := map[string][]stay{} // by key
	for _, s := range stays {
		if s.PerMS > 0 {
			continue
		}
		now := append(slices.DeleteFunc(there[s.Key], func(other stay) bool { return other.to <= s.from }), s)
		if there[s.Key] = now; len(now) > s.Limit {
			problems = append(problems, fmt.Sprintf("at %d, %s is one of %d who have the key %s, of which %d may", s.from, s.holder, len(now), s.Key, s.Limit))
		}
		if len(now) == s.Limit {
			full++
		}
	}
	return full, problems
}

// clocks is by how many milliseconds a member may be ahead of the store's time.
const clocks = 1000

// tooSoon holds beginnings to the limits of rates. The store lets somebody begin between when he asked and when a worker saw him: whenever
// that was, of those who asked and began within a time there are no more than may in it.
func tooSoon(stays []stay) (problems []string) {
	byKey := map[string][]stay{}
	for _, s := range stays {
		if s.PerMS > 0 {
			byKey[s.Key] = append(byKey[s.Key], s)
		}
	}
	for key, list := range byKey {
		slices.SortFunc(list, func(a, b stay) int { return cmp.Compare(a.from, b.from) })
		for _, first := range list {
			n := 0
			for _, s := range list {
				if s.asked < first.asked {
					continue
				}
				if n++; n > s.Limit*int((s.from-first.asked+clocks)/s.PerMS+1) {
					problems = append(problems, fmt.Sprintf("%d of the key %s asked and began from %d to %d, of which %d may in %d ms",
						n, key, first.asked, s.from, s.Limit, s.PerMS))
				}
			}
		}
	}
	return problems
}

// Seen holds what workers saw, as their diary tells, to the limits of the keys that their jobs and tasks had. It tells how often somebody
// had the last place of a key.
func (f Figures) Seen(t *testing.T, diary string) (full int) {
	t.Helper()
	stints, err := readStints(diary)
	require.NoError(t, err)
	stays, problems := seen(f.holds, stints)
	full, beyond := atOnce(stays)
	assert.Empty(t, slices.Concat(problems, beyond, tooSoon(stays)), "limits of keys, as workers saw it")
	return full
}
