package blackbox

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

func newTask(c *client) {
	flow, version := c.flow(waitForever)
	params := `{ "b":1, "a":12345678901234567890 }`
	id := c.post("/tasks", obj{"FlowID": flow, "FlowVersionID": version, "ParamsJSON": params})["id"].(string)
	require.True(c, strings.HasPrefix(id, "task-"), id)
	t := c.read(id)
	require.Contains(c, []any{"pending", "running"}, t["status"])
	for _, key := range []string{"lease_owner", "lease_expiry", "created_at", "updated_at", "last_action", "step_count"} {
		require.Contains(c, t, key)
	}
	require.Equal(c, params, t["params_json"])
	require.Equal(c, []any{id, version, flow, 1.0, "{}", "", "w"}, []any{t["id"], t["flow_version_id"], t["flow_id"],
		t["flow_version"], t["retry_state_json"], t["request_id"], t["current_node_key"]})
	require.Equal(c, c.listedFlow(flow)["name"], t["flow_name"])
	require.Equal(c, t["shared_json"], t["SharedJSON"])
	require.Equal(c, t["current_node_key"], t["CurrentNodeKey"])
	status, v := c.call("POST", "/tasks", obj{"FlowID": flow, "ParamsJSON": "{broken"})
	require.Equal(c, 400, status, "broken params would break whoever reads them: %v", v)
	embedded := c.post("/tasks", obj{"FlowID": flow, "ParamsJSON": obj{"a": 1}})["id"].(string)
	require.Equal(c, `{"a":1}`, c.read(embedded)["params_json"])
}

func taskFilter(c *client) {
	flow, version := c.flow(waitForever)
	done, open := c.task(flow, obj{}), c.task(flow, obj{})
	c.untilStatus(open, "running")
	time.Sleep(5 * time.Millisecond) // makes the order of changes unambiguous
	c.signal(done, "go", true)
	c.ends(done, "completed")
	page := func(query string) []any {
		p := c.get("/tasks?" + query)
		rows := objects(c, p["data"])
		require.EqualValues(c, len(rows), p["total"])
		return values(rows, "id")
	}
	require.Equal(c, []any{done}, page("status=completed&flow_version_id="+version))
	require.Equal(c, []any{open}, page("status=running&flow_version_id="+version))
	require.Equal(c, []any{done, open}, page("flow_version_id="+version), "the newest change first")
	require.Empty(c, page("status=waiting_queue&flow_version_id="+version))
	require.Empty(c, page("status=sleeping"))

	service := unique("svc")
	queueFlow, queueVersion := c.flow(queueNode(service))
	waiting := c.task(queueFlow, obj{})
	c.untilStatus(waiting, "waiting_queue")
	require.Equal(c, []any{waiting}, page("status=waiting_queue&flow_version_id="+queueVersion))
	require.Empty(c, page("status=running&flow_version_id="+queueVersion))
}

func unknownTask(c *client) {
	c.refused(404, "not found", "GET", "/tasks/get?id=nope", nil)
	c.refused(404, "not found", "GET", "/tasks/get", nil)
	c.refused(404, "not found", "POST", "/tasks/signal", obj{"task_id": "nope", "key": "k"})
	c.refused(400, "bad request", "POST", "/tasks/signal", obj{"task_id": "nope"})
	c.refused(400, "bad request", "POST", "/tasks/signal", "no json")
	require.Empty(c, c.list("/tasks/runs?task_id=nope"))
	status, _ := c.call("POST", "/tasks/run_once?id=nope", nil)
	require.Equal(c, 404, status)
}

func logErrors(c *client) {
	c.refused(400, "missing run_id", "GET", "/tasks/logs", nil)
	c.refused(404, "run not found", "GET", "/tasks/logs?run_id=run-nope", nil)
	task := c.start(localMul, obj{"val": 1})
	c.ends(task, "completed")
	run := c.runs(task)[0]["id"].(string)
	require.True(c, strings.HasPrefix(run, "run-"), run)
	c.refused(404, "no log path", "GET", "/tasks/logs?run_id="+run, nil)
}

const localMul = `{"start":"x","nodes":{"x":{"exec_type":"local_func","func":"mul","params":{"mul":2},
	"prep":{"input_key":"$params.val"},"post":{"output_key":"out"}}}}`

