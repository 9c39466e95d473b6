package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// stepsOf returns the views of a scope's steps by node.
func (tb *table) stepsOf(scope string) map[string]flow.StepView {
	views := map[string]flow.StepView{}
	for _, v := range tb.steps(flow.StepQuery{Scope: scope, Most: 1_000, Bytes: 1 << 20}, nil) {
		views[v.Node.Key] = v
	}
	return views
}

// cutShort checks that steps were interrupted at the given time.
func (tb *table) cutShort(views map[string]flow.StepView, at int64, keys ...string) {
	for _, key := range keys {
		v := views[key]
		require.Equal(tb.t, []any{flow.StepSkipped, flow.ReasonWithdrawn, at}, []any{v.Status, v.Reason, v.EndedAt}, key)
		require.Equal(tb.t, []int{0, 0}, []int{v.Units.Flying, v.Units.Retrying}, key)
		require.Nil(tb.t, v.Wait, key)
		require.NotZero(tb.t, v.StartedAt, key)
	}
	for key, v := range views {
		require.NotEqual(tb.t, flow.StepStarted, v.Status, key)
	}
}

// unitsCanceled checks that the units of an interrupted step are canceled.
func (tb *table) unitsCanceled(at flow.Address, total int) {
	at.Visit = tb.state.Scope(at.Scope).Entered(at.Node)
	l := flow.NewUnitList(at)
	tb.walk(never{}, 0, l)
	require.Equal(tb.t, total, l.Len())
	for i := range total {
		require.Equal(tb.t, flow.UnitCanceled, l.At(i).Status)
	}
}

const cutDag = `{"mode":"dag","on_error":"fail_fast","nodes":{
	"bad":{"service":"boom"},
	"one":{"route":"direct"},
	"many":{"route":"direct","each":{"count":3}},
	"soon":{"kind":"timer","params":{"delay_ms":100000}},
	"graph":{"kind":"branch","flow":{"start":"x","nodes":{"x":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}},
	"dag":{"kind":"branch","flow":{"start":"y","nodes":{"y":{"kind":"subflow","flow":{"mode":"dag","nodes":{"z":{"route":"direct"}}}}}}},
	"after":{"depends_on":["one"],"service":"echo"}}`

func (tb *table) fails(t *testing.T) int64 {
	_, err := tb.do(flow.Start{Params: json.RawMessage(`{}`)})
	require.NoError(t, err)
	tb.env.Now += 500
	tb.work()
	return tb.env.Now
}

func TestStepsInterruptedByAFailureAreSkipped(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, cutDag+`}`))
	at := tb.fails(t)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	views := tb.stepsOf("")
	tb.cutShort(views, at, "one", "many", "soon", "graph", "dag")
	require.Equal(t, []any{flow.StepFailed, flow.StepCreated}, []any{views["bad"].Status, views["after"].Status})
	require.Equal(t, map[flow.StepStatus]int{flow.StepFailed: 1, flow.StepSkipped: 5,
		flow.StepCreated: 1, flow.StepCompleted: 2}, tb.state.StepCounts(), "the gates have completed")
	tb.cutShort(tb.stepsOf("graph#1"), at, "x")
	tb.cutShort(tb.stepsOf("dag#1"), at, "y")
	tb.cutShort(tb.stepsOf("dag#1/y#1"), at, "z")
	tb.unitsCanceled(flow.Address{Node: "many"}, 3)

	_, err := tb.do(flow.RetryTask{})
	require.NoError(t, err)
	require.Equal(t, flow.StepStarted, tb.stepsOf("")["many"].Status, "the retry has them begin again")
}

func TestStepsInterruptedByTheClosingAreSkipped(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, cutDag[:len(cutDag)-1]+`,"last":{"kind":"timer","params":{"delay_ms":1000}}},"finally":"last"}`))
	at := tb.fails(t)
	require.NotNil(t, tb.state.Closing)
	views := tb.stepsOf("")
	require.Equal(t, flow.StepStarted, views["last"].Status)
	delete(views, "last")
	tb.cutShort(views, at, "one", "many", "soon", "graph", "dag")
	tb.cutShort(tb.stepsOf("graph#1"), at, "x")
	tb.cutShort(tb.stepsOf("dag#1/y#1"), at, "z")
	tb.unitsCanceled(flow.Address{Node: "many"}, 3)
	tb.wait(1_000)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	tb.cutShort(tb.stepsOf(""), at, "one", "many", "soon", "graph", "dag")
}

func TestStepsInterruptedByTheEndOfASubflowAreSkipped(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"start":"s","edges":[{"from":"s","action":"default","to":"t"}],"nodes":{
		"s":{"kind":"subflow","failure_strategy":"continue","flow":{"mode":"dag","on_error":"fail_fast","nodes":{"bad":{"service":"boom"},"one":{"route":"direct"},
			"deep":{"kind":"branch","flow":{"start":"x","nodes":{"x":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}}}}},
		"t":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`))
	at := tb.fails(t)
	require.Equal(t, flow.TaskRunning, tb.state.Status)
	tb.cutShort(tb.stepsOf("s#1"), at, "one", "deep")
	tb.cutShort(tb.stepsOf("s#1/deep#1"), at, "x")
	_, err := tb.do(flow.Cancel{})
	require.NoError(t, err)
	views := tb.stepsOf("")
	require.Equal(t, flow.StepCompleted, views["s"].Status)
	delete(views, "s")
	tb.cutShort(views, tb.state.EndedAt, "t")
}

// A graph that waits for its permit after a retry still shows its interrupted steps.
func TestStepsInterruptedByATimeoutKeepTheirEndAfterARetry(t *testing.T) {
	tb := keyed(t, `{timeout: 1s, concurrency: {limit: 1}, start: a, nodes: {a: {service: s}}}`, `{}`)
	tb.grant()
	tb.wait(1_000)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	at := tb.state.EndedAt
	tb.env.Now += 500
	tb.tell(flow.RetryTask{})
	require.Len(t, tb.asks, 1)
	require.Equal(t, at, tb.state.Digest(tb.state.Root, tb.state.Root.Plan.Order())[0].EndedAt)
}
