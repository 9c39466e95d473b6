package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/dialect/pocketflow/importer"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/schedulerdb"
)

const oldOrder = `{"start":"price","nodes":{"price":{"kind":"executor","exec_type":"local_func","func":"mul","params":{"mul":3},"prep":{"input_key":"$params.val"},"post":{"output_key":"total"}},
		"ask":{"kind":"approval","params":{"approval_key":"$shared.ok"}},"bill":{"kind":"executor","exec_type":"local_func","func":"mul","prep":{"input_key":"total"},"params":{"mul":10},"post":{"output_key":"bill"}}},
		"edges":[{"from":"price","action":"default","to":"ask"},{"from":"ask","action":"approved","to":"bill"}]}`

// oldScheduler returns the file of a scheduler with two tasks: one has ended, one waits for an
// approval.
func oldScheduler(t *testing.T) string {
	d := schedulerdb.New(t)
	d.Flow("order", oldOrder)
	price := schedulerdb.Run{Node: "price", Attempt: 1, Status: "ok", Input: 2, Output: 6,
		Worker: "local-func:mul", URL: "local", At: 1_700_000_010}
	d.Task(schedulerdb.Task{ID: "task-done", Version: "ver-order", Status: "completed",
		Params: `{"val":2}`, Shared: `{"total":6,"ok":true,"bill":60}`, Created: 1_700_000_009,
		Updated: 1_700_000_020})
	bill := price
	bill.Node, bill.Input, bill.Output, bill.At = "bill", 6, 60, 1_700_000_019
	d.Runs("task-done", price, schedulerdb.Run{Node: "ask", Attempt: 1, Status: "ok", Output: true,
		Action: "approved", At: 1_700_000_018}, bill)
	d.Task(schedulerdb.Task{ID: "task-open", Version: "ver-order", Status: "running",
		Params: `{"val":2}`, Shared: `{"total":6,"_rt":{"ap:ask":{}}}`, Node: "ask",
		Created: 1_700_000_009, Updated: 1_700_000_020})
	d.Runs("task-open", price)
	return d.Close()
}

// ask calls a route of the scheduler's clients.
func ask(t *testing.T, server, path string, query url.Values) (answer any) {
	t.Helper()
	resp, err := http.Get(server + "/api/" + path + "?" + query.Encode())
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
	require.NoError(t, json.Unmarshal(body, &answer))
	return answer
}

// only returns some fields of an object, or of each object in a list.
func only(of any, names ...string) any {
	if list, ok := of.([]any); ok {
		picked := []any{}
		for _, one := range list {
			picked = append(picked, only(one, names...))
		}
		return picked
	}
	picked := map[string]any{}
	for _, name := range names {
		picked[name] = of.(map[string]any)[name]
	}
	return picked
}

func TestASchedulersFileIsTakenOverAndItsTasksGoOn(t *testing.T) {
	t.Run("on SQLite", func(t *testing.T) { takenOver(t, "sqlite:"+filepath.Join(t.TempDir(), "troupe.db")) })
	t.Run("on PostgreSQL", func(t *testing.T) { takenOver(t, pgtest.DSN(t)) })
}

