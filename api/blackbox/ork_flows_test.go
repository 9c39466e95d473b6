package blackbox

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func orkVersions(c *client) {
	f := c.orkIn(c.TempDir())
	first := f.register(sh("a", waits("go")))
	require.Equal(c, "created", first["outcome"])
	r := f.start(nil)
	second := f.register(sh("a", "ls"), sh("b", "ls"))
	require.Equal(c, "replaced", second["outcome"])
	require.NotEqual(c, first["snapshot_id"], second["snapshot_id"])
	again := f.register(sh("a", "ls"), sh("b", "ls"))
	require.Equal(c, []any{"unchanged", second["snapshot_id"]}, []any{again["outcome"], again["snapshot_id"]})
	f.touch("go")
	r.ends("success")
	require.Equal(c, map[string]string{"a": "success"}, r.statuses())
	require.Len(c, r.read()["workflow"].(obj)["tasks"], 1, "it is shown as it ran")
	require.Len(c, f.start(nil).ends("success").statuses(), 2)
}

func orkRefused(c *client) {
	for text, tasks := range map[string][]string{
		"workflow contains a cycle involving task": {sh("a", "ls", "depends_on: [b]"), sh("b", "ls", "depends_on: [a]")},
		"task a depends on unknown task zz":        {sh("a", "ls", "depends_on: [zz]")},
		"task a cannot depend on itself":           {sh("a", "ls", "depends_on: [a]")},
		"tasks.b depends_on has duplicate 'a'":     {sh("a", "ls"), sh("b", "ls", "depends_on: [a, a]")},
		"workflow must contain at least one task":  {"{}"},
		"task a requires a `command` or `file`":    {"a: {executor: process}"},
		"task a file not found at none.py":         {"a: {executor: python, file: none.py}"},
		// exists, but outside of the root
		"task a file not found at /etc/passwd":     {"a: {executor: process, file: /etc/passwd}"},
		"task a file not found at ../../../../../": {"a: {executor: process, file: ../../../../../../../../../../../etc/passwd}"},
		"unknown field": {sh("a", "ls", "dependson: [b]")},
	} {
		f := c.orkIn(c.TempDir())
		status, answer := f.tryRegister(tasks...)
		require.Equal(c, 400, status, text)
		require.Equal(c, "invalid", answer["error"])
		require.Contains(c, answer["message"], text)
		require.True(c, strings.HasPrefix(answer["path"].(string), "tasks"), "%v", answer)
		require.NotZero(c, answer["problems"].([]any)[0].(obj)["line"])
	}
}

func orkReplicated(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("five.sh", "#!/bin/sh", `echo "ORK_OUTPUT:\"$task_index $workflow_name\""`)
	c.post("/workflows", obj{"name": f.name, "job_name": "./five.sh", "executor": "process",
		"task_count": 5, "project": "p", "root": f.root})
	require.Equal(c, "process", c.get("/workflows/" + f.name)["executor"])
	r := f.start(nil).ends("success")
	tasks := objects(c, r.read()["tasks"])
	require.Len(c, tasks, 5)
	for i, t := range tasks {
		require.Equal(c, fmt.Sprintf("task_%d", i), t["name"])
		require.Equal(c, fmt.Sprintf("%d %s", i, f.name), t["output"])
		r.logged(t["name"].(string)+"/logs",
			func(text string) bool {
				return strings.Contains(text, fmt.Sprintf(`ORK_OUTPUT:"%d %s"`,
					i, f.name))
			})
	}
}

func orkLargeInput(c *client) {
	large := strings.Repeat("x", 300_000)
	r := c.ork(sh("a",
		`wc -c < "$ORK_INPUT_FILE" > size; [ -z "$ORK_INPUT_JSON" ] && wc -c | tr -d ' '`)).start(
		obj{"large": large}).ends("success")
	require.InDelta(c, 300_012, r.task("a")["output"], 2)
	text, err := os.ReadFile(filepath.Join(r.root, "size"))
	require.NoError(c, err)
	require.Contains(c, string(text), "30001")
}

