package show_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const nested = `
start: order
nodes:
  order:
    kind: subflow
    flow:
      nodes:
        a: {service: s, compensate: undo}
        c: {service: s, depends_on: [a]}
        undo: {service: s}
  ask: {kind: choice, choice_cases: [{action: go, expr: params.n > 1}], default_action: stop}
edges:
  - {from: order, action: default, to: ask}
  - {from: ask, action: go, to: order}
  - {from: ask, action: stop, to: ""}
`

func TestAGraphHasAllScopesAndEdges(t *testing.T) {
	g := show.GraphOf(flowtest.Plan(t, nested))
	var keys []string
	for _, n := range g.Nodes {
		keys = append(keys, n.Scope+" "+n.Key)
	}
	require.Equal(t, []string{" order", " ask", "order a", "order c", "~ order/undo"}, keys)
	require.Equal(t, []show.GraphScope{{Mode: flow.ModeGraph, Start: "order", Node: -1, Nodes: 2},
		{Path: "order", Mode: flow.ModeDag, First: 2, Nodes: 2}, {Path: "~", Mode: flow.ModeGraph,
			Node: -1, First: 4, Nodes: 1}}, g.Scopes)
	require.Equal(t, []show.GraphEdge{
		{From: 0, To: 1, Action: "default"}, {From: 1, To: 0, Action: "go", When: "params.n > 1"}, {From: 1, To: -1, Action: "stop"},
		{From: 2, To: 3, Kind: show.EdgeDependency}, {From: 2, To: 4, Kind: show.EdgeCompensation},
	}, g.Edges)
	require.Equal(t, "order", g.Nodes[0].Inside)
}

func TestNodesAreFoundInTheText(t *testing.T) {
	d, err := definition.Parse([]byte(nested))
	require.NoError(t, err)
	spots := d.NodeSpots()
	require.Equal(t, definition.Spot{Line: 4, Column: 3}, spots["order"])
	require.Equal(t, definition.Spot{Line: 8, Column: 9}, spots["order/a"])
	for _, n := range show.GraphOf(flowtest.Plan(t, nested)).Nodes {
		require.NotZero(t, spots[n.Origin()], n.Origin())
	}
}
