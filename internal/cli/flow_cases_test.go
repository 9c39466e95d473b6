package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const exampleOrder = "../../examples/ordertest/order.yaml"

// changedOrder copies the example to a new folder, with a change.
func changedOrder(t *testing.T, old, new string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"order.yaml", "order.test.yaml"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(exampleOrder), name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(string(text), old, new, 1)), 0o644))
	}
	return dir
}

func TestFlowTestPassesWhenAllIsAsExpected(t *testing.T) {
	r := call(t, "flow", "test", exampleOrder, "--seeds", "20", "--min-coverage", "100")
	require.Zero(t, r.code, r.stdout+r.stderr)
	require.Contains(t, r.stdout, "✓ an approved order is shipped (1d2s)")
	require.Contains(t, r.stdout, "order.yaml: 6 of 6 nodes, 2 of 2 edges (100 %)")
	require.Contains(t, r.stdout, "7 cases: 7 passed, 0 failed; run 147 times in")
}

func TestFlowTestReportsFailuresWithTheHistory(t *testing.T) {
	dir := changedOrder(t, "    compensate: refund\n  ship:\n", "  ship:\n    compensate: refund\n")
	report := filepath.Join(dir, "out", "junit.xml")
	r := call(t, "flow", "test", dir, "--seeds", "1000", "--run", "approved order", "--junit", report)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "✗ an approved order is shipped")
	require.Contains(t, r.stdout, "never: charge was done, the task is failed, and refund was not called")
	require.Contains(t, r.stdout, `- {error: "ship"}`)
	require.Contains(t, r.stdout, "the task starts with {\"order\":7,\"amount\":120}")
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(text), `<testcase name="an approved order is shipped"`)

	schedule := filepath.Join(dir, "schedule.yaml")
	require.NoError(t, os.WriteFile(schedule, []byte(`- {error: "ship"}`), 0o644))
	r = call(t, "flow", "test", dir, "--run", "approved order", "--schedule", schedule, "-o", "json")
	require.Equal(t, 1, r.code)
	var out struct {
		Passed bool
		Cases  []struct {
			Failures []struct{ Text string }
			Schedule []struct{ Kind, At string }
			Story    []struct{ Text string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &out))
	require.False(t, out.Passed)
	require.Equal(t, "error", out.Cases[0].Schedule[0].Kind)
	require.NotEmpty(t, out.Cases[0].Story)
}

func TestFlowTestExitsWith2WhenAFileIsWrong(t *testing.T) {
	dir := changedOrder(t, "ship: {output:", "shipp: {output:")
	r := call(t, "flow", "test", filepath.Join(dir, "order.yaml"))
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "order.test.yaml:8:3: error: unknown node, service or function: shipp: did you mean ship?")
	for _, args := range [][]string{{dir + "/nothing.yaml"}, {t.TempDir()}, {dir, "--run", "("}, {dir, "--seeds", "x"}} {
		r := call(t, append([]string{"flow", "test"}, args...)...)
		require.Equal(t, 2, r.code, args)
		require.NotEmpty(t, r.stderr)
	}
}

func TestFlowTestFailsWhenTooLittleIsCovered(t *testing.T) {
	r := call(t, "flow", "test", exampleOrder, "--run", "approved", "--coverage", "--min-coverage", "90")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "✗ refund")
	require.Contains(t, r.stdout, "coverage is below 90 % (--min-coverage)")
}
