package show_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// diffed returns the changes as lines.
func diffed(t *testing.T, old, new string) []string {
	lines := []string{}
	for _, c := range show.Diff(flowtest.Plan(t, old), flowtest.Plan(t, new)) {
		lines = append(lines, strings.Join([]string{c.Kind, c.Change, c.Scope, c.Node, c.Field, c.Old, c.New}, "|"))
	}
	return lines
}

func TestADiffListsTheAuthorsChanges(t *testing.T) {
	const graph = `
start: a
inputs: {amount: integer, name: string}
nodes:
  a: {exec_type: queue, service: bank, retry: {max_attempts: 3}}
  b: {exec_type: queue, service: ship}
edges: [{from: a, action: default, to: b}, {from: a, action: big, to: b}]
`
	const dag = "mode: dag\nnodes:\n  a: {func: mul}\n  b: {func: mul, depends_on: [a]}\n  c: {func: mul, depends_on: [b]}\n"
	for name, tt := range map[string]struct {
		old, new string
		want     []string
	}{
		"nothing": {graph, strings.ReplaceAll(graph, "action: big, to: b", "to: b, action: big"), []string{}},
		"a field": {graph, strings.Replace(graph, "service: bank", "service: till",
			1), []string{`node|changed||a|handler|{"service":"bank"}|{"service":"till"}`}},
		"how often": {graph, strings.Replace(graph, "max_attempts: 3",
			"max_attempts: 5", 1), []string{"node|changed||a|times|3 attempts|5 attempts"}},
		"inputs": {graph, strings.Replace(graph, "amount: integer, name: string",
			"amount: number, city: string", 1),
			[]string{`input|changed|||amount|{"type":"integer"}, required|{"type":"number"}, required`,
				`input|removed|||name|{"type":"string"}, required|`,
				`input|added|||city||{"type":"string"}, required`}},
		"an edge": {graph, strings.Replace(graph, "action: big, to: b",
			"action: huge, to: b", 1), []string{"edge|removed||a|big|b|", "edge|added||a|huge||b"}},
		"where an edge leads": {graph, strings.Replace(graph, "action: big, to: b",
			"action: big, to: a", 1), []string{"edge|changed||a|big|b|a"}},
		"a node": {dag, dag + "  d: {func: mul, depends_on: [c]}\n",
			[]string{"node|added||d|||executor local_func:mul", "edge|added||d|after||c"}},
		"a node that is gone": {dag + "  d: {func: mul}\n", dag,
			[]string{"node|removed||d||executor local_func:mul|"}},
		"dependencies": {dag, strings.Replace(dag, "depends_on: [b]", "depends_on: [a]",
			1), []string{"edge|removed||c|after|b|", "edge|added||c|after||a"}},
		"settings of the flow": {dag, dag + "on_error: fail_fast\ntimeout: 60s\n",
			[]string{"flow|changed|||reaction to errors|continue|fail_fast", "flow|changed|||timeout||1m"}},
		"what is inside a node": {"start: a\nnodes: {a: {kind: subflow, flow: {start: x, nodes: " +
			"{x: {func: mul}}}}}\n", "start: a\nnodes: {a: {kind: subflow, flow: {start: x, " +
			"nodes: {x: {func: add}}}}}\n",
			[]string{`node|changed|a|x|handler|{"exec_type":"local_func","func":"mul"}|{"exec_type":"local_func","func":"add"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, diffed(t, tt.old, tt.new))
		})
	}
}

func TestADiffAssignsCompilerNodesToTheirOrigin(t *testing.T) {
	const branch = "mode: dag\nnodes:\n  a: {func: mul}\n  b: {kind: branch, depends_on: [a], " +
		"when: {if: {run: {x: 1}}}, flow: {nodes: {c: {func: mul}}}}\n"
	for _, line := range diffed(t, branch, strings.Replace(branch, "{x: 1}}", "{x: 2}}", 1)) {
		require.Contains(t, line, "node|changed||b|")
	}
	require.NotEmpty(t, diffed(t, branch, strings.Replace(branch, "{x: 1}}", "{x: 2}}", 1)))
}
