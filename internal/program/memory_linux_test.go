package program_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// TestMemoryLimitOfAProgramIsEnforced also covers child processes: tail buffers its output.
func TestMemoryLimitOfAProgramIsEnforced(t *testing.T) {
	const keeps = "sleep 0.1; head -c 90000000 /dev/zero | tail -c 80000000 >/dev/null"
	require.Contains(t, run(t, flow.Program{Command: keeps, Memory: 32 << 20}).Error, "memory exhausted")
	require.Empty(t, run(t, flow.Program{Command: keeps, Memory: 256 << 20}).Error)
	require.Empty(t, run(t, flow.Program{Command: keeps}).Error)
}

func TestMemoryLimitOfAPythonFunctionIsEnforced(t *testing.T) {
	for name, warm := range map[string]int{"cold": 0, "warm": 1} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "f.py"),
				"import time\ndef main():\n    time.sleep(0.1)\n    return "+
					"len(bytearray(300_000_000))\n", 0o644)
			r := program.New(program.Options{Dir: dir})
			defer r.Close()
			call := func(memory int64) program.Result {
				return r.Run(t.Context(), program.Job{Type: flow.ExecPython,
					Program: &flow.Program{File: "f.py", Warm: warm, Memory: memory}})
			}
			require.Contains(t, call(128<<20).Error, "MemoryError")
			require.Equal(t, "300000000", string(call(0).Output), "the interpreter is not held to it")
		})
	}
}
