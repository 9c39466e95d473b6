package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

// priced has a step that ends at once, one that waits for a person, and one that an approval skips.
const priced = `
start: price
nodes:
  price: {exec_type: local_func, func: mul, params: {mul: 2}, prep: {input_key: $params.n}}
  ask: {kind: approval, params: {approval_key: $shared.decision}}
  ship: {kind: timer, params: {delay_ms: 0}}
  refund: {kind: timer, params: {delay_ms: 0}}
edges:
  - {from: price, action: default, to: ask}
  - {from: ask, action: approved, to: ship}
  - {from: ask, action: rejected, to: refund}
`

// stepOutput is the step that a command with --wait-until prints as JSON.
type stepOutput struct {
	Task string `json:"task"`
	wire.Step
}

func TestCommandsWaitForAStep(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Zero(t, cmd("flow", "apply", write(t, "priced.yaml", priced)).code)

	got := cmd("task", "start", "priced", "-p", "n=21", "--wait-until", "price")
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `^Task: +task-\S+\nStep: +price\nVisit: +1\nState: +completed\n(?s:.*)Output: +42\n$`, got.stdout)

	got = cmd("task", "start", "priced", "-p", "n=4", "--wait-until", "price", "-o", "json")
	require.Equal(t, 0, got.code, got.stderr)
	started := parse[stepOutput](t, got.stdout)
	require.Equal(t, []any{"price", "completed", "8"}, []any{started.Node, started.State, string(started.Output)})
	require.Regexp(t, `State: +running`, cmd("task", "show", started.Task).stdout, "it waits for a person")

	asked := make(chan result, 1)
	go func() { asked <- cmd("task", "watch", started.Task, "--wait-until", "ask") }()
	require.Zero(t, cmd("task", "signal", started.Task, "decision", "true").code)
	got = <-asked
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `(?s)Step: +ask\n.*State: +completed\nAction: +approved\n`, got.stdout)

	require.Zero(t, cmd("task", "watch", started.Task).code)
	got = cmd("task", "watch", started.Task, "--wait-until", "price#1", "-o", "json")
	require.Equal(t, "8", string(parse[stepOutput](t, got.stdout).Output))
	got = cmd("task", "watch", started.Task, "--wait-until", "refund")
	require.Equal(t, 1, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "the task "+started.Task+" is completed, and its step refund has not ended\n"+
		"The task: troupe task show "+started.Task)
}

func TestAFailedStepIsExitCodeOne(t *testing.T) {
	at := []string{"--server", startServe(t)}
	path := write(t, "broken.yaml", strings.ReplaceAll(priced, "func: mul", "func: nobody_knows"))
	require.Zero(t, call(t, append([]string{"flow", "apply", path}, at...)...).code)
	got := call(t, append([]string{"task", "start", "broken", "-p", "n=1", "--wait-until", "price"}, at...)...)
	require.Equal(t, 1, got.code)
	require.Regexp(t, `(?s)State: +failed\n.*Error: .*nobody_knows`, got.stdout)
}

func TestNoTaskIsStartedIfTheAwaitedNodeIsUnknown(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	got := cmd("task", "start", "approve", "--wait-until", "asc")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `the flow has no node "asc"`)
	require.Contains(t, got.stderr, "hint: did you mean ask?")
	require.Empty(t, parse[wire.Page[wire.TaskSummary]](t, cmd("task", "list", "-o", "json").stdout).Items)

	id := strings.TrimSpace(cmd("task", "start", "approve").stdout)
	got = cmd("task", "watch", id, "--wait-until", "asc")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "hint: did you mean ask?")
	require.Equal(t, exitUsage, cmd("task", "start", "approve", "--wait", "--wait-until", "ask").code)
}
