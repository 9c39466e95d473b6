package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// sales copies the example and starts a member that may run its programs.
func sales(t *testing.T) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(repository, "examples", "sales"))))
	_, url = startBinary(t, "--allow-scripts", "--script-dir", dir, "--allow-mock")
	return dir, url
}

func TestTheSalesOfEachShopAreAddedUpAndReported(t *testing.T) {
	dir, url := sales(t)
	got := call(t, "flow", "run", filepath.Join(dir, "sales.yaml"), "--server", url, "--output", "json")
	require.Equal(t, 0, got.code, got.stdout+got.stderr)
	var task struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &task))

	for _, line := range []string{"data/berlin.csv: 7", "data/paris.csv: 2", "data/rome.csv: 10"} {
		logged(t, 1, line, task.ID, "--node", "add_up", "--server", url)
	}
	events := call(t, "task", "history", task.ID, "--server", url)
	require.Contains(t, events.stdout, "attempt_deferred", "the report is printed by another system")
	require.NoDirExists(t, filepath.Join(dir, "work"), "it is cleaned up")
	require.Contains(t, call(t, "schedule", "list", "--server", url).stdout, "30 2 * * *")
}

func TestWhenSalesCannotBeAddedUpItIsCleanedUpNevertheless(t *testing.T) {
	dir, url := sales(t)
	got := call(t, "flow", "run", filepath.Join(dir, "sales.yaml"), "-p", "folder=nowhere", "--server", url)
	require.Equal(t, exitFailed, got.code, got.stdout+got.stderr)
	require.Contains(t, got.stdout+got.stderr, "there are no files in nowhere")
	require.NoDirExists(t, filepath.Join(dir, "work"))
}
