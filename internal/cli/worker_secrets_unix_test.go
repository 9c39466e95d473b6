//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWorkersProgramsFindItsSecrets(t *testing.T) {
	url := startServe(t) // it has no secrets itself
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "db"), []byte("hunter2-and-more"), 0o600))
	t.Setenv("API_TOKEN", "another-value")
	path := write(t, "far.yaml", "nodes:\n"+
		"  told: {exec: {type: process, service: far, command: 'echo \"[\\\"$A\\\", \\\"$B\\\", "+
		"${#A}, ${#B}]\"; echo $A >&2', secrets: {A: db, B: API_TOKEN}}}\n"+
		"  none: {exec: {type: process, service: far, command: 'true', secrets: {C: other}}}\n")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--mode", "attach",
		"--process", "--services", "far", "--secret-dir", dir, "--secret-env", "API_TOKEN")
	awaitWorker(t, url, "far")
	id := strings.TrimSpace(call(t, "task", "start", "far", "--server", url).stdout)
	call(t, "task", "watch", id, "--server", url)
	told := call(t, "task", "history", id, "--runs", "--server", url).stdout + call(t, "task", "logs", id, "--server", url).stdout
	require.Regexp(t, `\["\*\*\*", ?"\*\*\*", ?16, ?13\]`, told)
	require.Contains(t, told, `there is no secret "other"`)
	require.NotContains(t, told, "hunter2")
	require.NotContains(t, told, "another-value")
	require.Equal(t, 1, call(t, "worker", "--server", url, "--process", "--secret-env", "NO_SUCH_VARIABLE").code)
}

func TestAWorkflowOfOrkFindsValuesAndSecrets(t *testing.T) {
	dir, secrets := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "db"), []byte("hunter2-and-more"), 0o600))
	url := startServe(t, "--allow-scripts", "--script-dir", dir, "--secret-dir", secrets)
	path := filepath.Join(dir, "w.yaml")
	workflow := `name: tells
tasks:
  count-rows: {executor: process, command: "echo 'ORK_OUTPUT:{\"rows\":3}'"}
  tell:
    executor: process
    command: echo "[$ROWS, ${#PASSWORD}, $(wc -c < $ca), \"$PASSWORD\"]"
    depends_on: [count-rows]
    env: {ROWS: "{{ count-rows.rows }}", PASSWORD: {secret: db}}
    secrets: [{name: ca, secret: db, path: ca.pem}]
`
	require.NoError(t, os.WriteFile(path, []byte(workflow), 0o600))
	got := call(t, "flow", "run", path, "--server", url)
	require.Zero(t, got.code, got.stdout+got.stderr)
	require.Regexp(t, `\[3, ?16, ?16, ?"\*\*\*"\]`, got.stdout)

	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(workflow, "{secret: db}", "{secret: dbb}")), 0o600))
	got = call(t, "flow", "run", path, "--server", url)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stdout+got.stderr,
		`tasks.tell.secrets.PASSWORD: there is no secret "dbb" among those that the operator `+
			`lists with --secret-env or --secret-dir: did you mean db?`)
}