func takenOver(t *testing.T, store string) {
	old := oldScheduler(t)
	before, err := os.ReadFile(old)
	require.NoError(t, err)

	refused := call(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+old)
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, `"troupe import pocketflow `+old+`" takes its flows and tasks over`)

	dry := call(t, "import", "pocketflow", old, "--store", store, "--dry-run")
	require.Equal(t, 0, dry.code, dry.stderr)
	require.Contains(t, dry.stdout, "Nothing was written.")
	require.NoFileExists(t, strings.TrimPrefix(store, "sqlite:"))

	got := call(t, "import", "pocketflow", old, "--store", store)
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `(?m)^flows +1 +0 +0$`, got.stdout)
	require.Regexp(t, `(?m)^versions +1 +0 +0$`, got.stdout)
	require.Regexp(t, `(?m)^tasks +2 +0 +0$`, got.stdout)
	require.Regexp(t, `(?m)^runs +4 +0 +0$`, got.stdout)
	require.Contains(t, got.stdout, "1 tasks have not ended: they continue when a member serves the store.")
	require.Contains(t, got.stdout, "members delete tasks that ended more than 30 days ago")
	require.Contains(t, got.stdout, "Next: troupe serve --store "+troupe.StoreName(store))
	again := call(t, "import", "pocketflow", old, "--store", store, "-o", "json")
	require.Equal(t, 0, again.code, again.stderr)
	var report struct{ Tasks importer.Count }
	require.NoError(t, json.Unmarshal([]byte(again.stdout), &report))
	require.Equal(t, 2, report.Tasks.There)
	require.Zero(t, report.Tasks.Taken)
	after, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, before, after, "byte for byte")
	beside, err := os.ReadDir(filepath.Dir(old))
	require.NoError(t, err)
	require.Len(t, beside, 1)

	line, _ := background(t, "serve", "--listen", "127.0.0.1:0", "--store", store, "--retention=-1s", "--log-level", "error")
	server := urlIn(t, line)
	one := func(id string) url.Values { return url.Values{"id": {id}, "task_id": {id}} }
	require.Equal(t, map[string]any{"id": "task-done", "flow_version_id": "ver-order",
		"flow_id": "flow-order", "flow_name": "order", "flow_version": 1.0, "status": "completed",
		"params_json": `{"val":2}`, "current_node_key": "", "created_at": 1_700_000_009.0, "updated_at": 1_700_000_020.0},
		only(ask(t, server, "tasks/get", one("task-done")), "id", "flow_version_id", "flow_id",
			"flow_name", "flow_version", "status", "params_json", "current_node_key", "created_at",
			"updated_at"))
	row := func(node, input, output, action, worker, url string, at float64) any {
		return map[string]any{"task_id": "task-done", "node_key": node, "attempt_no": 1.0,
			"status": "ok", "exec_input_json": input, "exec_output_json": output, "error_text": "",
			"action": action, "worker_id": worker, "worker_url": url, "started_at": at,
			"finished_at": at, "branch_id": "", "sub_status": ""}
	}
	require.Equal(t, []any{row("price", "2", "6", "", "local-func:mul", "local", 1_700_000_010),
		row("ask", "null", "true", "approved", "", "", 1_700_000_018),
		row("bill", "6", "60", "", "local-func:mul", "local", 1_700_000_019)},
		only(ask(t, server, "tasks/runs", one("task-done")), "task_id", "node_key", "attempt_no",
			"status", "exec_input_json", "exec_output_json", "error_text", "action",
			"worker_id", "worker_url", "started_at", "finished_at", "branch_id", "sub_status"))

	require.Equal(t, oldOrder, only(ask(t, server, "flows/version/get",
		url.Values{"id": {"ver-order"}}), "definition_json").(map[string]any)["definition_json"],
		"as it was sent")

	signal := call(t, "task", "signal", "task-open", "ok", "true", "--server", server)
	require.Equal(t, 0, signal.code, signal.stderr)
	require.Eventually(t, func() bool {
		return only(ask(t, server, "tasks/get", one("task-open")), "status").(map[string]any)["status"] == "completed"
	}, 30*time.Second, 10*time.Millisecond)
	require.JSONEq(t, `{"total":6,"ok":true,"bill":60}`,
		only(ask(t, server, "tasks/get", one("task-open")),
			"shared_json").(map[string]any)["shared_json"].(string))
	runs := call(t, "task", "show", "task-done", "--server", server)
	require.Equal(t, 0, runs.code, runs.stderr)

	taken := call(t, "import", "pocketflow", old, "--store", store)
	require.Equal(t, 1, taken.code)
	require.Contains(t, taken.stderr, "hint: stop the member, import, and start it again")
}

func TestUnimportableRowsAreListedAndFailTheCommand(t *testing.T) {
	d := schedulerdb.New(t)
	d.Flow("order", `{"start":"gone","nodes":{"a":{"kind":"executor","service":"x"}}}`)
	d.Task(schedulerdb.Task{ID: "task-1", Version: "ver-order", Status: "completed", Params: `{}`, Shared: `{}`, Created: 1, Updated: 1})
	got := call(t, "import", "pocketflow", d.Close(), "--store", "sqlite:"+filepath.Join(t.TempDir(), "troupe.db"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "version ver-order: its definition cannot be used: ")
	require.Contains(t, got.stderr, "task task-1: its version ver-order is not taken")
}
