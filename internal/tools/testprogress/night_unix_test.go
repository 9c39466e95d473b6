//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runNight runs .ci/night with a make that does what a script of the test says. It returns the
// output without the seconds, and the exit code.
func runNight(t *testing.T, make string, env ...string) (out string, code int) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "make"), []byte("#!/bin/sh\n"+make+"\n"), 0o755))
	cmd := exec.Command("../../../.ci/night")
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "TOTAL=", "SEEDS=", "KILLS=", "N=",
		"FUZZTIME=", "LIMIT="}, env...)...)
	said, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return regexp.MustCompile(`\d+ s\b`).ReplaceAllString(string(said), "N s"), cmd.ProcessState.ExitCode()
}

func TestNightRunsEachStepAndEndsWithTheirSeconds(t *testing.T) {
	out, code := runNight(t, `echo "made $*"`)
	require.Zero(t, code, out)
	steps := []string{"flaky TOTAL=10800", "sim SEEDS=100000", "crash KILLS=500", "faults N=50", "fuzz FUZZTIME=2m"}
	want, summary := "", "== the night took N s\n"
	for _, step := range steps {
		want += "made " + step + "\n== N s: make " + step + ": passed\n"
		summary += "== N s: make " + step + ": passed\n"
	}
	require.Equal(t, want+summary, out)
}

func TestNightGoesOnBehindAFailedStepAndFailsAtItsEnd(t *testing.T) {
	out, code := runNight(t, `[ "$1" != sim ]`, "SEEDS=7")
	require.Equal(t, 1, code, out)
	_, summary, _ := strings.Cut(out, "== the night took N s\n")
	require.Equal(t, 5, strings.Count(summary, "\n"), out)
	require.Contains(t, summary, "== N s: make sim SEEDS=7: FAILED\n")
	require.Equal(t, 4, strings.Count(summary, ": passed\n"), out)
}

func TestNightStopsAStepThatTakesTooLong(t *testing.T) {
	t.Parallel()
	out, code := runNight(t, `[ "$1" != crash ] || exec sleep 600`, "LIMIT=0.002")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "== N s: make crash KILLS=500: stopped after 0.002 h\n")
	require.Contains(t, out, "== N s: make fuzz FUZZTIME=2m: passed\n")
}
