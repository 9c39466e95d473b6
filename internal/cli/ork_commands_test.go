package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestATaskThatIsFollowedForAWhileGoesOn(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	file := write(t, "approve.yaml", approve)
	for _, format := range []string{"table", "json"} {
		got := cmd("flow", "run", file, "--timeout", "300ms", "-o", format)
		require.Equal(t, exitFailed, got.code)
		require.Regexp(t, `has not ended within 300ms and continues: troupe task watch \S+\n$`, got.stderr)
	}
	tasks := parse[wire.Page[wire.TaskSummary]](t, cmd("task", "list", "--flow", "approve", "-o", "json").stdout).Items
	require.Len(t, tasks, 2)
	require.Equal(t, []string{"running", "running"}, []string{tasks[0].State, tasks[1].State})
	require.Equal(t, exitUsage, cmd("flow", "run", file, "--timeout", "-1s").code)
	require.Zero(t, cmd("flow", "run", write(t, "double.yaml", double), "-p", "n=1", "--timeout", "1m").code)
}

func TestAFlowThatIsThereIsNotReplacedUnlessThatIsWanted(t *testing.T) {
	at := []string{"--server", startServe(t)}
	apply := func(args ...string) result {
		return call(t, append(append([]string{"flow", "apply"}, args...), at...)...)
	}
	file := write(t, "approve.yaml", approve)
	require.Zero(t, apply(file, "--no-replace").code)
	got := apply(file, "--no-replace")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "the flow approve already exists; omit --no-replace to publish a new version")
	require.Zero(t, apply(file).code)
	require.Equal(t, exitUsage, apply("-", "--no-replace").code)
}

func TestFlowsAreListedWithWhatTheyDidAndWhenTheyAreNext(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Zero(t, cmd("task", "start", "double", "-p", "n=1", "--wait").code)
	scheduled := cmd("schedule", "set", "yearly", "--flow", "approve", "--cron", "0 0 1 1 *")
	require.Zero(t, scheduled.code, scheduled.stderr)
	got := cmd("flow", "list")
	require.Regexp(t, `FLOW +LAST +NEXT`, got.stdout)
	require.Regexp(t, `(?m)^double +completed `, got.stdout)
	require.Regexp(t, `(?m)^approve +\d{4}-01-01 `, got.stdout)
	type listedFlow struct {
		wire.Flow
		Last *wire.TaskSummary `json:"last_task"`
		Next wire.Time         `json:"next_slot"`
	}
	listed := map[string]listedFlow{}
	for _, f := range parse[wire.Page[listedFlow]](t, cmd("flow", "list", "-o", "json").stdout).Items {
		listed[f.Slug] = f
	}
	require.Equal(t, "completed", listed["double"].Last.State)
	require.Nil(t, listed["approve"].Last)
	require.False(t, listed["approve"].Next.IsZero())
}

func TestATaskIsShownWithTheAttemptsOfItsSteps(t *testing.T) {
	at := []string{"--server", startServe(t, "--allow-scripts")}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	file := write(t, "again.yaml", "name: again\ntasks:\n  a: {executor: process, command: 'test $ORK_ATTEMPT = 2', retries: 1}\n")
	got := cmd("flow", "run", file, "--root", ".")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `(?m)^NODE +STATE +VISITS +UNITS +FAILED +ATTEMPTS +DURATION$`, got.stdout)
	require.Regexp(t, `(?m)^a +completed +1 +1 +0 +2 `, got.stdout)
	id := parse[wire.Page[wire.TaskSummary]](t, cmd("task", "list", "-o", "json").stdout).Items[0].ID
	require.Regexp(t, `(?m)^a +\S+ +completed +2 +\S*\d+\S* `, cmd("task", "show", id).stdout)
}
