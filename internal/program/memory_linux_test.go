package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// TestAProgramThatWantsMoreMemoryThanItMayHaveIsRefusedIt, and so is what it starts: tail keeps what it is to print.
func TestAProgramThatWantsMoreMemoryThanItMayHaveIsRefusedIt(t *testing.T) {
	const keeps = "sleep 0.1; head -c 90000000 /dev/zero | tail -c 80000000 >/dev/null"
	require.Contains(t, run(t, flow.Program{Command: keeps, Memory: 32 << 20}).Error, "memory exhausted")
	require.Empty(t, run(t, flow.Program{Command: keeps, Memory: 256 << 20}).Error)
	require.Empty(t, run(t, flow.Program{Command: keeps}).Error)
}
