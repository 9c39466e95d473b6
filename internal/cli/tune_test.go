package cli

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGOMEMLIMITOverridesOurMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	percent := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetMemoryLimit(before); debug.SetGCPercent(percent) })
	for env, want := range map[string]int64{"": softMemory, "2GiB": math.MaxInt64} {
		t.Setenv("GOMEMLIMIT", env)
		debug.SetMemoryLimit(math.MaxInt64) // the runtime has read the variable before
		tuneCollector()
		require.Equal(t, want, debug.SetMemoryLimit(-1), "GOMEMLIMIT=%q", env)
	}
}
