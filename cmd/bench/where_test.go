//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const traces = `File: bench
Type: cpu
Duration: 3.49s, Total samples = 1.30s (37.22%)
-----------+-------------------------------------------------------
      10ms   runtime.scanObjectsSmall
             runtime.gcDrain
             runtime.gcBgMarkWorker
-----------+-------------------------------------------------------
     1.20s   runtime.memmove
             github.com/jackc/pgx/v5/pgconn.(*PgConn).flush (inline)
             github.com/troupe-engine/troupe/actors.(*committer).write
-----------+-------------------------------------------------------
      30ms   runtime.mapaccess1_faststr
             github.com/troupe-engine/troupe/flow.Evolve
             github.com/troupe-engine/troupe/actors.(*task).Receive
-----------+-------------------------------------------------------
      40ms   runtime.futex
             runtime.chansend
             github.com/troupe-engine/troupe/actors.(*task).Receive
-----------+-------------------------------------------------------
      20ms   encoding/json.checkValid
             encoding/json.Unmarshal
             main.noop
             github.com/troupe-engine/troupe/actors.(*pool).work
`

func TestStacksBelongToAreas(t *testing.T) {
	samples, err := memberSamples(strings.NewReader(traces))
	require.NoError(t, err)
	require.InDeltaMapValues(t, map[string]float64{"allocation and garbage": 0.01, "the store's client": 1.2, "deciding (flow)": 0.03,
		"scheduling goroutines": 0.04, "the benchmark's own handler": 0.02}, samples, 1e-9)
}

func TestTimeOfAStepIsDividedAmongAreas(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	line := `{"steps_per_s": 1000, "client_cpu_cores": 0.13, "pg_cpu_cores": 0.05}`
	write("chain.json", line)
	write("chain.traces", traces)
	write("chain.perf", "    60.00%  [k] ext4_sync_file   -      -\n    20.00%  [.] XLogInsert  "+
		"-  -\n    10.00%  [.] 0x0000000000305f3b  - -\n")
	write("pull.json", line)
	write("pull.traces", traces)
	var out strings.Builder
	require.NoError(t, printBreakdown([]string{dir, "chain", "pull"}, &out))
	for _, row := range []string{"| the store's client | 120.0 | 120.0 |",
		"| scheduling goroutines | 4.0 | 4.0 |", "| **together** | **130.0** | **130.0** |",
		"| kernel: files and sync | 33.3 | 0.0 |", "| writing WAL | 11.1 | 0.0 |", "| **together** | **50.0** | **50.0** |"} {
		require.Contains(t, out.String(), row)
	}
}
