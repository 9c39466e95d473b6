package timeline_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/timeline"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

type event = flow.Event

func at(ms int64, t flow.EventType, node string, more event) event {
	more.Type, more.At, more.Node = t, ms, node
	if node != "" && more.Visit == 0 {
		more.Visit = 1
	}
	return more
}

// fold returns the timeline of a scope of a flow.
func fold(t *testing.T, text, scope string, events ...event) *timeline.Timeline {
	line := timeline.New(flowtest.Plan(t, text), scope)
	for i := range events {
		line.Add(&events[i])
	}
	return line
}

// lines returns the lanes as texts, critical ones with a star.
func lines(told timeline.Told) (list []string) {
	for _, l := range told.Lanes {
		text := fmt.Sprintf("%s#%d %d-%d %s", l.Node, l.Visit, l.Entered, l.Ended, l.State)
		for _, w := range l.Waits {
			text += fmt.Sprintf(" %s %d-%d", w.For, w.Start, w.End)
		}
		for _, a := range l.Attempts {
			text += fmt.Sprintf(" [%d.%d %d-%d %s]", a.Unit, a.Attempt, a.Start, a.End, a.State)
		}
		list = append(list, text)
	}
	for _, i := range told.Critical {
		list[i] = "*" + list[i]
	}
	return list
}

func TestExternalJobsAreWaitsUntilTheirEnd(t *testing.T) {
	line := fold(t, "start: a\nnodes: {a: {exec_type: external, service: s}}", "",
		at(10, flow.TaskCreated, "", event{}), at(11, flow.StepEntered, "a", event{Total: 1}),
		at(12, flow.AttemptsDispatched, "a", event{Attempt: 1, Total: 1}),
		at(13, flow.AttemptDeferred, "a", event{Attempt: 1,
			Input: []byte(`[{"service":"s","id":"j","pending":true}]`)}),
		at(20, flow.AttemptStarted, "a", event{Attempt: 1, Until: 18}),
		at(30, flow.AttemptEnded, "a", event{Attempt: 1, Status: "ok"}),
		at(30, flow.StepEnded, "a", event{}), at(30, flow.TaskEnded, "", event{Status: "completed"}))
	told := line.Tell(timeline.Window{Now: 40})
	require.Equal(t, []string{"*a#1 11-30 completed external 13-30 [0.1 12-30 ok]"}, lines(told))
	require.EqualValues(t, 18, told.Lanes[0].Attempts[0].Begun)
}

const queued = `
start: pay
nodes:
  pay: {exec_type: queue, service: bank}
  ok: {kind: approval, params: {approval_key: ok}}
edges: [{from: pay, action: default, to: ok}]
`

func TestVisitsHaveTheirAttemptsAndWaits(t *testing.T) {
	line := fold(t, queued, "",
		at(10, flow.TaskCreated, "", event{}), at(11, flow.StepEntered, "pay", event{Total: 1}),
		at(12, flow.AttemptsDispatched, "pay", event{Attempt: 1, Total: 1}), at(15, flow.AttemptClaimed, "pay", event{Attempt: 1}),
		at(20, flow.AttemptEnded, "pay", event{Attempt: 1, Status: "error", Error: "no", Due: 30}),
		at(31, flow.AttemptsDispatched, "pay", event{Attempt: 2, Total: 1}))
	require.Equal(t, []string{"*pay#1 11-0 running worker 12-15 retry 20-31 worker 31-0 [0.1 " +
		"12-20 error] [0.2 31-0 running]"}, lines(line.Tell(timeline.Window{Now: 40})))
	for _, e := range []event{
		at(33, flow.AttemptClaimed, "pay", event{Attempt: 2}), at(41, flow.AttemptEnded, "pay",
			event{Attempt: 2, Status: "ok"}), at(42, flow.StepEnded, "pay", event{}),
		at(42, flow.StepEntered, "ok", event{}), at(50, flow.TaskPaused, "", event{}),
		at(55, flow.TaskResumed, "", event{}), at(60, flow.TaskEnded, "", event{Status: "canceled"}),
	} {
		line.Add(&e)
	}
	told := line.Tell(timeline.Window{Now: 99})
	require.Equal(t, []string{
		"*pay#1 11-42 completed worker 12-15 retry 20-31 worker 31-33 [0.1 12-20 error] [0.2 31-41 ok]",
		"*ok#1 42-60 canceled approval 42-60",
	}, lines(told))
	require.Equal(t, []timeline.Wait{{For: "resume", Start: 50, End: 55}}, told.Pauses)
	require.Equal(t, [2]int64{10, 60}, [2]int64{told.From, told.To})
	require.Equal(t, []string{"*ok#1 42-60 canceled approval 42-60"},
		lines(line.Tell(timeline.Window{Now: 99, From: 43, To: 70})), "what is not in the window is left out")
}

