package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const chain = `{"mode":"dag","nodes":{"a":{"service":"%"},"b":{"service":"echo","depends_on":["a"]},"c":{"service":"echo","depends_on":["b"]},"x":{"service":"echo"}}}`

func begunWith(t *testing.T, service string) *table {
	definition := json.RawMessage(chain[:strings.Index(chain, "%")] + service + chain[strings.Index(chain, "%")+1:])
	tb := newTable(t, flowtest.Plan(t, string(definition)))
	_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(`{}`)})
	require.NoError(t, err)
	return tb
}

func node(key string) flow.Address { return flow.Address{Node: key} }

func TestAHeldStepBeginsWhenItIsReleased(t *testing.T) {
	tb := begunWith(t, "echo")
	_, err := tb.do(flow.HoldStep{Address: node("b")})
	require.NoError(t, err)
	d, err := tb.do(flow.HoldStep{Address: node("b")})
	require.NoError(t, err)
	require.Empty(t, d.Events, "it is held already")
	tb.work()
	require.Equal(t, map[string]flow.StepStatus{"a": flow.StepCompleted, "b": flow.StepCreated,
		"c": flow.StepCreated, "x": flow.StepCompleted}, statuses(tb))
	require.True(t, tb.stepsOf("")["b"].Held)
	require.Equal(t, flow.TaskRunning, tb.state.Status)
	_, err = tb.do(flow.ReleaseStep{Address: node("b")})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestATaskShowsThatItWaitsForAHeldStep(t *testing.T) {
	tb := begunWith(t, "echo")
	for _, key := range []string{"b", "c"} {
		_, err := tb.do(flow.HoldStep{Address: node(key)})
		require.NoError(t, err)
	}
	require.NotContains(t, flow.Waiting(tb.state), flow.Wait{Address: node("b"), For: "resume",
		Text: "the step is held: release it"}, "it waits for another one yet")
	tb.work()
	require.Equal(t, []flow.Wait{{Address: node("b"), For: "resume",
		Text: "the step is held: release it"}}, flow.Waiting(tb.state), "c waits for b")
	_, err := tb.do(flow.ReleaseStep{Address: node("b")})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, []flow.Wait{{Address: node("c"), For: "resume", Text: "the step is held: release it"}}, flow.Waiting(tb.state))
}

func TestAHeldStepIsSkippedWhenADependencyFails(t *testing.T) {
	tb := begunWith(t, "boom")
	_, err := tb.do(flow.HoldStep{Address: node("b")})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, flow.StepSkipped, statuses(tb)["b"])
	require.Equal(t, flow.TaskFailed, tb.state.Status)
}

func TestACancelDoesNotWaitForAHeldStep(t *testing.T) {
	tb := begunWith(t, "echo")
	_, err := tb.do(flow.HoldStep{Address: node("b")})
	require.NoError(t, err)
	tb.work()
	_, err = tb.do(flow.Cancel{Gently: true})
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
}

func TestOnlyAPendingStepCanBeHeld(t *testing.T) {
	tb := begunWith(t, "echo")
	for key, kind := range map[string]flow.ErrorKind{"a": flow.Conflict, "none": flow.NotFound} {
		_, err := tb.do(flow.HoldStep{Address: node(key)})
		require.Equal(t, kind, flow.ErrorKindOf(err), key)
	}
	_, err := tb.do(flow.ReleaseStep{Address: node("b")})
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
	tb.work()
	_, err = tb.do(flow.HoldStep{Address: node("b")})
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err), "the task has ended")
}

func TestAStepStaysHeldWhenItsSubflowIsRetried(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"start":"s","nodes":{"s":{"kind":"subflow","failure_strategy":"retry","retry":{"max_attempts":2},
		"flow":{"on_error":"fail_fast","nodes":{"a":{"service":"echo"},"b":{"service":"list","depends_on":["a"]},"c":{"service":"list"}}}}}}`))
	_, err := tb.do(flow.Start{Version: "v"})
	require.NoError(t, err)
	_, err = tb.do(flow.HoldStep{Address: flow.Address{Scope: "s#1", Node: "b"}})
	require.NoError(t, err)
	_, err = tb.do(flow.Report{Address: flow.Address{Scope: "s#1", Node: "a", Visit: 1, Attempt: 1}, Error: "boom"})
	require.NoError(t, err)
	tb.work()
	steps := tb.stepsOf("s#1")
	require.Equal(t, flow.StepCompleted, steps["a"].Status)
	require.Equal(t, flow.StepCreated, steps["b"].Status)
	require.True(t, steps["b"].Held)
	_, err = tb.do(flow.ReleaseStep{Address: flow.Address{Scope: "s#1", Node: "b"}})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}
