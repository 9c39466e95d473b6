package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const begunOutside = `
start: a
nodes:
  a: {exec_type: external, service: svc, post: {output_key: out}}
`

// handedOver returns a task whose attempt waits for external jobs, each of them pending or not.
func handedOver(t *testing.T, pending ...bool) *table {
	tb := defers(t, begunOutside)
	r := flow.Report{Address: first()}
	for i, p := range pending {
		r.Deferred = append(r.Deferred, flow.External{Service: "svc", ID: string(rune('a' + i)), Pending: p})
	}
	tb.env.Now += 1000
	tb.must(t, r)
	return tb
}

// begins returns the times of the events in a decision that record the begin of an attempt.
func begins(d flow.Decision) (since []int64) {
	for i := range d.Events {
		if e := &d.Events[i]; e.Type == flow.AttemptStarted {
			since = append(since, e.Until)
		}
	}
	return since
}

// unit returns the only unit of the task's only step.
func (tb *table) unit() flow.Unit { return tb.state.Active()[0].Units[0] }

func TestAnAttemptIsDispatchedUntilItsExternalJobRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		pending []bool
		want    flow.UnitStatus
		waits   string
	}{
		"its job has yet to begin":   {[]bool{true}, flow.UnitDispatched, "external job svc a must start"},
		"its job is under way":       {[]bool{false}, flow.UnitRunning, "external job svc a must end"},
		"all of them have to begin":  {[]bool{true, true}, flow.UnitDispatched, "2 of 2 external jobs have not ended; the first is svc a"},
		"one of them is under way":   {[]bool{true, false}, flow.UnitRunning, "2 of 2 external jobs have not ended; the first is svc a"},
		"two of them are under way":  {[]bool{false, false}, flow.UnitRunning, "2 of 2 external jobs have not ended; the first is svc a"},
		"the other one is under way": {[]bool{false, true}, flow.UnitRunning, "2 of 2 external jobs have not ended; the first is svc a"},
	} {
		t.Run(name, func(t *testing.T) {
			tb := handedOver(t, tt.pending...)
			require.Equal(t, tt.want, tb.unit().Status)
			require.Equal(t, tt.waits, flow.Waiting(tb.state)[0].Text)
			since := begins(tb.must(t, flow.Working{Address: first(), At: tb.env.Now}))
			require.Equal(t, tt.want == flow.UnitDispatched, since != nil, "it begins once")
			require.Equal(t, flow.UnitRunning, tb.unit().Status)
		})
	}
}

func TestTheStartOfAnExternalJobIsStoredOnceAndInRange(t *testing.T) {
	for name, tt := range map[string]struct{ at, want int64 }{
		"as it says":                    {-300, -300},
		"its clock is behind":           {-3_600_000, -500},
		"its clock is ahead":            {3_600_000, 0},
		"it does not say when":          {-epoch, -500},
		"when it was handed over":       {-500, -500},
		"at the moment when it is told": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tb := handedOver(t, true)
			tb.env.Now += 500
			now := tb.env.Now
			require.Equal(t, []int64{now + tt.want}, begins(tb.must(t, flow.Working{Address: first(), At: now + tt.at})))
			tb.env.Now += 500
			require.Nil(t, tb.must(t, flow.Working{Address: first(), At: now}).Events)
			tb.must(t, outsideEnded(0, "7", ""))
			require.Equal(t, flow.TaskCompleted, tb.state.Status)
			require.Nil(t, tb.must(t, flow.Working{Address: first(), At: now}).Events, "nobody waits for it any longer")
		})
	}
}

func TestAnUnseenExternalJobHasBegunIfItSucceedsOrReportsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		failure string
		began   int64 // reported before its end; 0 if not reported
		begun   int64 // recorded time; -1 if none
	}{
		"it ends well and says when it began":   {"", 200, 200},
		"it ends well":                          {"", 0, 500},
		"it fails and says when it began":       {"it broke", 200, 200},
		"it fails and has never been under way": {"job never started", 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			tb := handedOver(t, true)
			tb.env.Now += 500
			end := outsideEnded(0, "", tt.failure)
			if tt.began > 0 {
				end.BeganAt = tb.env.Now - tt.began
			}
			var want []int64
			if tt.begun >= 0 {
				want = []int64{tb.env.Now - tt.begun}
			}
			require.Equal(t, want, begins(tb.must(t, end)))
			require.True(t, tb.state.Status.Ended())
		})
	}
}

func TestAnAttemptIsNotWorkedOnBeforeItsHandOver(t *testing.T) {
	tb := defers(t, begunOutside)
	require.Nil(t, tb.must(t, flow.Working{Address: first(), At: 1}).Events)
	tb.must(t, flow.Report{Address: first(), Deferred: []flow.External{{Service: "svc", ID: "j", Pending: true}}})
	other := first()
	other.Attempt = 2
	require.Nil(t, tb.must(t, flow.Working{Address: other, At: 1}).Events)
}

