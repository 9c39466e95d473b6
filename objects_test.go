package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/objects"
)

// filing opens an engine whose tasks wait for workers that write files; runs is the folder of these
// files.
func filing(t *testing.T, retention, keep time.Duration) (e *troupe.Engine, runs string) {
	t.Helper()
	folder := t.TempDir()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(),
		"x.db"), ObjectStore: "file://" + filepath.ToSlash(folder), ObjectStoreRetention: keep,
		Retention: retention})
	require.NoError(t, err)
	require.NoError(t, e.Publish(t.Context(), "work", []byte("nodes: {a: {exec_type: external, service: object_store}}")))
	return e, filepath.Join(folder, "runs")
}

// specOf waits for the files of a task, and returns their folder.
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

func TestFilesAreDeletedWithTheirTask(t *testing.T) {
	e, runs := filing(t, time.Second, 0)
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

func TestFilesAreDeletedWithTheirFlow(t *testing.T) {
	e, runs := filing(t, -1, 0)
	id, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	specOf(t, runs, id)
	_, err = e.DeleteFlow(t.Context(), "work", true)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(runs, id))
	require.NoError(t, e.Close())
}

// stubborn is a bucket that refuses to delete the files of one task.
type stubborn struct {
	troupe.Bucket
	task *atomic.Value
}

func (s stubborn) Delete(ctx context.Context, prefix string) error {
	if task, _ := s.task.Load().(string); task != "" && strings.Contains(prefix, task) {
		return &fs.PathError{Op: "unlinkat", Path: prefix, Err: fs.ErrPermission}
	}
	return s.Bucket.Delete(ctx, prefix)
}

func TestUndeletableFilesDoNotBlockTheDeletionOfTasks(t *testing.T) {
	var kept atomic.Value
	buckets := map[string]troupe.OpenBucket{"stubborn": func(_ context.Context, at *url.URL) (troupe.Bucket, error) {
		dir, err := objects.OpenDir(at.Path)
		return stubborn{dir, &kept}, err
	}}
	folder := t.TempDir()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(),
		"x.db"), ObjectStore: "stubborn://" + filepath.ToSlash(folder), Buckets: buckets,
		Retention: time.Second})
	require.NoError(t, err)
	require.NoError(t, e.Publish(t.Context(), "work", []byte("nodes: {a: {exec_type: external, service: object_store}}")))
	var tasks []string
	for range 2 {
		id, err := e.Start(t.Context(), "work", nil)
		require.NoError(t, err)
		specOf(t, filepath.Join(folder, "runs"), id)
		tasks = append(tasks, id)
	}
	kept.Store(tasks[0])
	for _, id := range tasks {
		require.NoError(t, e.Cancel(t.Context(), id, troupe.Forced))
	}
	for _, id := range tasks {
		require.Eventually(t, func() bool {
			_, err := e.Task(t.Context(), id)
			return errors.Is(err, troupe.ErrNotFound)
		}, 20*time.Second, 10*time.Millisecond)
	}
	require.Eventually(t, func() bool { // files are deleted after their task
		_, err := os.Stat(filepath.Join(folder, "runs", tasks[1]))
		return os.IsNotExist(err)
	}, 20*time.Second, 10*time.Millisecond)
	require.DirExists(t, filepath.Join(folder, "runs", tasks[0]))
	require.NoError(t, e.Close())
}

func TestFilesAreDeletedBeforeTheirTask(t *testing.T) {
	e, runs := filing(t, -1, time.Second)
	ended, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	running, err := e.Start(t.Context(), "work", nil)
	require.NoError(t, err)
	specOf(t, runs, running)
	require.NoError(t, os.WriteFile(filepath.Join(specOf(t, runs, ended), "status.json"), []byte(`{"status": "success"}`), 0o600))
	_, err = e.Wait(t.Context(), ended)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(runs, ended))
		return os.IsNotExist(err)
	}, 30*time.Second, 10*time.Millisecond)
	_, err = e.Task(t.Context(), ended)
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(runs, running))
	require.NoError(t, e.Close())
}

func TestKeepingFilesRequiresAnObjectStore(t *testing.T) {
	for want, cfg := range map[string]troupe.Config{
		"needs an object store": {ObjectStoreRetention: time.Hour},
		"must not be negative":  {ObjectStoreRetention: -1, ObjectStore: "file://" + filepath.ToSlash(t.TempDir())},
	} {
		cfg.Store = "sqlite:" + filepath.Join(t.TempDir(), "x.db")
		_, err := troupe.Open(t.Context(), cfg)
		require.ErrorContains(t, err, want)
	}
}
