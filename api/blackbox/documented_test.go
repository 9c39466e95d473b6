package blackbox

import (
	"github.com/stretchr/testify/require"
)

// documented holds flows in the style of the dialect's own examples, with the documented results.
var documented = []struct {
	name, flow     string
	params         obj
	signals        obj
	status, shared string
}{
	{"01 two executors", `{start: a, nodes: {
		a: {kind: executor, service: transform, params: {mul: 2}, prep: {input_key: $params.val}, post: {output_key: result}},
		b: {kind: executor, service: transform, params: {mul: 1.5}, prep: {input_key: $shared.result}, post: {output_key: final}}},
		edges: [{from: a, action: default, to: b}]}`,
		obj{"val": 2}, nil, "completed", `{"result":4,"final":6}`},
	{"02 choice", `{start: c, nodes: {
		c: {kind: choice, choice_cases: [{action: goB, expr: {eq: [$params.path, B]}}, {action: goC, expr: {eq: [$params.path, C]}}]},
		b: {service: transform, params: {mul: 10}, prep: {input_key: $params.val}, post: {output_key: result_b}},
		c2: {service: transform, params: {mul: 20}, prep: {input_key: $params.val}, post: {output_key: result_c}}},
		edges: [{from: c, action: goB, to: b}, {from: c, action: goC, to: c2}]}`,
		obj{"path": "C", "val": 2}, nil, "completed", `{"result_c":40}`},
	{"03 parallel in turn, one service twice", twice(""), obj{"val": 2}, nil, "completed", `{"agg":[6,6],"total":12}`},
	{"04 parallel at once, one service twice", twice("concurrent"), obj{"val": 2}, nil, "completed", `{"agg":[6,6],"total":12}`},
	{"06 foreach at once", `{start: f, nodes: {
		f: {kind: foreach, service: transform, params: {mul: 2}, parallel_mode: concurrent, max_parallel: 2, failure_strategy: fail_fast,
			prep: {input_key: $params.list}, post: {output_key: mapped}},
		s: {service: sum, prep: {input_key: $shared.mapped}, post: {output_key: total}}},
		edges: [{from: f, action: default, to: s}]}`,
		obj{"list": []int{1, 2, 3}}, nil, "completed", `{"mapped":[2,4,6],"total":12}`},
	{"07 timer and event", timerAndEvent, obj{"val": 2}, obj{"flag": true}, "completed", `{"flag":true,"result":2}`},
	{"07 timer, and nobody signals", timerAndEvent, obj{"val": 2}, nil, "completed", `{"result":2}`},
	{"08 approved by a param", approvedByParam, obj{"val": 2, "approval": "approved"}, nil, "completed", `{"approved_result":200}`},
	{"08 rejected by a param", approvedByParam, obj{"val": 2, "approval": "rejected"}, nil, "completed", `{"rejected_result":0}`},
	{"09 subflow without its param", subflowAndEnd, obj{}, nil, "failed", `{"sub_out":{}}`},
	{"09 subflow", subflowAndEnd, obj{"x": 2}, nil, "completed", `{"sub_out":{"m":10},"final":1000}`},
	{"12 script", `{start: s, nodes: {s: {exec_type: local_script, params: {n: 1},
		script: {cmd: bash, args: [], language: bash, code: "echo '{\"v\": 42}'", timeout_ms: 5000, stdin_mode: json, output_mode: json},
		post: {output_key: out, action_key: v}}}}`,
		obj{}, nil, "completed", `{"out":{"v":42}}`},
	{"13 parallel, three ways to travel", `{start: p, nodes: {p: {kind: parallel, parallel_mode: concurrent, prep: {input_key: $params.val},
		parallel_execs: [{service: transform, exec_type: http, params: {mul: 2}, prep: {input_key: ignored}, post: {output_key: ignored}},
			{service: local, exec_type: local_func, func: mul, params: {mul: 5}}], post: {output_key: agg}}}}`,
		obj{"val": 2}, nil, "completed", `{"agg":[4,10]}`},
	{"14 foreach without items", foreachOverrides, obj{"val": 2}, nil, "completed", `{}`},
	{"15 subflow overrides",
		`{start: s, nodes: {s: {kind: subflow, post: {output_key: sub_out}, subflow_execs: [{node: a, exec_type: local_func, func: mul, params: {mul: 7}}],
		subflow: {start: a, nodes: {a: {kind: executor, service: transform, params: {mul: 3}, prep: {input_key: $params.val}, post: {output_key: m}}}, edges: []}}}, edges: []}`,
		obj{"val": 2}, nil, "completed", `{"sub_out":{"m":14}}`},
	{"16 queue", `{start: q, nodes: {
		q: {exec_type: queue, service: async-transform, prep: {input_map: {text: async-processing, title: Default Title}}, post: {output_key: result}},
		l: {exec_type: local_func, func: log_result, prep: {input_key: $shared.result}, post: {output_key: local_out}}},
		edges: [{from: q, action: default, to: l}]}`,
		obj{}, nil, "completed", `{"result":"[Default Title] ASYNC-PROCESSING","local_out":"[Default Title] ASYNC-PROCESSING"}`},
	{"17 function and queue", functionAndQueue, obj{"text": "hi"}, nil, "completed",
		`{"parallel_results":["HI","ASYNC-PROCESSING (ASYNC PROCESSED)"]}`},
	{"17 function without input, and queue", functionAndQueue, obj{}, nil, "completed",
		`{"parallel_results":[null,"ASYNC-PROCESSING (ASYNC PROCESSED)"]}`},
}

