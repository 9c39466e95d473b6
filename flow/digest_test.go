package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// sameDigest compares the digest of a scope with the newest step of each of its nodes.
func (tb *table) sameDigest(d flowtest.Dice, scope string, steps []flow.StepView) {
	w := flow.NewScopeWalk(scope)
	tb.walk(d, 0, w)
	if w.Scope == nil { // a retry has removed the closing scope
		return
	}
	newest := map[string]flow.StepView{}
	for _, v := range steps {
		if v.Scope == scope {
			newest[v.Address.Node] = v
		}
	}
	order := w.Scope.Plan.Order()
	require.Len(tb.t, order, len(w.Scope.Plan.Nodes))
	for i, got := range w.State.Digest(w.Scope, order) {
		v, ok := newest[order[i].Key]
		if !ok {
			require.Equal(tb.t, flow.NodeDigest{Status: flow.StepCreated}, got, "node %s of %q", order[i].Key, scope)
			continue
		}
		want := flow.NodeDigest{Status: v.Status, Reason: v.Reason, Held: v.Held, Visit: v.Visit,
			Units: v.Units, StartedAt: v.StartedAt, EndedAt: v.EndedAt}
		got.Error, want.Units.Initial, got.Units.Initial = "", 0, 0
		if v.Status == flow.StepFailed { // its units in flight were withdrawn
			want.Units.Flying, want.Units.Retrying = 0, 0
		}
		require.Equal(tb.t, want, got, "node %s of %q", order[i].Key, scope)
	}
}

func TestADigestIncludesEndedNodes(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `
start: first
on_error: fail
nodes: {first: {service: s}, pay: {service: s}, ship: {service: s}, never: {service: s}}
edges: [{from: first, action: default, to: pay}, {from: pay, action: default, to: ship}, {from: pay, action: again, to: first}]`))
	tb.hands = func(j flow.Job) flow.Report {
		if j.Address.Node == "pay" {
			return flow.Report{Address: j.Address, Error: strings.Repeat("refused ", 100)}
		}
		return carryOut(j)
	}
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	tb.work()
	root := tb.state.Root
	got := tb.state.Digest(root, root.Plan.Order())
	require.Equal(t, []string{"first", "pay", "ship", "never"}, keysOf(root.Plan.Order()), "as they are reached, and then what is not")
	require.Equal(t, []flow.StepStatus{flow.StepCompleted, flow.StepFailed, flow.StepCreated,
		flow.StepCreated}, []flow.StepStatus{got[0].Status, got[1].Status, got[2].Status, got[3].Status})
	require.Equal(t, flow.UnitCount{Total: 1, Done: 1, Failed: 1}, got[1].Units)
	require.Len(t, got[1].Error, 200, "an error is told by its beginning")
	again, ok := flow.DecodeSnapshot(flow.EncodeSnapshot(tb.state).Bytes(), tb.state.Plan)
	require.True(t, ok)
	require.Equal(t, got, again.Digest(again.Root, again.Root.Plan.Order()), "it needs no history")
}

func keysOf(nodes []*flow.PlanNode) (keys []string) {
	for _, n := range nodes {
		keys = append(keys, n.Key)
	}
	return keys
}

// BenchmarkDigest measures a digest of a large task: with many nodes, and with a step of many
// units.
func BenchmarkDigest(b *testing.B) {
	for name, definition := range map[string]string{"graph of 10,000 nodes": longGraph(10_000),
		"dag of 10,000 nodes": longDag(10_000), "100,000 units": fanOf(100_000)} {
		b.Run(name, func(b *testing.B) {
			tb := newTable(b, flowtest.Plan(b, definition))
			d, err := flow.Decide(tb.state, flow.Start{}, tb.env)
			require.NoError(b, err)
			require.NotEmpty(b, d.Events)
			root := tb.state.Root
			order := root.Plan.Order()
			b.ReportAllocs()
			for b.Loop() {
				tb.state.Digest(root, order)
			}
		})
	}
}

func longGraph(n int) string {
	var nodes, edges strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, "  n%d: {service: s}\n", i)
		if i > 0 {
			fmt.Fprintf(&edges, "  - {from: n%d, action: default, to: n%d}\n", i-1, i)
		}
	}
	return "start: n0\nnodes:\n" + nodes.String() + "edges:\n" + edges.String()
}

func longDag(n int) string {
	var nodes strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, "  n%d: {service: s, depends_on: [%s]}\n", i,
			strings.Join([]string{"", fmt.Sprintf("n%d", i-1)}[min(i, 1):min(i, 1)+1], ""))
	}
	return "mode: dag\nnodes:\n" + nodes.String()
}

func fanOf(n int) string {
	return fmt.Sprintf("mode: dag\nnodes: {fan: {kind: fanout, service: s, each: {count: %d}}}\n", n)
}

func TestAnInterruptedStepShowsItsCompletedUnits(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t,
		`{"start":"a","nodes":{"a":{"kind":"parallel","exec_type":"remote","params":{"services":"$params.services"}}}}`))
	must := func(c flow.Command) {
		_, err := tb.do(c)
		require.NoError(t, err)
	}
	must(flow.Start{Params: []byte(`{"services":["s","t"]}`)})
	must(flow.Report{Address: flow.Address{Node: "a", Visit: 1, Attempt: 1}, Output: []byte("1")})
	must(flow.Cancel{Force: true})
	steps := tb.steps(flow.StepQuery{Most: 10, Bytes: 1 << 20}, nil)
	require.Len(t, steps, 1)
	require.Equal(t, flow.StepSkipped, steps[0].Status)
	require.Equal(t, flow.UnitCount{Total: 2, Initial: 2, Done: 1}, steps[0].Units)
	tb.sameDigest(never{}, "", steps)
}

// TestARemovedClosingScopeIsOver also checks a reader of the scope's active steps.
func TestARemovedClosingScopeIsOver(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `
on_error: fail
start: a
finally: z
nodes:
  a: {service: s}
  z: {kind: subflow, subflow: {start: x, nodes: {x: {service: s}}}}`))
	must := func(c flow.Command) {
		_, err := tb.do(c)
		require.NoError(t, err)
	}
	must(flow.Start{})
	must(flow.Report{Address: flow.Address{Node: "a", Visit: 1, Attempt: 1}, Error: "no paper"})
	must(flow.Cancel{Force: true})
	must(flow.RetryTask{})
	for _, scope := range []string{"~", "~/z#1"} {
		steps := tb.steps(flow.StepQuery{Scope: scope, Most: 10, Bytes: 1 << 20}, nil)
		require.NotEmpty(t, steps)
		tb.sameDigest(never{}, scope, steps)
	}
}
