package blackbox

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// branches registers three services, the second of which fails, and returns their names.
func (c *client) branches() (first, second, third string) {
	c.Helper()
	first, second, third = unique("ok"), unique("bad"), unique("ok")
	fine := func(name string) service { return func(any, obj) (any, string) { return "from " + name, "" } }
	c.push(map[string]service{first: fine(first), third: fine(third),
		second: func(any, obj) (any, string) { return nil, "boom" }})
	return first, second, third
}

func parallelNode(mode, strategy, edges string, services ...string) string {
	list := ""
	for i, s := range services {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf(`{"start":"p","nodes":{
		"p":{"kind":"parallel","parallel_mode":%q,"failure_strategy":%q,"parallel_services":[%s],"prep":{"input_key":"$params.val"},
			"post":{"output_key":"agg","action_static":"next"}},
		"y":{"kind":"choice","default_action":"end"}},"edges":[%s]}`, mode, strategy, list, edges)
}

const toNext = `{"from":"p","action":"next","to":"y"}`

func parallelCollect(c *client) {
	first, second, third := c.branches()
	task := c.start(parallelNode("concurrent", "", toNext, first, second, third), obj{"val": 1})
	t := c.ends(task, "completed")
	require.Equal(c, "end", t["last_action"])
	c.shared(t, fmt.Sprintf(`{"agg":["from %s",null,"from %s"]}`, first, third))
	rows := c.runs(task)
	require.Len(c, rows, 5)
	for _, row := range rows[:3] {
		require.Equal(c, []any{"p", "branch_complete", 1.0, "1"},
			[]any{row["node_key"], row["sub_status"], row["attempt_no"], row["exec_input_json"]})
		require.JSONEq(c, fmt.Sprintf(`{"branch":%q,"input_key":"$params.val"}`, row["branch_id"]), row["prep_json"].(string))
	}
	require.ElementsMatch(c, []any{first, second, third}, values(rows[:3], "branch_id"))
	final := rows[3]
	require.Equal(c, []any{"error", "", "", "next"}, []any{final["status"], final["sub_status"], final["branch_id"], final["action"]})
	require.JSONEq(c, fmt.Sprintf(`{%q:"boom"}`, second), final["error_text"].(string))
	require.JSONEq(c, fmt.Sprintf(`["from %s",null,"from %s"]`, first, third), final["exec_output_json"].(string))
	c.ends(c.start(parallelNode("concurrent", "", "", first, second, third), obj{}), "failed")
	c.ends(c.start(parallelNode("", "", "", first, second, third), obj{}), "failed")
}

func parallelContinue(c *client) {
	first, second, third := c.branches()
	for _, mode := range []string{"concurrent", ""} {
		task := c.start(parallelNode(mode, "continue", "", first, second, third), obj{})
		c.shared(c.ends(task, "completed"), fmt.Sprintf(`{"agg":["from %s",null,"from %s"]}`, first, third))
		rows := c.runs(task)
		require.Equal(c, []any{"ok", ""}, []any{rows[3]["status"], rows[3]["error_text"]})
	}
}

// parallelFailFast checks that failed places stay in the result, in both modes.
func parallelFailFast(c *client) {
	first, second, third := c.branches()
	t := c.ends(c.start(parallelNode("", "fail_fast", "", first, second, third), obj{}), "failed")
	c.shared(t, fmt.Sprintf(`{"agg":["from %s",null,null]}`, first))
	t = c.ends(c.start(parallelNode("concurrent", "fail_fast", toNext, first, second, third), obj{}), "completed")
	require.NotContains(c, t["shared_json"], "_rt")
}

func foreachNode(more string) string {
	return `{"start":"f","nodes":{"f":{"kind":"foreach","exec_type":"local_func","func":"mul","params":{"mul":2},
		"prep":{"input_key":"$params.list"},"post":{"output_key":"out","action_static":"done"}` + more + `}}}`
}

func foreachOrder(c *client) {
	task := c.start(foreachNode(""), obj{"list": []int{1, 2, 3}})
	c.shared(c.ends(task, "completed"), `{"out":[2,4,6]}`)
	rows := c.runs(task)
	require.Len(c, rows, 4)
	require.Equal(c, []any{"0", "1", "2", ""}, values(rows, "branch_id"))
	require.Equal(c, []any{"item_complete", "item_complete", "item_complete", ""}, values(rows, "sub_status"))
	require.Equal(c, []any{"1", "2", "3"}, values(rows[:3], "exec_input_json"))
	require.Equal(c, []any{`{"branch":0}`, `{"branch":1}`, `{"branch":2}`}, values(rows[:3], "prep_json"))
	task = c.start(foreachNode(`,"parallel_mode":"concurrent","max_parallel":2`), obj{"list": []int{1, 2, 3}})
	c.shared(c.ends(task, "completed"), `{"out":[2,4,6]}`)
}

func foreachEmpty(c *client) {
	for _, params := range []obj{{"list": []int{}}, {"list": "text"}, {}} {
		task := c.start(foreachNode(""), params)
		t := c.ends(task, "completed")
		c.shared(t, `{}`)
		require.Equal(c, "done", t["last_action"])
		rows := c.runs(task)
		require.Equal(c, []any{"[]"}, values(rows, "exec_output_json"))
	}
}

func subflow(c *client) {
	task := c.start(`{"start":"s","nodes":{"s":{"kind":"subflow","post":{"output_key":"sub"},"params":{"x":1},"subflow":{
		"start":"a","nodes":{
			"a":{"exec_type":"local_func","func":"mul","params":{"mul":5},"prep":{"input_key":"$params.x"},"post":{"output_key":"m"}},
			"b":{"exec_type":"local_func","func":"log_result","prep":{"input_map":{"m":"m","outer":"outer"}},"post":{"output_key":"n"}}},
		"edges":[{"from":"a","action":"default","to":"b"}]}}}}`, obj{"x": 3, "mul": 100})
	c.shared(c.ends(task, "completed"), `{"sub":{"m":15,"n":{"m":15,"outer":null}}}`)
	rows := c.runs(task)
	require.Len(c, rows, 2)
	require.Equal(c, []any{"s", "s"}, values(rows, "node_key"))
	require.Equal(c, []any{"a", "b"}, values(rows, "branch_id"))
	require.Equal(c, []any{"sub_node_complete", "sub_node_complete"}, values(rows, "sub_status"))
	require.JSONEq(c, `{"input_key":"$params.x","sub":"a"}`, rows[0]["prep_json"].(string))
}

// TestNestedProgress checks where a task is shown below its own graph.
func TestNestedProgress(t *testing.T) { aloneAndTogether(t, nestedProgress) }

func nestedProgress(t *testing.T, c *client) {
	queue := unique("svc")
	task := c.start(fmt.Sprintf(`{"start":"s","nodes":{"s":{"kind":"subflow","subflow":{"start":"a","nodes":{
		"a":{"exec_type":"local_func","func":"log_result","prep":{"input_key":"$params.v"},"post":{"output_key":"first"}},
		"b":{"exec_type":"queue","service":%q}},"edges":[{"from":"a","action":"default","to":"b"}]}}}}`, queue), obj{"v": 7})
	waiting := c.untilStatus(task, "waiting_queue")
	c.shared(waiting, `{"_rt":{"sf:s":{"curr":"b","shared":{"first":7},"last":""}}}`)
	q := c.claim(queue)
	require.Equal(t, "s", q["node_key"])
	c.post("/queue/complete", obj{"queue_id": q["id"], "result": 1})
	c.shared(c.ends(task, "completed"), `{}`)
}

// TestProgressOfUnits checks the progress of a parallel and a foreach while pollers work.
func TestProgressOfUnits(t *testing.T) { aloneAndTogether(t, progressOfUnits) }

func progressOfUnits(_ *testing.T, c *client) {
	queue := unique("svc")
	task := c.start(fmt.Sprintf(
		`{"start":"p","nodes":{"p":{"kind":"parallel","parallel_mode":"concurrent","failure_strategy":"continue","max_parallel":3,
		"parallel_execs":[{"service":"fine","exec_type":"local_func","func":"log_result"},{"service":"bad","exec_type":"local_func","func":"upper"},
		{"service":%q,"exec_type":"queue"}],"prep":{"input_key":"$params.v"},"post":{"output_key":"out"}}}}`, queue), obj{"v": 7})
	waiting := c.untilStatus(task, "waiting_queue")
	c.shared(waiting, `{"_rt":{"pl:p":{"done":{"fine":7},"errs":{"bad":"failed"},"max":3,"mode":"concurrent","strategy":"continue"}}}`)
	c.post("/queue/complete", obj{"queue_id": c.claim(queue)["id"], "result": 1})
	c.shared(c.ends(task, "completed"), `{"out":[7,null,1]}`)

	task = c.start(fmt.Sprintf(
		`{"start":"f","nodes":{"f":{"kind":"foreach","exec_type":"queue","service":%q,"prep":{"input_key":"$params.list"},
		"post":{"output_key":"out"}}}}`, queue), obj{"list": []int{1, 2}})
	c.post("/queue/complete", obj{"queue_id": c.claim(queue)["id"], "result": 10})
	q := c.claim(queue)
	c.shared(c.read(task), `{"_rt":{"fe:f":{"done":{"0":10},"errs":{},"idx":1,"max":0,"mode":"sequential","strategy":""}}}`)
	c.post("/queue/complete", obj{"queue_id": q["id"], "result": 20})
	c.shared(c.ends(task, "completed"), `{"out":[10,20]}`)
}
