//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// specIn writes the spec of an attempt in a new folder.
func specIn(t *testing.T) (folder, path string) {
	path = write(t, "spec.json", `{"task_id": "t", "run_id": "r", "task_name": "a", `+
		`"workflow_name": "w", "input": {"n": 1}, "parallel_index": 1, "parallel_count": 3, "attempt": 2}`)
	return filepath.Dir(path), path
}

// said returns the last status that a worker has written.
func said(t *testing.T, folder string) (status map[string]any) {
	text, err := os.ReadFile(filepath.Join(folder, "status.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &status))
	for _, name := range []string{"heartbeat", "started_at", "finished_at"} {
		_, err := time.Parse(time.RFC3339Nano, status[name].(string))
		require.NoError(t, err)
		delete(status, name)
	}
	return status
}

func TestAWorkerCarriesOutTheSpecInAFile(t *testing.T) {
	folder, path := specIn(t)
	r := call(t, "worker", "--spec", path, "--exec",
		`cat; echo "$ORK_TASK_NAME $ORK_ATTEMPT $ORK_PARALLEL_INDEX" >&2; grep -q running `+
			`status.json && echo beats >&2`, "--script-dir", folder)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "a 2 1\nbeats\n")
	require.Equal(t, map[string]any{"status": "success", "attempt": 2.0}, said(t, folder))
	output, err := os.ReadFile(filepath.Join(folder, "output.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{"n": 1}`, string(output))

	folder, path = specIn(t)
	require.Equal(t, 1, call(t, "worker", "--spec", "file://"+path, "--exec", "echo no luck >&2; exit 3").code)
	require.Equal(t, map[string]any{"status": "failed", "attempt": 2.0, "error": "exit status 3: no luck"}, said(t, folder))
	require.NoFileExists(t, filepath.Join(folder, "output.json"))
}

func TestAWorkerWithAWithdrawnAttemptEnds(t *testing.T) {
	folder, path := specIn(t)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cancel.json"), []byte("{}"), 0o600))
	require.Equal(t, 1, call(t, "worker", "--spec", path, "--heartbeat", "10ms", "--exec", "sleep 60; true").code)
	require.Equal(t, map[string]any{"status": "failed", "attempt": 2.0, "error": "nobody waits for it any longer"}, said(t, folder))
}

func TestAWorkerRejectsAnInvalidSpec(t *testing.T) {
	_, path := specIn(t)
	for want, args := range map[string][]string{
		"needs --exec":           {"--spec", path},
		"use troupe-cloud":       {"--spec", "gs://bucket/runs/r/t/1/spec.json?secret=x", "--exec", "true"},
		"must be named spec.jso": {"--spec", "status.json", "--exec", "true"},
		"a positive duration":    {"--spec", path, "--exec", "true", "--heartbeat", "0s"},
	} {
		r := call(t, append([]string{"worker"}, args...)...)
		require.Equal(t, 2, r.code, r.stderr)
		require.Contains(t, r.stderr, want)
		require.NotContains(t, r.stderr, "secret")
	}
}

func TestProgramsReportToAMemberByFiles(t *testing.T) {
	folder := t.TempDir()
	url := startServe(t, "--allow-scripts", "--object-store", "file://"+folder)
	path := write(t, "far.yaml", "profile: ork\nnodes:\n  a: {exec: {type: process, report: "+
		"object_store, env: {TROUPE: "+binary+
		`}, command: '"$TROUPE" worker --spec "$TASK_SPEC_PATH" --exec cat'}}`+"\n")
	r := call(t, "flow", "run", path, "-p", "n=1", "--server", url)
	require.Zero(t, r.code, r.stdout+r.stderr)
	require.Contains(t, r.stdout, `"n"`)
	found, err := filepath.Glob(filepath.Join(folder, "runs", "*", "*", "1", "*.json"))
	require.NoError(t, err)
	names := []string{}
	for _, one := range found {
		names = append(names, filepath.Base(one))
	}
	require.Equal(t, "output.json spec.json status.json", strings.Join(names, " "))

	none := startServe(t, "--allow-scripts")
	require.Contains(t, call(t, "flow", "run", path, "--server", none).stdout,
		"no object store; its operator can give it one with --object-store")
	require.Equal(t, 1, call(t, "serve", "--object-store", "gs://bucket", "--store", "sqlite:"+filepath.Join(t.TempDir(), "x.db")).code)
}