func twice(mode string) string {
	return `{start: p, nodes: {
		p: {kind: parallel, parallel_mode: "` + mode + `", parallel_services: [transform, transform], params: {mul: 3}, prep: {input_key: $params.val}, post: {output_key: agg}},
		s: {service: sum, prep: {input_key: $shared.agg}, post: {output_key: total}}},
		edges: [{from: p, action: default, to: s}]}`
}

const (
	timerAndEvent = `{start: t, nodes: {
		t: {kind: timer, params: {delay_ms: 200}},
		w: {kind: wait_event, params: {signal_key: $shared.flag, timeout_ms: 500}, post: {action_static: go}},
		r: {service: transform, prep: {input_key: $params.val}, post: {output_key: result}}},
		edges: [{from: t, action: default, to: w}, {from: w, action: go, to: r}]}`
	approvedByParam = `{start: a, nodes: {
		a: {kind: approval, params: {approval_key: $params.approval}, post: {action_key: approval}},
		y: {service: transform, params: {mul: 100}, prep: {input_key: $params.val}, post: {output_key: approved_result}},
		n: {service: transform, params: {mul: 0}, prep: {input_key: $params.val}, post: {output_key: rejected_result}}},
		edges: [{from: a, action: approved, to: y}, {from: a, action: rejected, to: n}]}`
	subflowAndEnd = `{start: s, nodes: {
		s: {kind: subflow, post: {output_key: sub_out}, subflow: {start: a,
			nodes: {a: {kind: executor, service: transform, params: {mul: 5}, prep: {input_key: $params.x}, post: {output_key: m}}}, edges: []}},
		end: {service: transform, params: {mul: 100}, prep: {input_key: $shared.sub_out.m}, post: {output_key: final}}},
		edges: [{from: s, action: default, to: end}]}`
	foreachOverrides = `{start: f, nodes: {f: {kind: foreach, exec_type: local_func, func: mul, params: {mul: 2}, prep: {input_key: $shared.arr},
		foreach_execs: [{index: 1, params: {mul: 4}}, {index: 2, exec_type: http, service: ignored, params: {mul: 5}}], service: transform, post: {output_key: mapped}}}, edges: []}`
	functionAndQueue = `{start: p, nodes: {
		p: {kind: parallel, parallel_mode: concurrent, post: {output_key: parallel_results, action_static: end}, parallel_execs: [
			{service: sync_branch, exec_type: local_func, func: upper},
			{service: async-transform, exec_type: queue, params: {text: async-processing}}]},
		end: {exec_type: local_func, func: log_result}},
		edges: [{from: p, action: end, to: end}]}`
)

func documentedFlows(c *client) {
	c.push(demoServices)
	c.pull("async-transform")
	tasks := make([]string, len(documented))
	for i, d := range documented {
		id := c.post("/flows", obj{"Name": d.name})["id"].(string)
		c.post("/flows/version", obj{"FlowID": id, "Version": 1, "DefinitionYAML": d.flow, "Status": "published"})
		tasks[i] = c.task(id, d.params)
	}
	for i, d := range documented {
		for key, v := range d.signals {
			c.signal(tasks[i], key, v)
		}
	}
	for i, d := range documented {
		t := c.ends(tasks[i], d.status)
		require.JSONEq(c, d.shared, t["shared_json"].(string), d.name)
	}
	failed := c.runs(tasks[9])
	require.Equal(c, []any{"bad input", "bad input"}, values(failed, "error_text"))
	require.Equal(c, []any{"s", "end"}, values(failed, "node_key"))
	rows := c.runs(tasks[len(tasks)-1])
	require.JSONEq(c, `{"sync_branch":"failed"}`, rows[2]["error_text"].(string))
}
