package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// toTheEnd starts the task and carries out its jobs.
func (tb *table) toTheEnd() {
	tb.tell(flow.Start{Version: "v"})
	tb.work()
}

func TestATaskKnowsTheErrorsThatWereFollowed(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `
start: a
on_error: follow
nodes:
  a: {service: boom}
  b: {service: boom, on_error: follow}
  c: {service: boom}
  d: {service: echo}
edges:
  - {from: a, action: default, to: b}
  - {from: b, action: default, to: c}
  - {from: c, action: error, to: d}
`))
	tb.toTheEnd()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.Equal(t, 2, tb.state.Followed, "what an error edge leads on from is handled")
	require.Equal(t, []flow.FollowedError{
		{Node: "a", Times: 1, Visit: 1, Error: "boom", At: epoch},
		{Node: "b", Times: 1, Visit: 1, Error: "boom", At: epoch},
	}, tb.state.FollowedErrors)
	again, ok := flow.DecodeSnapshot(flow.EncodeSnapshot(tb.state).Bytes(), tb.state.Plan)
	require.True(t, ok)
	require.Equal(t, tb.state.FollowedErrors, again.FollowedErrors)
	require.Equal(t, 2, again.Followed)
}

func TestAnErrorWithoutAnEdgeIsNotFollowed(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "start: a\non_error: follow\nnodes: {a: {service: boom}}\n"))
	tb.toTheEnd()
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Zero(t, tb.state.Followed)
}

func TestTheLastFollowedErrorOfEachNodeIsKept(t *testing.T) {
	var nodes, edges []string
	for i := range flow.KeptFollowed + 5 {
		nodes = append(nodes, fmt.Sprintf("n%d: {service: boom}", i))
		edges = append(edges, fmt.Sprintf("{from: n%d, action: default, to: n%d}", i, (i+1)%(flow.KeptFollowed+5)))
	}
	plan := flowtest.Plan(t, "start: n0\non_error: follow\nnodes: {"+strings.Join(nodes,
		", ")+"}\nedges: ["+strings.Join(edges, ", ")+"]\n")
	tb := newTable(t, plan)
	long := strings.Repeat("é", 1_000)
	tb.hands = func(j flow.Job) flow.Report { return flow.Report{Address: j.Address, Error: long, Fatal: true} }
	steps := 2*len(nodes) + 1
	tb.env.Limits.Steps = steps
	tb.toTheEnd()
	require.Equal(t, flow.TaskFailed, tb.state.Status, "by the limit of steps")
	require.Equal(t, steps, tb.state.Followed)
	kept := tb.state.FollowedErrors
	require.Len(t, kept, flow.KeptFollowed)
	require.Equal(t, []any{"n0", 3}, []any{kept[len(kept)-1].Node, kept[len(kept)-1].Visit}, "the last one comes last")
	require.Equal(t, []any{"n24", 2}, []any{kept[len(kept)-2].Node, kept[len(kept)-2].Visit})
	require.Equal(t, long[:1_000], kept[0].Error)
}
