package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestATaskIsForkedAtAnyMoment(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Zero(t, cmd("flow", "apply", write(t, "approve.yaml", approve)).code)
	id := parse[wire.StartResult](t, cmd("task", "start", "approve", "-o", "json").stdout).ID

	got := cmd("task", "fork", id, "--at", "1", "--dry-run")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "A new task of version 1 from "+id+": 0 steps kept, 1 step run again")
	require.Contains(t, got.stdout, "was running")
	forked := parse[wire.ForkResult](t, cmd("task", "fork", id, "--at", "1", "-o", "json").stdout)
	require.Equal(t, []any{id, true}, []any{forked.From, forked.Created})
	require.Equal(t, "running", parse[wire.Task](t, cmd("task", "show", forked.ID, "-o", "json").stdout).State)

	forked = parse[wire.ForkResult](t, cmd("task", "fork", id, "--at", "1", "--set",
		"shared.decision=true", "--set", "shared.note=by hand", "-o", "json").stdout)
	require.Zero(t, cmd("task", "watch", forked.ID).code)
	shared := parse[wire.Task](t, cmd("task", "show", forked.ID, "-o", "json").stdout).Shared
	require.Equal(t, []string{"true", `"by hand"`}, []string{string(shared["decision"]), string(shared["note"])})
	require.Equal(t, exitUsage, cmd("task", "fork", id, "--at", "1", "--set", "decision=true").code)

	require.Contains(t, cmd("task", "fork", id).stderr, "the task is running: cancel it first, or wait until it ends")
	require.Equal(t, exitUsage, cmd("task", "fork", id, "--at", "1", "--from", "ask").code)
	require.Equal(t, exitUsage, cmd("task", "fork", id, "--at", "-1").code)
	require.Contains(t, cmd("task", "fork", id, "--at", "99").stderr, "and none with the number 99")
}

func TestADryRunStartsNoTask(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Zero(t, cmd("flow", "apply", write(t, "approve.yaml", approve)).code)
	got := cmd("task", "start", "approve", "--dry-run")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "waits")
	require.Contains(t, got.stdout, "the rest depends on results of calls and waits")
	require.NotEmpty(t, parse[wire.StartResult](t, cmd("task", "start", "approve", "--dry-run", "-o", "json").stdout).Preview.Steps)
	require.Equal(t, exitUsage, cmd("task", "start", "approve", "--dry-run", "--wait").code)
	require.Equal(t, exitUsage, cmd("task", "start", "approve", "--dry-run", "--wait-until", "ask").code)
	require.Empty(t, parse[wire.Page[wire.TaskSummary]](t, cmd("task", "list", "-o", "json").stdout).Items)
}
