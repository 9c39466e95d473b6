//go:build unix

package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWorkerStartsProgramsAsAMemberDoes(t *testing.T) {
	url := startServe(t) // it starts no programs itself
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in", "f.py"), []byte("def main(n, ctx): return [n + 1, ctx.task_name]"), 0o600))
	for mode, route := range map[string]string{"attach": "push", "pull": "queue"} {
		path := write(t, "far-"+mode+".yaml", "profile: ork\ndefaults: {route: "+route+"}\nnodes:\n"+
			"  shell: {exec: {type: process, service: "+mode+
			", root: in, command: 'read -r x; echo \"ORK_OUTPUT:[$ORK_INPUT_JSON, $x, "+
			"$ORK_ATTEMPT]\"; pwd >&2'}}\n"+
			"  python: {exec: {type: python, service: "+mode+", root: in, file: f.py}}\n"+
			"  why: {exec: {type: process, service: "+mode+
			", command: 'echo ''ORK_METRIC:{\"name\":\"rows\",\"value\":7}''; echo "+
			"''ORK_ERROR:{\"message\":\"m\",\"details\":{\"k\":1}}''; exit 1'}}\n"+
			"  out: {exec: {type: process, service: "+mode+", root: .., command: pwd}, depends_on: [shell, python]}\n")
		require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
		_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--mode", mode,
			"--process", "--services", mode, "--script-dir", dir)
		awaitWorker(t, url, mode) // a push job without a worker fails at once
		id := strings.TrimSpace(call(t, "task", "start", "far-"+mode, "-p", "n=1", "--server", url).stdout)
		call(t, "task", "watch", id, "--server", url)
		runs := call(t, "task", "history", id, "--runs", "--server", url).stdout
		require.Regexp(t, `\[{"n":1}, ?{"n":1}, ?1\]`, runs)
		require.Regexp(t, `\[2, ?"python"\]`, runs)
		require.JSONEq(t, `{"k":1}`, string(detailsOf(t, url, id, "why")), mode)
		require.Regexp(t, `"name": ?"rows"`, call(t, "task", "history", id, "--runs", "-o", "json", "--server", url).stdout, mode)
		require.Contains(t, runs, "is outside of the folder that programs may ru")
	}
}

// detailsOf returns the error details of a node's last attempt.
func detailsOf(t *testing.T, url, id, node string) json.RawMessage {
	var steps struct {
		Items []struct{ Details json.RawMessage }
	}
	answer, err := http.Get(url + "/v1/tasks/" + id + "/steps?step=" + node)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&steps))
	require.Len(t, steps.Items, 1)
	return steps.Items[0].Details
}
