package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets more garbage accumulate than usual: a world needs little memory, and collections
// took a quarter of the CPU time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
