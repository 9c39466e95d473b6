package trace_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const order = `
start: pay
nodes:
  pay: {exec_type: queue, service: bank}
  ok: {kind: approval, params: {approval_key: ok}}
edges: [{from: pay, action: default, to: ok}]
`

// told applies events and returns the spans as lines.
func told(tr *trace.Trace, now int64, events ...flow.Event) (lines []string) {
	for i := range events {
		tr.Add(&events[i])
	}
	for _, s := range tr.Spans(now) {
		lines = append(lines, fmt.Sprint(s.Name, " ", s.Start, "-", s.End, " ", s.State, " ", s.Error))
	}
	return lines
}

func at(ms int64, t flow.EventType, node string, attempt int, more ...func(*flow.Event)) flow.Event {
	e := flow.Event{Type: t, At: ms, Node: node, Attempt: attempt}
	if node != "" {
		e.Visit = 1
	}
	for _, f := range more {
		f(&e)
	}
	return e
}

func status(s string) func(*flow.Event) { return func(e *flow.Event) { e.Status = s } }
func failed(s string) func(*flow.Event) {
	return func(e *flow.Event) { e.Error, e.Status = s, "error" }
}
func total(n int) func(*flow.Event) { return func(e *flow.Event) { e.Total = n } }
func unit(n int) func(*flow.Event)  { return func(e *flow.Event) { e.Unit = n } }

func TestATaskHasSpansWhileItRunsAndAtItsEnd(t *testing.T) {
	plan := flowtest.Plan(t, order)
	tr := trace.New("t", plan)
	require.Empty(t, tr.Spans(5), "before its first event there is nothing")
	require.Equal(t, []string{"start  10-10  ", "task  10-40 running ", "step pay 11-40 running ",
		"attempt pay 12-20 error no", "attempt pay 30-40 running "}, told(tr, 40,
		at(10, flow.TaskCreated, "", 0), at(11, flow.StepEntered, "pay", 0, total(1)),
		at(12, flow.AttemptsDispatched, "pay", 1, total(1)), at(20, flow.AttemptEnded, "pay", 1, failed("no")),
		at(30, flow.AttemptsDispatched, "pay", 2, total(1))))
	end := told(tr, 99, at(41, flow.AttemptEnded, "pay", 2, status("ok")), at(42, flow.StepEnded, "pay", 0),
		at(42, flow.StepEntered, "ok", 0), at(60, flow.TaskEnded, "", 0, status("canceled")))
	require.Equal(t, []string{"start  10-10  ", "task  10-60 canceled ",
		"step pay 11-42 completed ", "attempt pay 12-20 error no", "attempt pay 30-41 ok ",
		"wait approval 42-60 canceled "}, end)
	spans := tr.Spans(99)
	require.Equal(t, trace.Producer, spans[3].Kind)
	require.Equal(t, "bank", spans[3].Service)
	for _, s := range spans[1:] {
		require.Equal(t, spans[0].ID, s.Parent, "no parent is ever missing")
	}
}

