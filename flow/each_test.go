package flow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// rootNode returns the state of a node of the task's root.
func (tb *table) rootNode(key string) *flow.NodeState {
	root := tb.state.Root
	return root.Node(root.Plan.Nodes[key])
}

// played starts a flow with an input and carries out its jobs.
func played(t *testing.T, definition, input string) *table {
	tb := newTable(t, flowtest.Plan(t, definition))
	_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(input)})
	require.NoError(t, err)
	tb.work()
	return tb
}

func TestASkippedDependencyHasNoItems(t *testing.T) {
	const skipped = `"p":{"service":"echo","when":{"if":{"run":{"go":1}}},"skip_mode":"optional"}`
	for name, tc := range map[string]struct{ of, nodes string }{
		"a map":        {"m", skipped + `,"m":{"kind":"map","depends_on":["p"],"service":"echo"}`},
		"a direct map": {"m", skipped + `,"m":{"kind":"map","depends_on":["p"],"route":"direct"}`},
		"a map over a skipped map": {"m2",
			skipped +
				`,"m":{"kind":"map","depends_on":["p"],"service":"echo","when":{"if":{"run":{"go":1}}},"skip_mode":"optional"},"m2":{"kind":"map","depends_on":["m"],"service":"echo"}`},
		"a foreach": {"m",
			skipped +
				`,"m":{"kind":"foreach","depends_on":["p"],"each":{"items":"$deps.p"},"service":"echo"}`},
		"a fan-out over a part": {"m",
			skipped + `,"m":{"depends_on":["p"],"each":{"items":"$deps.p.rows[0]"},"service":"echo"}`},
		"a fan-out of so many": {"m", skipped +
			`,"m":{"depends_on":["p"],"each":{"count":"$deps.p.n"},"service":"echo"}`},
		"so many for each item": {"m",
			skipped + `,"m":{"depends_on":["p"],"each":{"items":"$deps.p","count":3},"service":"echo"}`},
		"a handler that failed to the end": {"m",
			`"p":{"service":"boom","retry":{"max_attempts":1},"on_exhausted":"skip"},"m":{"kind":"map","depends_on":["p"],"service":"echo"}`},
		"a branch": {"m",
			`"p":{"kind":"branch","when":{"if":{"run":{"go":1}}},"skip_mode":"optional","flow":{"mode":"dag","nodes":{"x":{"service":"echo"}}}},"m":{"kind":"map","depends_on":["p"],"service":"echo"}`},
		"a branch with a scope of its own": {"m",
			`"p":{"kind":"branch","when":{"if":{"run":{"go":1}}},"skip_mode":"optional","flow":{"start":"x","nodes":{"x":{"service":"echo"}}}},"m":{"kind":"map","depends_on":["p"],"service":"echo"}`},
		"a map that runs whatever came of it": {"m",
			`"p":{"service":"echo","when":{"if":{"run":{"go":1}}}},"m":{"kind":"map","depends_on":["p"],"run_on":"always","service":"echo"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tb := played(t, fmt.Sprintf(`{"mode":"dag","profile":"pgflow","nodes":{%s}}`, tc.nodes), `{}`)
			require.Equal(t, flow.StepCompleted, tb.rootNode(tc.of).Status(), tb.rootNode(tc.of).Rare().Error)
			require.JSONEq(t, `[]`, string(tb.rootNode(tc.of).Output))
			require.Equal(t, flow.TaskCompleted, tb.state.Status)
		})
	}
}

func TestAFailedDependencyHasNoItems(t *testing.T) {
	tb := played(t,
		`{"mode":"dag","nodes":{"p":{"service":"boom"},"m":{"kind":"map","depends_on":["p"],"run_on":"always","service":"echo"}}}`,
		`{}`)
	require.Equal(t, flow.StepFailed, tb.rootNode("m").Status())
	require.Contains(t, tb.rootNode("m").Rare().Error, "must be an array")
}

func TestNumbersOfUnitsAreChecked(t *testing.T) {
	const list = `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`
	for _, tc := range []struct{ items, count, says string }{
		{list, "1152921504606846976", "16 items × 1152921504606846976"}, // 2⁶⁰: the product is 2⁶⁴
		{`[1,2,3]`, "6148914691236517206", "3 items × 6148914691236517206"},
		{`[1,2,3,4,5]`, "3689348814741910324", "5 items × 3689348814741910324"},
		{`[1,2]`, "50001", "2 items × 50001"},
		{`[1,2]`, "9223372036854775808", "2 items × 9223372036854775808"},
		{`[1,2]`, "1e300", "2 items × 1e300"},
		{`[1,2]`, "1e999", "must be a whole number"},
		{`[1,2]`, "-1", "must be a whole number"},
		{`[1,2]`, "1.5", "must be a whole number"},
	} {
		t.Run(tc.says, func(t *testing.T) {
			input := fmt.Sprintf(`{"list":%s,"n":%s}`, tc.items, tc.count)
			tb := played(t, `{"mode":"dag","nodes":{"f":{"each":{"items":"$run.list","count":"$run.n"},"service":"echo"}}}`, input)
			require.Equal(t, flow.StepFailed, tb.rootNode("f").Status())
			require.Contains(t, tb.rootNode("f").Rare().Error, tc.says)
			if tc.says[0] != 'm' {
				require.Contains(t, tb.rootNode("f").Rare().Error, "more than the 100000 units a step may have")
			}

			if tc.count == "50001" { // this number is allowed
				return
			}
			tb = played(t, `{"mode":"dag","nodes":{"f":{"each":{"count":"$run.n"},"service":"echo"}}}`, input)
			require.Equal(t, flow.StepFailed, tb.rootNode("f").Status())
		})
	}
	tb := played(t,
		`{"mode":"dag","nodes":{"f":{"each":{"items":"$run.list","count":"$run.n"},"service":"echo"}}}`,
		`{"list":[],"n":1e300}`)
	require.JSONEq(t, `[]`, string(tb.rootNode("f").Output), "no items, however often")
	tb = played(t,
		`{"mode":"dag","nodes":{"f":{"each":{"items":"$run.list","count":"$run.n"},"service":"echo"}}}`,
		`{"list":["a","b"],"n":2}`)
	require.JSONEq(t, `["a","a","b","b"]`, string(tb.rootNode("f").Output))
}

func TestAFixedNumberForEachItemIsCheckedToo(t *testing.T) {
	tb := played(t, `{"mode":"dag","nodes":{"f":{"each":{"items":"$run","count":100000},"service":"echo"}}}`, `[1,2]`)
	require.Contains(t, tb.rootNode("f").Rare().Error, "2 items × 100000 units each are more than the 100000 units a step may have")
}

func TestAnUnmetConditionHasTheErrorTextOfPgflow(t *testing.T) {
	for _, when := range []string{`{"if":{"run":{"go":1}}}`, `{"if_not":{"run":{}}}`,
		`{"expr":"run.go == 1"}`, `{"cond":{"service":"yes"}}`} {
		tb := played(t, fmt.Sprintf(
			`{"mode":"dag","profile":"pgflow","nodes":{"p":{"service":"echo","when":%s,"skip_mode":"fail"}}}`,
			when), `{"go":2}`)
		require.Equal(t, []any{flow.StepFailed, flow.ReasonSkipped, "Condition not met"},
			[]any{tb.rootNode("p").Status(), tb.rootNode("p").Rare().Reason,
				tb.rootNode("p").Rare().Error}, when)
		require.Contains(t, tb.state.Error, "p: Condition not met")
	}
}