func orkNames(c *client) {
	r := c.ork(sh("a-b", gives(`{"v":1}`)), sh("x.y", `echo "ORK_OUTPUT:\"$ORK_TASK_NAME $task_name $task_index\""`, "depends_on: [a-b]"),
		sh("run", "printf ORK_OUTPUT:; cat", "depends_on: [a-b, x.y]"),
		sh("bound", "printf ORK_OUTPUT:; cat", "depends_on: [a-b, x.y, run]",
			"inputs: {v: {ref: tasks.a-b.output.v}, text: {ref: tasks.x.y.output}, inner: {ref: "+
				"tasks.run.output.a-b.v}}")).start(nil).ends("success")
	require.Equal(c, "x.y x.y 1", r.task("x.y")["output"])
	require.Equal(c, obj{"a-b": obj{"v": 1.0}, "x.y": "x.y x.y 1"}, r.task("run")["output"])
	require.Equal(c, obj{"v": 1.0, "text": "x.y x.y 1", "inner": 1.0}, r.task("bound")["output"])
	require.Equal(c, []any{"a-b", "x.y"}, r.task("run")["depends_on"])
}

func orkImplicit(c *client) {
	f := c.orkIn(c.TempDir())
	answer := f.register(sh("d", gives(`{"files":[1,2]}`)), sh("f", "ls", "foreach: d.files"))
	require.Contains(c, answer["warnings"].([]any)[0].(obj)["message"], "makes d a dependency")
	r := f.start(nil).ends("success")
	require.Equal(c, []any{"d"}, r.task("f")["depends_on"])
	require.Len(c, r.tasks("f"), 2)
}

func orkAlias(c *client) {
	f := c.orkIn(c.TempDir())
	task := sh("a", gives(`{"id":1}`), "output_type: types.T")
	f.lead = "types: {T: {id: int}}\n"
	first := f.register(task)
	f.lead = "types: {T: {id: float}}\n"
	second := f.register(task)
	require.Equal(c, "replaced", second["outcome"])
	require.NotEqual(c, first["snapshot_id"], second["snapshot_id"])
	f.root = c.TempDir()
	third := f.register(task)
	require.Equal(c, []any{"unchanged", second["snapshot_id"]}, []any{third["outcome"], third["snapshot_id"]})
}

func orkOutputType(c *client) {
	r := c.ork(sh("a", gives(`{"id":"one"}`), "output_type: {id: int}"),
		sh("b", gives(`{"id":"one"}`), "output_type: {id: int}", "validate_output: false")).start(
		nil).ends("failed")
	require.Equal(c, map[string]string{"a": "failed", "b": "success"}, r.statuses())
	require.Contains(c, r.task("a")["error"], `output.id: is text "one", an int was declared`)
}

func orkWorkflows(c *client) {
	f := c.ork(sh("a", "ls"), sh("b", waits("go"), "depends_on: [a]"))
	page := c.get("/workflows?search=" + strings.ToUpper(f.name))
	require.Equal(c, []any{1.0, 100.0, 0.0, false}, []any{page["total"], page["limit"], page["offset"], page["has_more"]})
	item := objects(c, page["items"])[0]
	page = c.get("/workflows?offset=9223372036854775807&limit=9223372036854775807&search=" + f.name)
	require.Equal(c, []any{1.0, []any{}, false}, []any{page["total"], page["items"], page["has_more"]}, "behind the end there is nothing")
	require.Equal(c, []any{f.name, "dag", "local"}, []any{item["name"], item["executor"], item["project"]})
	shown := c.get("/workflows/" + f.name)
	require.Equal(c, []any{obj{"name": "a", "depends_on": []any{}, "executor": "process"},
		obj{"name": "b", "depends_on": []any{"a"}, "executor": "process"}}, shown["tasks"])

	status, answer := c.call("POST", "/workflows", obj{"yaml": f.yaml(sh("a", "ls")), "replace": false})
	require.Equal(c, 409, status)
	require.Equal(c, "Workflow already exists; pass replace=true to update tasks.", answer.(obj)["message"])

	r := f.start(nil)
	status, _ = c.call("DELETE", "/workflows/"+f.name, nil)
	require.Equal(c, 409, status, "a run is active")
	status, _ = c.call("DELETE", "/workflows/"+f.name+"?force=true", nil)
	require.Equal(c, 204, status)
	status, _ = c.call("GET", "/runs/"+r.id, nil)
	require.Equal(c, 404, status)
	status, _ = c.call("GET", "/workflows/"+f.name, nil)
	require.Equal(c, 404, status)
}