func taskParamsWin(c *client) {
	task := c.start(localMul, obj{"val": 3})
	t := c.ends(task, "completed")
	c.shared(t, `{"out":6}`)
	require.Equal(c, []any{"", ""}, []any{t["current_node_key"], t["last_action"]})
	rows := c.runs(task)
	require.Len(c, rows, 1)
	row := rows[0]
	require.NotEmpty(c, row["id"])
	require.Greater(c, row["finished_at"], 1.7e9)
	delete(row, "id")
	delete(row, "started_at")
	delete(row, "finished_at")
	require.Equal(c, obj{"task_id": task, "node_key": "x", "attempt_no": 1.0, "status": "ok", "sub_status": "", "branch_id": "",
		"prep_json": `{"input_key":"$params.val"}`, "exec_input_json": "3", "exec_output_json": "6", "error_text": "", "action": "",
		"worker_id": "local-func:mul", "worker_url": "local", "log_path": ""}, row)
	c.shared(c.ends(c.start(localMul, obj{"val": 3, "mul": 5}), "completed"), `{"out":15}`)
}

func inputMap(c *client) {
	task := c.start(`{"start":"x","nodes":{"x":{"exec_type":"local_func","func":"log_result",
		"prep":{"input_map":{"a":"$params.q.r[1]","b":"plain","c":"$shared.none"}},"post":{"output_key":"out"}}}}`, obj{"q": obj{"r": []int{5, 6}}})
	c.shared(c.ends(task, "completed"), `{"out":{"a":6,"b":"plain","c":null}}`)
	require.JSONEq(c, `{"a":6,"b":"plain","c":null}`, c.runs(task)[0]["exec_input_json"].(string))
}

func defaultEdge(c *client) {
	node := `"x":{"exec_type":"local_func","func":"log_result","post":{"action_static":"zzz"}}`
	task := c.start(`{"start":"x","nodes":{`+node+`,"y":{"kind":"choice","default_action":"end"}},
		"edges":[{"from":"x","action":"default","to":"y"}]}`, obj{})
	require.Equal(c, "end", c.ends(task, "completed")["last_action"])
	require.Len(c, c.runs(task), 2)
	t := c.ends(c.start(`{"start":"x","nodes":{`+node+`}}`, obj{}), "completed")
	require.Equal(c, []any{"zzz", ""}, []any{t["last_action"], t["current_node_key"]})
}

func failureEdge(c *client) {
	node := `"x":{"exec_type":"local_func","func":"upper","post":{"output_key":"out","action_static":"ok"}}`
	task := c.start(`{"start":"x","nodes":{`+node+`}}`, obj{})
	c.shared(c.ends(task, "failed"), `{}`)
	require.Equal(c, []any{"failed"}, values(c.runs(task), "error_text"))
	task = c.start(`{"start":"x","nodes":{`+node+`,"y":{"kind":"choice","default_action":"end"}},
		"edges":[{"from":"x","action":"default","to":"y"}]}`, obj{})
	require.Equal(c, "end", c.ends(task, "completed")["last_action"])
	require.Equal(c, []any{"error", "ok"}, values(c.runs(task), "status"))
}

func choices(c *client) {
	for expr, want := range map[string]string{
		`{"eq":["$params.n","5"]}`:            "yes",
		`{"eq":["$params.none.at.all",null]}`: "yes",
		`{"exists":"$params.off"}`:            "yes",
		`{"in":["b","abc"]}`:                  "yes",
		`{"eq":["$params.n",6]}`:              "no",
		`{"exists":"$params.none"}`:           "no",
	} {
		task := c.start(`{"start":"x","nodes":{"x":{"kind":"choice","default_action":"no",
			"choice_cases":[{"action":"yes","expr":`+expr+`}]}}}`, obj{"n": 5, "off": false})
		require.Equal(c, want, c.ends(task, "completed")["last_action"], expr)
		row := c.runs(task)[0]
		require.Equal(c, []any{want, "ok", 1.0, "null"}, []any{row["action"], row["status"], row["attempt_no"], row["exec_output_json"]})
	}
}
