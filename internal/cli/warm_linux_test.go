package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrdersAreCheckedByProcessesOfTwoWarmInterpreters(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(repository, "examples", "warm"))))
	member, url := startBinary(t, "--allow-scripts", "--script-dir", dir)
	got := call(t, "flow", "run", filepath.Join(dir, "orders.yaml"), "--server", url, "--output", "json")
	require.Equal(t, 0, got.code, got.stdout+got.stderr)
	var task struct {
		ID     string
		Result struct{ Report json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &task))
	require.JSONEq(t, `{"checked":24,"wrong":[5,10,15,20]}`, string(task.Result.Report))

	logs := logged(t, 24, "forked by", task.ID, "--node", "check", "--server", url)
	processes, interpreters := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`process (\d+), forked by (\d+)`).FindAllStringSubmatch(logs, -1) {
		processes[m[1]], interpreters[m[2]] = true, true
	}
	require.Len(t, processes, 24, "each attempt is a process of its own")
	require.LessOrEqual(t, len(interpreters), 2)
	require.NotContains(t, interpreters, strconv.Itoa(member.Process.Pid), "the member has started one itself")
}