func orkRuns(c *client) {
	f := c.ork(sh("a", "ls"))
	var ids []string
	for range 3 {
		ids = append(ids, f.start(nil).ends("success").id)
	}
	page := c.get("/runs?limit=2&workflow=" + url.QueryEscape(f.name))
	require.Equal(c, []any{3.0, 2.0, true}, []any{page["total"], page["limit"], page["has_more"]})
	items := objects(c, page["items"])
	require.Equal(c, []any{ids[2], ids[1]}, []any{items[0]["id"], items[1]["id"]}, "newest first")
	require.Equal(c, []any{f.name, "success"}, []any{items[0]["workflow"], items[0]["status"]})
	require.Equal(c, 3.0, c.get("/runs?status=success&workflow=" + f.name)["total"])
	require.Equal(c, 0.0, c.get("/runs?status=paused&workflow=" + f.name)["total"])
	status, _ := c.call("GET", "/runs?status=happy", nil)
	require.Equal(c, 400, status)
	require.Len(c, objects(c, c.get("/runs/" + ids[0] + "/tasks")["items"]), 1)

	status, refusal := c.call("POST", "/runs", []string{f.name})
	require.Equal(c, 400, status)
	require.Equal(c, "the body must be a JSON object, is a array", refusal.(obj)["message"])

	begun := c.post("/runs", obj{"workflow": f.name})
	require.NotEmpty(c, begun["run_id"])
	r := &orkRun{f, begun["run_id"].(string)}
	r.ends("success")
	require.Equal(c, "ui", r.read()["run"].(obj)["triggered_by"])
}

func orkIdempotent(c *client) {
	f := c.ork(sh("a", "ls"))
	start := func(body obj) (int, any) {
		status, v := c.call("POST", "/workflows/"+f.name+"/runs", body)
		return status, v.(obj)["run_id"]
	}
	for _, input := range []any{[]any{1}, "x", 1, true} {
		status, v := c.call("POST", "/runs", obj{"workflow": f.name, "input": input})
		require.Equal(c, 400, status)
		require.Contains(c, v.(obj)["message"], "the input must be an object, whose fields the tasks get")
	}
	for _, lost := range []string{`\ud800`, `a\udfff`, "\ufffd"} {
		for path, named := range map[string]string{"/workflows/" + f.name + "/runs": "", "/runs": `"workflow":"` + f.name + `",`} {
			status, v := c.call("POST", path, json.RawMessage(`{`+named+`"idempotency_key":"`+lost+`"}`))
			require.Equal(c, 400, status, path)
			require.Contains(c, v.(obj)["message"], "U+FFFD, which stands for text that was lost")
		}
	}
	_, first := start(obj{"idempotency_key": "k"})
	_, second := start(obj{"idempotency_key": "k"})
	require.Equal(c, first, second)
	status, _ := start(obj{"idempotency_key": "k", "input": obj{"x": 1}})
	require.Equal(c, 409, status)
	own := uuid.NewString()
	_, id := start(obj{"run_id": own})
	require.Equal(c, own, id)
	status, _ = start(obj{"run_id": "mine"})
	require.Equal(c, 400, status)
}

func orkMissing(c *client) {
	none := "6fa459ea-ee8a-3ca4-894e-db77e1603550"
	for _, path := range []string{"/workflows/none", "/runs/" + none, "/runs/" + none + "/tasks"} {
		status, v := c.call("GET", path, nil)
		require.Equal(c, 404, status, path)
		require.Equal(c, "not_found", v.(obj)["error"])
	}
	for _, path := range []string{"/workflows/none/runs", "/runs/" + none + "/cancel",
		"/runs/" + none + "/retry", "/tasks/" + none + "/pause"} {
		status, _ := c.call("POST", path, obj{})
		require.Equal(c, 404, status, path)
	}
	_, v := c.call("POST", "/tasks/"+none+"/pause", obj{})
	require.Contains(c, v.(obj)["message"], none, "as it was asked for")
	status, _ := c.call("POST", "/tasks/x/pause", nil)
	require.Equal(c, 400, status)
}

func orkBesideOthers(c *client) {
	r := c.pgflow("a: {}").run(obj{})
	answer := c.get("/runs/" + r.id)
	require.Equal(c, "started", answer["run"].(obj)["status"])
	require.NotContains(c, answer, "workflow")
	task := c.start(obj{"start": "a", "nodes": obj{"a": obj{"kind": "approval", "params": obj{"approval_key": "$shared.ok"}}}}, obj{})
	status, _ := c.call("POST", "/runs/"+task+"/retry", obj{"task": "a"})
	require.Equal(c, 409, status)
	require.Empty(c, c.get("/runs/" + task + "/tasks")["items"])
}
