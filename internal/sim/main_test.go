package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets more garbage gather than usual: a world needs little memory, and collecting took a
// quarter of the CPU.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