func TestTheCriticalPathLeadsToTheEnd(t *testing.T) {
	step := func(node string, from, to int64) []event {
		return []event{at(from, flow.StepEntered, node, event{Total: 1}), at(to, flow.StepEnded, node, event{})}
	}
	events := []event{at(1, flow.TaskCreated, "", event{})}
	for _, list := range [][]event{step("a", 1, 10), step("quick", 10, 12), step("slow", 10, 50)} {
		events = append(events, list...)
	}
	events = append(events, at(50, flow.StepEnded, "gate", event{Status: "skipped"}))
	events = append(events, step("end", 50, 60)...)
	line := fold(t, `
mode: dag
nodes:
  a: {func: mul}
  quick: {func: mul, depends_on: [a]}
  slow: {func: mul, depends_on: [a]}
  gate: {func: mul, depends_on: [slow]}
  end: {func: mul, depends_on: [quick, gate]}
`, "", events...)
	require.Equal(t, []string{"*a#1 1-10 completed", "quick#1 10-12 completed",
		"*slow#1 10-50 completed", "*end#1 50-60 completed"},
		lines(line.Tell(timeline.Window{Now: 70})), "the way leads through a node that never began")
}

func TestAnInnerScopeHasItsOwnTimelineAndEndsWithItsStep(t *testing.T) {
	const inside = `
start: order
nodes:
  order: {kind: subflow, subflow: {start: ship, nodes: {ship: {exec_type: queue, service: ship}}}}
`
	events := []event{
		at(1, flow.TaskCreated, "", event{}), at(2, flow.StepEntered, "order", event{}),
		at(3, flow.StepEntered, "ship", event{Scope: "order#1", Total: 1}),
		at(4, flow.AttemptsDispatched, "ship", event{Scope: "order#1", Attempt: 1, Total: 1}),
		at(9, flow.StepEnded, "order", event{Error: "too late"}),
	}
	told := fold(t, inside, "order#1", events...).Tell(timeline.Window{Now: 20})
	require.Equal(t, []string{"*ship#1 3-9 canceled worker 4-9 [0.1 4-9 canceled]"}, lines(told))
	told = fold(t, inside, "", events...).Tell(timeline.Window{Now: 20})
	require.Equal(t, []string{"*order#1 2-9 failed"}, lines(told))
	require.True(t, told.Lanes[0].Inside)
	require.False(t, fold(t, inside, "order#1/ship#1").Known())
}

func TestManyAttemptsAreCountedInBins(t *testing.T) {
	const units = 100_000
	events := []event{at(1, flow.TaskCreated, "", event{}),
		at(1, flow.StepEntered, "pay", event{Total: units}), at(2, flow.AttemptsDispatched, "pay",
			event{Attempt: 1, Total: units})}
	for i := range units {
		e := at(2+int64(i), flow.AttemptEnded, "pay", event{Unit: i, Attempt: 1, Status: "ok"})
		if i%1000 == 7 {
			e.Status = "error"
		}
		events = append(events, e)
	}
	line := fold(t, queued, "", append(events, at(units+1, flow.StepEnded, "pay", event{}))...)
	lane := line.Tell(timeline.Window{Now: units + 2, Bins: 100}).Lanes[0]
	require.Empty(t, lane.Attempts)
	require.Len(t, lane.Bins, 100)
	require.Equal(t, units, lane.Bins[0].Running, "all began at once")
	failed := 0
	for i, b := range lane.Bins {
		failed += b.Failed
		require.Equal(t, 1+int64(i)*lane.BinMS, b.At)
		if i > 0 {
			require.Less(t, b.Running, lane.Bins[i-1].Running)
		}
	}
	require.Equal(t, units/1000, failed)
	require.Equal(t, units/1000, lane.Failed)
	few := line.Tell(timeline.Window{From: units - 50, Now: units + 2, Bins: 100}).Lanes[0]
	require.Empty(t, few.Bins)
	require.Len(t, few.Attempts, 52, "what is left in a window is told one by one")
}

func TestMemoryAndOutputAreBounded(t *testing.T) {
	line := fold(t, queued, "", at(1, flow.TaskCreated, "", event{}))
	const visits = 100_000
	for i := range visits {
		for _, e := range []event{at(int64(2+i), flow.StepEntered, "pay",
			event{Visit: i + 1, Total: 1}), at(int64(2+i), flow.AttemptsDispatched, "pay",
			event{Visit: i + 1, Attempt: 1, Total: 1}), at(int64(3+i), flow.StepEnded, "pay",
			event{Visit: i + 1})} {
			line.Add(&e)
		}
	}
	told := line.Tell(timeline.Window{Now: visits + 9, Bins: 10})
	require.Len(t, told.Lanes, timeline.MaxLanes)
	require.Equal(t, visits, len(told.Lanes)+told.LeftOut)
	require.Less(t, line.Bytes(), 32<<20)
	last := line.Tell(timeline.Window{From: visits - 3, Now: visits + 9})
	require.Equal(t, visits, last.Lanes[len(last.Lanes)-1].Visit, "the newest are there")
}
