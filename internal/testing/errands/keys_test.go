package errands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// granted returns a hold of a task's attempt, requested at 0.
func granted(task string, p flow.Permit) *permitHold {
	return &permitHold{Permit: p, task: task, holder: task + "/a", given: true, over: true}
}

// stintsOf returns the executions of diary lines.
func stintsOf(t *testing.T, lines ...string) []*jobExecution {
	path := filepath.Join(t.TempDir(), "diary")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	stints, err := readExecutions(path)
	require.NoError(t, err)
	return stints
}

// job returns the id of the attempt in granted.
func job(task string) string { return flow.JobID(task, flow.Address{Node: "a", Visit: 1, Attempt: 1}) }

// found returns the problems of tasks whose single jobs, with equal permits, ran at the given
// times.
func found(t *testing.T, p flow.Permit, times ...[2]int64) (full int, problems []string) {
	var holds []*permitHold
	var lines []string
	for i, at := range times {
		task := fmt.Sprint("t", i)
		h := granted(task, p)
		h.holder = job(task)
		holds = append(holds, h)
		lines = append(lines, fmt.Sprintf("w %s begins %d", job(task), at[0]))
		if at[1] > 0 {
			lines = append(lines, fmt.Sprintf("w %s ends %d", job(task), at[1]))
		}
	}
	stays, problems := holdIntervals(holds, stintsOf(t, lines...))
	require.Empty(t, problems)
	full, problems = checkConcurrency(stays)
	return full, append(problems, checkRates(stays)...)
}

func TestExceededLimitIsFound(t *testing.T) {
	two := flow.Permit{Key: "k", Limit: 2}
	full, problems := found(t, two, [2]int64{10, 20}, [2]int64{15, 25}, [2]int64{20, 30}, [2]int64{40, 0}, [2]int64{41, 50})
	require.Empty(t, problems)
	require.Equal(t, 2, full)
	_, problems = found(t, two, [2]int64{10, 20}, [2]int64{15, 25}, [2]int64{19, 30})
	require.Len(t, problems, 1)
	require.Contains(t, problems[0], "one of 3 who have the key k, of which 2 may")
}

func TestExceededRateIsFound(t *testing.T) {
	rate := flow.Permit{Key: "k", Limit: 2, PerMS: 1000}
	at := func(each int64) (times [][2]int64) {
		for i := range int64(20) {
			times = append(times, [2]int64{i * each, i*each + 1})
		}
		return times
	}
	_, problems := found(t, rate, at(500)...)
	require.Empty(t, problems)
	_, problems = found(t, rate, at(250)...)
	require.NotEmpty(t, problems)
}

func TestJobStartedWithoutItsPermitIsFound(t *testing.T) {
	h := &permitHold{Permit: flow.Permit{Key: "k", Limit: 2}, task: "t", holder: job("t")}
	_, problems := holdIntervals([]*permitHold{h}, stintsOf(t, "w "+job("t")+" begins 7"))
	require.Len(t, problems, 1)
}

func TestTaskHoldsItsPermitWhileItHasJobs(t *testing.T) {
	one := flow.Permit{Key: "k", Limit: 1}
	holds := []*permitHold{granted("s", one), granted("t", one)}
	for _, h := range holds {
		h.ofTask = true
	}
	stays, problems := holdIntervals(holds, stintsOf(t, "w "+job("s")+" begins 5", "v "+job("t")+" begins 7", "w "+job("s")+" ends 9"))
	require.Empty(t, problems)
	_, problems = checkConcurrency(stays)
	require.Len(t, problems, 1)
}

func TestJournalWithTooManyHoldersIsFound(t *testing.T) {
	const permits = `[{"k":"k","l":1}]`
	l := journalLedger{task: "t", attempts: map[flow.Address]*attemptRecord{}, requests: map[string]bool{}}
	l.applyEvent(&flow.Event{Type: flow.AttemptsDispatched, Node: "a", Visit: 1, Attempt: 1, Total: 2, Permits: []byte(permits)})
	give := func(unit int) {
		l.applyEvent(&flow.Event{Type: flow.PermitGranted, Node: "a", Visit: 1, Unit: unit, Attempt: 1, Key: "k"})
	}
	give(0)
	l.applyEvent(&flow.Event{Type: flow.AttemptEnded, Node: "a", Visit: 1, Attempt: 1})
	give(1)
	require.Empty(t, l.problems)
	l.applyEvent(&flow.Event{Type: flow.AttemptsDispatched, Node: "b", Visit: 1, Attempt: 1, Total: 1, Permits: []byte(permits)})
	l.applyEvent(&flow.Event{Type: flow.PermitGranted, Node: "b", Visit: 1, Attempt: 1, Key: "k"})
	require.Len(t, l.problems, 1)
	give(1)
	require.Len(t, l.problems, 2)
}
