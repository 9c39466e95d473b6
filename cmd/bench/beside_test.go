//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoundsAreComparedWithThemselves(t *testing.T) {
	for name, tt := range map[string]struct {
		this, other []float64
		want        metricComparison
	}{
		"the same":                          {[]float64{10, 12, 11}, []float64{10, 12, 11}, metricComparison{11, 11, 1, 1, 1, 1}},
		"a slow round is slow for both":     {[]float64{10, 40, 10}, []float64{10, 40, 10}, metricComparison{10, 10, 1, 1, 1, 1}},
		"the median, not the worst":         {[]float64{11, 30, 11}, []float64{10, 10, 10}, metricComparison{11, 10, 1.1, 1.1, 3, 1.1}},
		"an even number of rounds":          {[]float64{10, 12}, []float64{10, 10}, metricComparison{11, 10, 1.1, 1, 1.2, 1}},
		"not measured by the other tree":    {[]float64{10, 12}, []float64{0, 0}, metricComparison{}},
		"a round that was not measured":     {[]float64{0, 12, 24}, []float64{10, 12, 12}, metricComparison{12, 12, 1.5, 1, 2, 1}},
		"the other tree has not run at all": {[]float64{10}, nil, metricComparison{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := compareRounds(tt.this, tt.other)
			require.InDelta(t, tt.want.this, got.this, 1e-9)
			require.InDelta(t, tt.want.other, got.other, 1e-9)
			require.InDelta(t, tt.want.ratio, got.ratio, 1e-9)
			require.InDelta(t, tt.want.lowest, got.lowest, 1e-9)
			require.InDelta(t, tt.want.most, got.most, 1e-9)
			require.InDelta(t, tt.want.best, got.best, 1e-9)
		})
	}
}

// linesOf returns rounds with the CPU time of a step in microseconds: in the member and in
// PostgreSQL, for this and the other tree.
func linesOf(t *testing.T, name string, rounds ...[4]float64) string {
	var lines strings.Builder
	for _, r := range rounds {
		for i, tree := range []string{"this", "other"} {
			l, err := json.Marshal(besideLine{tree, name,
				benchResult{StepsPerS: 1000 * float64(i+1), P50MS: 9,
					ClientCores: r[2*i] * float64(i+1) / 1000, PostgresCore: r[2*i+1] * float64(i+1) / 1000}})
			require.NoError(t, err)
			fmt.Fprintf(&lines, "%s\n", l)
		}
	}
	return lines.String()
}

func TestHigherCPUIsReportedAndSlownessIsNot(t *testing.T) {
	same := linesOf(t, "chain", [4]float64{40, 30, 40, 30}, [4]float64{60, 30, 40, 30}, [4]float64{41, 31, 40, 30})
	member := linesOf(t, "fan-out of 1,000", [4]float64{47, 30, 40, 30}, [4]float64{60, 30, 40, 30}, [4]float64{46.9, 30, 40, 30})
	busy := linesOf(t, "chain by pull", [4]float64{60, 30, 40, 30}, [4]float64{60, 30, 40, 30}, [4]float64{41, 30, 40, 30})
	server := linesOf(t, "latency", [4]float64{40, 36, 40, 30}, [4]float64{40, 37, 40, 30}, [4]float64{40, 35.9, 40, 30})
	untold := linesOf(t, "chain by push", [4]float64{40, 99, 40, 0})
	for beyond, want := range map[float64]string{1.15: "fan-out of 1,000\nlatency\n", 1.18: "latency\n", 0: ""} {
		var out, worse strings.Builder
		require.NoError(t, printComparison(strings.NewReader(same+member+busy+server+untold), &out, &worse, beyond))
		require.Equal(t, want, worse.String())
		require.Contains(t, out.String(), "chain                steps/s               1000.00      2000.00    0.50  0.50–0.50\n")
		require.Contains(t, out.String(), "member µs/step          41.00        40.00    1.02  1.00–1.50\n")
	}
}

func TestLinesOfAnUnknownTreeAreAnError(t *testing.T) {
	require.ErrorContains(t, printComparison(strings.NewReader("panic: no\n"), &strings.Builder{}, &strings.Builder{}, 1), "panic: no")
}

// repository creates an empty commit for each message, on the branch main.
func repository(t *testing.T, messages ...string) (dir string, git func(...string) string) {
	dir = t.TempDir()
	git = func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "cmd/bench"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cmd/bench/main.go"), []byte("package main\n"), 0o644))
	git("add", ".")
	for _, m := range messages {
		git("commit", "-q", "--allow-empty", "-m", m)
	}
	return dir, git
}

// base returns the output of scripts/base.sh in a folder.
func base(t *testing.T, dir string) (commit, why string) {
	script, err := filepath.Abs("../../scripts/base.sh")
	require.NoError(t, err)
	cmd := exec.Command(script)
	var out, errs strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	require.NoError(t, cmd.Run(), errs.String())
	return strings.TrimSpace(out.String()), errs.String()
}

func TestATreeIsMeasuredBesideTheCommitItComesFrom(t *testing.T) {
	dir, git := repository(t, "one", "two")
	commit, _ := base(t, dir)
	require.Equal(t, git("rev-parse", "HEAD^"), commit, "on the main branch")

	git("checkout", "-q", "-b", "mine")
	git("commit", "-q", "--allow-empty", "-m", "three")
	git("commit", "-q", "--allow-empty", "-m", "four")
	commit, _ = base(t, dir)
	require.Equal(t, git("rev-parse", "main"), commit, "on a branch")

	clone := filepath.Join(t.TempDir(), "clone")
	git("clone", "-q", "--branch", "main", "file://"+dir, clone)
	commit, _ = base(t, clone)
	require.Equal(t, git("rev-parse", "main^"), commit, "in a fresh clone")
}

func TestATreeWithoutABaseHasNoComparison(t *testing.T) {
	dir, git := repository(t, "one")
	commit, why := base(t, dir)
	require.Empty(t, commit)
	require.Contains(t, why, "there is no HEAD^")

	git("commit", "-q", "--allow-empty", "-m", "two")
	shallow := filepath.Join(t.TempDir(), "shallow")
	git("clone", "-q", "--depth", "1", "file://"+dir, shallow)
	commit, why = base(t, shallow)
	require.Empty(t, commit)
	require.Contains(t, why, "the clone is shallow")

	git("rm", "-q", "cmd/bench/main.go")
	git("commit", "-q", "-m", "three")
	git("commit", "-q", "--allow-empty", "-m", "four")
	commit, why = base(t, dir)
	require.Empty(t, commit)
	require.Contains(t, why, "has no cmd/bench")
}