const byFiles = `
start: a
nodes:
  a: {exec: {type: process, command: ls, report: object_store}}
`

func TestAProgramWithFilesBeginsWithItsFirstReport(t *testing.T) {
	tb := defers(t, byFiles)
	require.Nil(t, tb.must(t, flow.Working{Address: first(), At: 1}).Events, "it has yet to be started")
	require.Equal(t, []int64{0}, begins(tb.must(t, flow.Begin{Address: first(), Carrier: tb.env.Member})))
	tb.env.Now += 700
	require.Equal(t, []int64{tb.env.Now - 5}, begins(tb.must(t, flow.Working{Address: first(), At: tb.env.Now - 5})))
	require.Nil(t, tb.must(t, flow.Working{Address: first(), At: tb.env.Now}).Events)
	require.True(t, tb.state.Live(first()).Heard)
	tb.must(t, flow.Leave{})
	require.Equal(t, flow.ProgramLost, tb.state.Error[len(tb.state.Error)-len(flow.ProgramLost):], "it was lost with its member")
}

func TestAHistoryHasTheStartOfWorkElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		definition string
		handed     func(*table)
		want       []int64 // after the hand-over, after the first report, after the end
	}{
		"of work outside that is pending": {begunOutside, func(tb *table) {
			tb.do(flow.Report{Address: first(), Deferred: []flow.External{{Service: "svc", ID: "j", Pending: true}}})
		}, []int64{0, 700, 700}},
		"of work outside that is under way": {begunOutside, func(tb *table) {
			tb.do(flow.Report{Address: first(), Deferred: []flow.External{{Service: "svc", ID: "j"}}})
		}, []int64{500, 500, 500}},
		"of a program that tells by files": {byFiles,
			func(tb *table) { tb.do(flow.Begin{Address: first(), Carrier: tb.env.Member}) },
			[]int64{0, 700, 700}},
		"of a program that does not": {"start: a\nnodes: {a: {exec: {type: process, " +
			"command: ls}}}", func(tb *table) {
			tb.do(flow.Begin{Address: first(),
				Carrier: tb.env.Member})
		}, []int64{500, 500, 500}},
	} {
		t.Run(name, func(t *testing.T) {
			tb := defers(t, tt.definition)
			begun := func(want int64) {
				h := flow.NewHistory("task-1", tb.state.Plan)
				for i := range tb.events {
					h.Apply(&tb.events[i])
				}
				if want != 0 {
					want += epoch
				}
				require.Equal(t, want, h.Runs[0].BegunAt)
			}
			tb.env.Now = epoch + 500
			tt.handed(tb)
			begun(tt.want[0])
			tb.env.Now = epoch + 1000
			tb.must(t, flow.Working{Address: first(), At: epoch + 700})
			begun(tt.want[1])
			if tb.state.Live(first()).Outside != nil {
				tb.must(t, outsideEnded(0, "", ""))
			} else {
				tb.must(t, flow.Report{Address: first(), Output: json.RawMessage("1")})
			}
			begun(tt.want[2])
		})
	}
}

func TestEventsThatBeginAnAttemptAreRecognized(t *testing.T) {
	outside, program := flowtest.Plan(t, begunOutside).Root.Nodes["a"].Exec, flowtest.Plan(t, byFiles).Root.Nodes["a"].Exec
	jobs := func(text string) flow.Event {
		return flow.Event{Type: flow.AttemptDeferred, Input: json.RawMessage(text)}
	}
	for name, tt := range map[string]struct {
		exec flow.Exec
		e    flow.Event
		want bool
	}{
		"a claim":                       {outside, flow.Event{Type: flow.AttemptClaimed}, true},
		"a start":                       {outside, flow.Event{Type: flow.AttemptsDispatched}, false},
		"a beginning":                   {outside, flow.Event{Type: flow.AttemptStarted}, true},
		"work that goes on":             {outside, jobs(`[{"service":"s","id":"j"}]`), true},
		"work that is pending":          {outside, jobs(`[{"service":"s","id":"j","pending":true}]`), false},
		"a program that is started":     {program, flow.Event{Type: flow.AttemptStarted}, false},
		"a program that is heard of":    {program, flow.Event{Type: flow.AttemptStarted, Until: 1}, true},
		"a container that is heard of":  {flow.Exec{Type: flow.ExecContainer}, jobs(`[{"service":"container","id":"j"}]`), true},
		"an event that does not fit it": {outside, jobs(`{`), true},
	} {
		require.Equal(t, tt.want, tt.exec.Begins(&tt.e), name)
	}
}
