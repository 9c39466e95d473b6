package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestTheVersionsOfAFlowAreCompared(t *testing.T) {
	server := startServe(t)
	require.Equal(t, 0, call(t, "flow", "apply",
		write(t, "order.yaml", "start: a\nnodes:\n  a: {exec_type: queue, service: bank}\n"),
		"--server", server).code)
	require.NotZero(t, call(t, "flow", "diff", "order", "--server", server).code, "there is only one")
	require.Equal(t, 0, call(t, "flow", "apply",
		write(t, "order.yaml", "start: a\nnodes:\n  a: {exec_type: queue, service: till}\n"),
		"--server", server).code)
	got := call(t, "flow", "diff", "order", "--server", server)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "order  v1 -> v2  0 tasks still use v1")
	require.Regexp(t, `node changed +a +handler +\{"service":"bank"\} +\{"service":"till"\}`, got.stdout)
	require.Contains(t, call(t, "flow", "diff", "order", "2", "2", "--server", server).stdout, "No differences")
	require.Equal(t, 2, told[wire.FlowDiff](t, "flow", "diff", "order", "1", "2", "--server", server).To)
}
