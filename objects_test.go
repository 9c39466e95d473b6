package troupe_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
)

// filing is an engine whose tasks wait for workers that write files, and where these are.
func filing(t *testing.T, retention time.Duration) (e *troupe.Engine, runs string) {
	t.Helper()
	folder := t.TempDir()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"), ObjectStore: "file://" + filepath.ToSlash(folder), Retention: retention})
	require.NoError(t, err)
	require.NoError(t, e.Publish(t.Context(), "work", []byte("nodes: {a: {exec_type: outside, service: object_store}}")))
	return e, filepath.Join(folder, "runs")
}

// specOf waits for the files of a task, and tells in which folder they are.
func specOf(t *testing.T, runs, task string) (folder string) {
	t.Helper()
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(filepath.Join(runs, task, "*", "1", "spec.json"))
		if len(found) == 1 {
			folder = filepath.Dir(found[0])
		}
		return err == nil && len(found) == 1
	}, 20*time.Second, 5*time.Millisecond)
	return folder
}

func TestFilesOfATaskGoWithIt(t *testing.T) {
	e, runs := filing(t, time.Second)
	id, err := e.Start(t.Context(), "work", map[string]any{"n": 1})
	require.NoError(t, err)
	folder := specOf(t, runs, id)
	var spec map[string]any
	text, err := os.ReadFile(filepath.Join(folder, "spec.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &spec))
	require.Equal(t, []any{id, "a", "work", 1.0}, []any{spec["run_id"], spec["task_name"], spec["workflow_name"], spec["attempt"]})
	require.NoError(t, os.WriteFile(filepath.Join(folder, "output.json"), []byte("7"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "status.json"), []byte(`{"status": "success"}`), 0o600))
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, `{"a": 7}`, string(result.Value), result.Error)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(runs, id))
		return os.IsNotExist(err)
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, e.Close())
}

func TestFilesOfAFlowGoWithIt(t *testing.T) {
	e, runs := filing(t, -1)
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	specOf(t, runs, id)
	_, err = e.DeleteFlow(t.Context(), "work", true)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(runs, id))
	require.NoError(t, e.Close())
}
