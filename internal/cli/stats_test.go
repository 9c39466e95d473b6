package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestStatisticsOfTheEngineAndOfAFlowArePrinted(t *testing.T) {
	server := startServe(t)
	broken := write(t, "broken.yaml", "start: boom\non_error: fail\nnodes:\n  boom: {exec_type: push, service: nobody7}\n")
	require.Equal(t, 1, call(t, "flow", "run", broken, "--server", server).code, "it fails")

	got := call(t, "stats", "--server", server)
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `failed: +1\n`, got.stdout)
	require.Regexp(t, `Last 1h: +1 started, 0 completed, 1 failed`, got.stdout)
	require.Regexp(t, `broken +1 +boom: no worker for service nobody#`, got.stdout)
	require.Equal(t, 1, told[wire.Overview](t, "stats", "--server", server).RecentFailures.Groups[0].Count)

	require.Eventually(t, func() bool {
		return told[wire.FlowStats](t, "stats", "broken",
			"--server", server).Tasks.Failed == 1
	}, 30*time.Second, 100*time.Millisecond)
	for _, when := range [][]string{{"--window", "1h"}, {"--from", "2h"}, {"--version", "1"}} {
		got = call(t, append([]string{"stats", "broken", "--server", server}, when...)...)
		require.Zero(t, got.code, got.stderr)
		require.Regexp(t, `Failed: +1\n`, got.stdout)
		require.Regexp(t, `boom +1 +1 +0 +0 `, got.stdout)
	}
	require.Equal(t, "boom", told[wire.FlowStats](t, "stats", "broken", "--server", server).Nodes[0].Key)
	require.Equal(t, 2, call(t, "stats", "broken", "--window", "2h", "--server", server).code)
	for _, flag := range []string{"--from", "--to"} {
		got = call(t, "stats", "broken", flag, "soon", "--server", server)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.stderr, flag+` "soon": use a duration`)
	}
	for _, of := range [][]string{{"--from", "2h"}, {"--to", "1h"}, {"--version", "1"}} {
		got = call(t, append([]string{"stats", "--server", server}, of...)...)
		require.Equal(t, exitUsage, got.code, got.stdout)
		require.Contains(t, got.stderr, "need a flow")
	}
}
