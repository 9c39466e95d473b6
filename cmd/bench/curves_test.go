//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachCurveIsAPictureWithEveryPlaceOnIt(t *testing.T) {
	dir := t.TempDir()
	lines := `{"curve":"in-flight","x":1,"steps_per_s":1000,"client_cpu_cores":0.5,"pg_cpu_cores":0.5,"wal_bytes_per_step":700,"journal_bytes_per_step":500}
{"curve":"in-flight","x":64,"steps_per_s":20000,"client_cpu_cores":1,"pg_cpu_cores":1,"wal_bytes_per_step":600,"journal_bytes_per_step":400}
{"curve":"in-flight","x":64,"steps_per_s":40000,"client_cpu_cores":1,"pg_cpu_cores":1,"wal_bytes_per_step":600,"journal_bytes_per_step":400}
{"curve":"members","x":2,"steps_per_s":1000,"client_cpu_cores":0.5,"pg_cpu_cores":0.5,"wal_bytes_per_step":700,"journal_bytes_per_step":500}
`
	require.NoError(t, drawCurves(strings.NewReader(lines), dir))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
	svg, err := os.ReadFile(filepath.Join(dir, "in-flight.svg"))
	require.NoError(t, err)
	require.Equal(t, 10, strings.Count(string(svg), "<circle"), "five lines of two places each")
	require.Contains(t, string(svg), "<title>64: 30k</title>", "the median")
	require.Less(t, len(svg), 20_000)
}

func TestNoiseHasItsSizeAndIsNeverTheSame(t *testing.T) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		require.Len(t, randomText(1, size), size-2, "quotes come to it")
		require.NotEqual(t, randomText(1, size), randomText(2, size))
	}
}
