package flowtest

import (
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Object is a part of a random definition.
type Object map[string]any

// RandomDefinition draws a flow with all kinds of nodes and only valid fields. A flow with a loop
// is ended by a limit of steps.
func RandomDefinition(d Dice) string {
	flow := randomGraph(d, 0)
	if Chance(d, 60) {
		flow = RandomDag(d, 0)
	} else {
		flow["on_error"] = OneOf(d, "on_error", "follow", "follow", "follow", "follow", "follow", "fail", "")
		flow["profile"] = OneOf(d, "profile", "troupe", "troupe", "pocketflow")
	}
	randomFinally(d, flow)
	if Chance(d, 10) {
		flow["timeout_ms"] = 2_000
	}
	randomKeys(d, flow)
	b, err := json.Marshal(flow)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func randomGraph(d Dice, depth int) Object {
	keys := []string{"a", "b", "c/d#1", "e%", "f"}[:Between(d, "nodes", 1, 5-depth)]
	nodes := Object{}
	var edges []Object
	for _, from := range keys {
		nodes[from] = randomNode(d, depth)
		for _, action := range []string{"default", "go", "error", "approved", "rejected"} {
			if Chance(d, 35) {
				edges = append(edges, Object{"from": from, "action": action, "to": OneOf(d, "to", slices.Concat(keys, []string{""})...)})
			}
		}
	}
	randomUndo(d, nodes, keys)
	return Object{"start": keys[0], "nodes": nodes, "edges": edges}
}

func randomNode(d Dice, depth int) Object {
	kinds := []flow.Kind{flow.KindExecutor, flow.KindExecutor, flow.KindChoice, flow.KindParallel,
		flow.KindForeach, flow.KindTimer, flow.KindWaitEvent, flow.KindApproval, flow.KindSubflow,
		flow.KindSubflow}
	kind := OneOf(d, "kind", kinds...)
	if kind == flow.KindSubflow && depth == 2 {
		kind = flow.KindExecutor
	}
	n := Object{"kind": kind, "post": randomPost(d, kind)}
	if kind != flow.KindSubflow {
		n["prep"] = randomPrep(d)
	}
	if depth == 0 && Chance(d, 10) {
		n["on_error"] = OneOf(d, "on_error", "fail", "follow")
	}
	switch kind {
	case flow.KindExecutor:
		if Chance(d, 33) {
			n["retry"] = Object{"max_attempts": 3, "delay": OneOf(d, "delay", "0s", "100ms")}
		}
		randomExec(d, n)
		randomProgram(d, n)
	case flow.KindParallel:
		randomParallel(d, n)
	case flow.KindForeach:
		n["prep"] = Object{"input_key": OneOf(d, "list", "$params.list", "$params.list", "out", "$params.val")}
		n["foreach_execs"] = []Object{{"index": 1, "exec_type": "local_func", "func": "f", "params": Object{"mul": 9}}}
		randomWindow(d, n)
		randomExec(d, n)
	case flow.KindSubflow:
		if Chance(d, 30) {
			n["flow"], n["prep"] = RandomDag(d, depth+1), randomPrep(d)
		} else {
			n["subflow"] = randomGraph(d, depth+1)
		}
		switch OneOf(d, "strategy", "", "continue", "retry", "of retry") {
		case "continue":
			n["failure_strategy"] = "continue"
		case "retry":
			n["failure_strategy"] = "retry"
			n["retry"] = Object{"max_attempts": Between(d, "tries", 1, 3), "delay": OneOf(d, "delay", "0s", "100ms")}
		case "of retry":
			n["retry"] = randomRetry(d)
		}
		n["timeout_ms"] = OneOf(d, "timeout", 0, 0, 700)
	default:
		randomWait(d, kind, n)
	}
	return n
}

func randomExec(d Dice, n Object) {
	n["service"] = OneOf(d, "service", "mul", "boom", "odd", "third", "route", "params", "echo")
	n["exec_type"] = OneOf(d, "exec", "", "queue", "queue")
	n["timeout_ms"] = OneOf(d, "timeout", 0, 0, 500)
	if n["kind"] == flow.KindForeach {
		randomKeys(d, n, "$item", "$item.x")
	} else {
		randomKeys(d, n, "$input")
	}
}

func randomWindow(d Dice, n Object) {
	if Chance(d, 66) {
		n["parallel_mode"], n["max_parallel"] = "concurrent", Between(d, "max_parallel", 0, 3)
	}
	if Chance(d, 25) {
		n["retry"] = randomRetry(d)
	}
	n["failure_strategy"] = OneOf(d, "strategy", "", "continue", "fail_fast")
}

func randomParallel(d Dice, n Object) {
	randomWindow(d, n)
	randomExec(d, n)
	delete(n, "service")
	switch Between(d, "branches", 0, 3) {
	case 0:
		n["parallel_services"] = []string{"mul", "odd", "odd", "echo"}
	case 1:
		n["parallel_execs"] = []Object{{"service": "mul", "params": Object{"mul": 3}},
			{"service": "boom", "exec_type": "queue"}, {"service": "third"}}
	case 2:
		n["params"] = Object{"services": []any{"echo", "third", "params"}}
	case 3:
		n["params"] = Object{"services": OneOf(d, "services", "$params.list", "$shared.out")}
	}
}

func randomWait(d Dice, kind flow.Kind, n Object) {
	params := Object{}
	switch kind {
	case flow.KindTimer:
		params["delay_ms"] = OneOf[any](d, "delay", 0, 200, "$params.val", "$params.text")
	case flow.KindWaitEvent:
		params["signal_key"] = OneOf(d, "signal", "$shared.flag", "flag", "$params.text", "$shared.flag.x")
		n["failure_strategy"] = OneOf(d, "strategy", "", "continue", "retry")
		if n["failure_strategy"] != "retry" {
			params["timeout_ms"] = OneOf(d, "timeout", 0, 300)
		}
	case flow.KindApproval:
		params["approval_key"] = OneOf(d, "approval", "$shared.flag", "verdict", "$params.val")
		n["timeout_ms"] = OneOf(d, "timeout", 0, 400)
	case flow.KindChoice:
		n["default_action"] = OneOf(d, "default", "", "go")
		n["choice_cases"] = []Object{{"action": "approved",
			"expr": Object{"gt": []any{"$params.val", 2}}},
			{"action": "go", "expr": OneOf[any](d, "expr", Object{"exists": "$shared.out"},
				"has(shared.out) && shared.out != null", "params.val + params.nope > 1",
				"size(input) > 2", "params.list.exists(x, x == 3)")}}
	}
	n["params"] = params
}

func randomPrep(d Dice) Object {
	switch Between(d, "prep", 0, 3) {
	case 0:
		return Object{"input_key": OneOf(d, "input", "$params.val", "$params.list[1]", "out", "$shared.flag", "$params.", "$shared.")}
	case 1:
		return Object{"input_map": Object{"x": "$params.text", "y": "lit", "z": OneOf(d, "nested", "$shared.out.x", "$shared.out")}}
	}
	return Object{}
}

func randomPost(d Dice, kind flow.Kind) Object {
	p := Object{"output_key": OneOf(d, "output", "", "out", "flag"), "action_static": OneOf(d, "static", "", "", "go")}
	if kind != flow.KindParallel && kind != flow.KindForeach && kind != flow.KindTimer {
		p["action_key"] = OneOf(d, "action_key", "", "action", "signal", "approval")
	}
	if kind == flow.KindExecutor && Chance(d, 20) {
		p["output_map"] = Object{"out": "x", "verdict": "action"}
	}
	return p
}
