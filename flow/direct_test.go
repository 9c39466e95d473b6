package flow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// complete finishes a direct unit like a caller that knows no attempts.
func (tb *table) complete(node string, unit int) error {
	d, err := tb.do(flow.Report{Address: flow.Address{Node: node, Unit: unit}, Output: json.RawMessage(fmt.Sprint(unit)), Direct: true})
	if err == nil {
		require.NotEmpty(tb.t, d.Events, "unit %d of %s is not recorded", unit, node)
	}
	return err
}

func TestDirectUnitsMayBeCompletedInAnyOrder(t *testing.T) {
	for name, each := range map[string]string{"beyond the window of all steps": `{"items":"$run"}`,
		"beyond its own": `{"items":"$run","concurrency":2}`} {
		t.Run(name, func(t *testing.T) {
			plan := flowtest.Plan(t, fmt.Sprintf(`{"mode":"dag","nodes":{"f":{"route":"direct","each":%s}}}`, each))
			plan.Window = 3
			tb := newTable(t, plan)
			_, err := tb.do(flow.Start{Params: json.RawMessage(`["a","b","c","d","e"]`)})
			require.NoError(t, err)
			for _, unit := range []int{4, 1} {
				require.NoError(t, tb.complete("f", unit))
			}
			_, err = tb.do(flow.Append{Address: flow.Address{Node: "f"},
				Items: []json.RawMessage{json.RawMessage(`"g"`), json.RawMessage(`"h"`)}})
			require.NoError(t, err)
			for _, unit := range []int{6, 0, 5, 3, 2} {
				require.Equal(t, flow.TaskRunning, tb.state.Status)
				require.NoError(t, tb.complete("f", unit))
			}
			require.Equal(t, flow.TaskCompleted, tb.state.Status)
			require.JSONEq(t, `[0,1,2,3,4,5,6]`, string(tb.rootNode("f").Output))
			require.NoError(t, orderedEvents(tb.events))
			for _, run := range tb.runs() {
				require.Equal(t, flow.AttemptOK, run.Status)
			}
		})
	}
}

func TestADirectUnitMayBeCompletedBeforeItsDelayIsOver(t *testing.T) {
	tb := played(t, `{"mode":"dag","nodes":{"f":{"route":"direct","start_delay":"10s","each":{"items":"$run"}}}}`, `[1,2,3]`)
	require.NoError(t, tb.complete("f", 0))
	require.Empty(t, tb.direct(), "the others wait for their time")
	tb.wait(10_000)
	require.Len(t, tb.direct(), 2)
	require.NoError(t, tb.complete("f", 1))
	require.NoError(t, tb.complete("f", 2))
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestAUnitThatIsOverStaysAsItIs(t *testing.T) {
	tb := played(t, `{"mode":"dag","nodes":{"f":{"route":"direct","each":{"items":"$run","concurrency":1}}}}`, `[1,2,3]`)
	require.NoError(t, tb.complete("f", 2))
	for _, at := range []flow.Address{{Node: "f", Unit: 2}, {Node: "f", Unit: 1, Visit: 1, Attempt: 2}, {Node: "f", Unit: 1, Visit: 2}} {
		d, err := tb.do(flow.Report{Address: at, Direct: true, Output: json.RawMessage(`"again"`)})
		require.NoError(t, err)
		require.Empty(t, d.Events, "%s", at)
	}
}

func TestADirectStepTimesOut(t *testing.T) {
	for name, retry := range map[string]string{"by default": ``,
		"also if every node is tried again": `"defaults":{"retry":{"max_attempts":5}},`} {
		t.Run(name, func(t *testing.T) {
			tb := played(t, fmt.Sprintf(`{"mode":"dag","profile":"pgflow",%s"nodes":{"b":{"route":"direct","timeout":3}}}`, retry), `{}`)
			tb.wait(2_999)
			require.Equal(t, flow.TaskRunning, tb.state.Status)
			tb.wait(1)
			require.Equal(t, flow.TaskFailed, tb.state.Status)
			require.Equal(t, flow.ReasonTaskTimeout, tb.rootNode("b").Rare().Reason)
		})
	}
	tb := played(t, `{"mode":"dag","profile":"pgflow","defaults":{"timeout":3},"nodes":{"b":{"route":"direct"}}}`, `{}`)
	tb.wait(1_000_000)
	require.Equal(t, flow.TaskRunning, tb.state.Status, "only its own timeout counts")
}

func TestACompletionAfterACancelIsRecorded(t *testing.T) {
	tb := played(t,
		`{"mode":"dag","profile":"pgflow","nodes":{"a":{"route":"direct"},"f":{"route":"direct","each":{"items":"$run.list","concurrency":1}},"b":{"depends_on":["a"],"service":"echo"}}}`,
		`{"list":[1,2,3]}`)
	_, err := tb.do(flow.Cancel{Gently: true})
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, tb.state.Status, "nobody is at work")
	ended := tb.state.EndedAt

	tb.wait(1_000)
	for _, unit := range []int{2, 0} {
		require.NoError(t, tb.complete("f", unit))
	}
	require.Equal(t, flow.StepStarted, tb.rootNode("f").Status())
	require.NoError(t, tb.complete("a", 0))
	require.Equal(t, flow.StepCompleted, tb.rootNode("a").Status())
	require.JSONEq(t, `0`, string(tb.rootNode("a").Output))
	require.Equal(t, flow.StepStatus(""), tb.rootNode("b").Status(), "nothing new starts")
	require.NoError(t, tb.complete("f", 1))
	require.Equal(t, flow.StepCompleted, tb.rootNode("f").Status())

	require.Equal(t, flow.TaskCanceled, tb.state.Status)
	require.Equal(t, ended, tb.state.EndedAt)
	for _, run := range tb.runs() {
		if run.Kind == flow.RunAttempt {
			require.Equal(t, flow.AttemptOK, run.Status, run.Address.String())
		}
	}
	d, err := tb.do(flow.Report{Address: flow.Address{Node: "a"}, Direct: true})
	require.NoError(t, err)
	require.Empty(t, d.Events, "it was completed before")
}

func TestNodesWithCompensationRejectCompletionsAfterACancel(t *testing.T) {
	tb := played(t,
		`{"mode":"dag","nodes":{"a":{"route":"direct","compensate":"undo"},"b":{"route":"direct"},"undo":{"service":"echo"}}}`,
		`{}`)
	_, err := tb.do(flow.Cancel{Gently: true})
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(tb.complete("a", 0)))
	require.Empty(t, tb.state.Done)
	require.NoError(t, tb.complete("b", 0))
}

func TestTasksCanceledAtOnceRejectCompletions(t *testing.T) {
	for name, cancel := range map[string]flow.Command{"at once": flow.Cancel{},
		"by a failure": flow.Report{Address: flow.Address{Node: "x"}, Direct: true, Error: "no"}} {
		t.Run(name, func(t *testing.T) {
			tb := played(t, `{"mode":"dag","profile":"pgflow","nodes":{"a":{"route":"direct"},"x":{"route":"direct"}}}`, `{}`)
			_, err := tb.do(cancel)
			require.NoError(t, err)
			require.Equal(t, flow.Conflict, flow.ErrorKindOf(tb.complete("a", 0)))
		})
	}
}