func TestSpanIDsAreDeterministic(t *testing.T) {
	a := flow.Address{Scope: "s#1", Node: "pay", Visit: 1, Unit: 2, Attempt: 3}
	require.Equal(t, trace.SpanOf("t", a), trace.SpanOf("t", a))
	others := map[trace.SpanID]bool{trace.SpanOf("t", a): true}
	for _, b := range []flow.Address{{}, {Visit: -1}, {Scope: "s#1", Node: "pay", Visit: 1}, {Node: "pay", Visit: 1, Unit: 2, Attempt: 3}} {
		require.False(t, others[trace.SpanOf("t", b)])
		others[trace.SpanOf("t", b)] = true
	}
	require.NotEqual(t, trace.SpanOf("u", a), trace.SpanOf("t", a))
	require.Regexp(t, regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`), trace.Parent("t", nil, a))
}

func TestManyUnitsIncludeTheFailedAndTheSlowest(t *testing.T) {
	const units = 5000
	tr := trace.New("t", nil)
	events := []flow.Event{at(1, flow.TaskCreated, "", 0), at(1, flow.StepEntered, "each", 0,
		total(units)), at(2, flow.AttemptsDispatched, "each", 1, total(units))}
	for i := range units {
		e := at(10+int64(i), flow.AttemptEnded, "each", 1, unit(i), status("ok"))
		if i%1000 == 7 {
			failed("no")(&e)
		}
		events = append(events, e)
	}
	lines := told(tr, 9000, append(events, at(8000, flow.StepEnded, "each", 0))...)
	require.Len(t, lines, 3+5+20)
	require.Contains(t, lines, "attempt each 2-17 error no")
	require.Contains(t, lines, "attempt each 2-5009 ok ")
	require.NotContains(t, lines, "attempt each 2-20 ok ")
	for _, s := range tr.Spans(9000) {
		if s.Name == "step each" {
			require.Equal(t, []int{units, 5}, []int{s.Units, s.Failures})
		}
	}
}

func TestATaskHasNoMoreThanAThousandSpans(t *testing.T) {
	tr := trace.New("t", nil)
	tr.Add(&flow.Event{Type: flow.TaskCreated, At: 1})
	for i := range 20_000 {
		node := fmt.Sprint("n", i)
		for _, e := range []flow.Event{at(2, flow.StepEntered, node, 0, total(1)),
			at(3, flow.AttemptsDispatched, node, 1, total(1)), at(4, flow.AttemptEnded, node, 1,
				status("ok")), at(5, flow.StepEnded, node, 0)} {
			if i == 9999 && e.Error == "" && e.Type == flow.AttemptEnded {
				failed("no")(&e)
			}
			tr.Add(&e)
		}
	}
	spans := tr.Spans(6)
	require.Len(t, spans, trace.MaxSpans)
	require.Equal(t, 40_000-998, spans[1].LeftOut)
	require.Contains(t, told(tr, 6), "attempt n9999 3-4 error no", "what has failed is told")
}

func TestInnerSpansEndWithTheirStep(t *testing.T) {
	in := func(e *flow.Event) { e.Scope = "sub#1" }
	lines := told(trace.New("t", nil), 99, at(1, flow.TaskCreated, "", 0), at(2, flow.StepEntered, "sub", 0),
		at(3, flow.StepEntered, "a", 0, in, total(1)), at(4, flow.AttemptsDispatched, "a", 1, in, total(1)),
		at(9, flow.StepEnded, "sub", 0, func(e *flow.Event) { e.Error = "timeout" }))
	require.Equal(t, []string{"start  1-1  ", "task  1-99 running ", "step sub 2-9 failed timeout",
		"step a 3-9 canceled ", "attempt a 4-9 canceled "}, lines)
}

func TestFailuresAreTakenEvenAfterManySpans(t *testing.T) {
	tr := trace.New("t", nil)
	tr.Add(&flow.Event{Type: flow.TaskCreated, At: 1})
	step := func(i int, how ...func(*flow.Event)) {
		node := fmt.Sprint("n", i)
		for _, e := range []flow.Event{at(int64(i), flow.StepEntered, node, 0, total(1)), at(int64(i), flow.StepEnded, node, 0, how...)} {
			tr.Add(&e)
		}
	}
	all, failures := 0, 0
	take := func() {
		for _, s := range tr.Take() {
			if all++; s.Failed {
				failures++
			}
		}
	}
	for i := range 1500 {
		if step(i + 2); i%500 == 0 {
			take()
		}
	}
	step(2000, failed("no"))
	take()
	require.Equal(t, 1, failures)
	require.LessOrEqual(t, all, trace.MaxSpans)
	require.Greater(t, all, trace.MaxSpans/2)
}

func TestHeldSpansAreBounded(t *testing.T) {
	tr := trace.New("t", flowtest.Plan(t, order))
	add := func(list ...flow.Event) {
		for i := range list {
			tr.Add(&list[i])
		}
	}
	add(at(10, flow.TaskCreated, "", 0), at(11, flow.StepEntered, "pay", 0, total(1_000_000)))
	for n := range 100 {
		add(at(12, flow.AttemptsDispatched, "pay", 1, unit(10_000*n), total(10_000)))
		require.LessOrEqual(t, tr.Held(), 32*trace.MaxSpans)
	}
	for n := range 50_000 {
		add(at(13, flow.AttemptEnded, "pay", 1, status("ok"), unit(n)))
	}
	require.Less(t, tr.Held(), 5*trace.MaxSpans)
	add(at(14, flow.StepEnded, "pay", 0), at(15, flow.TaskEnded, "", 0, status("completed")))
	require.Zero(t, tr.Held())
	list := tr.Take()
	require.Equal(t, "task ", list[len(list)-1].Name)
	require.Greater(t, list[len(list)-1].LeftOut, 900_000)
}
