package flow

import "slices"

// randomDag draws a flow of dag mode. Whoever waits for whom is drawn along an order that is not that
// of the definition.
func randomDag(d dice, depth int) object {
	keys := []string{"a", "b", "c", "e", "g"}[:between(d, "nodes", 1, 5-depth)]
	if chance(d, 30) {
		slices.Reverse(keys)
	}
	nodes := object{}
	for i, key := range keys {
		nodes[key] = randomDagNode(d, keys[:i], depth)
	}
	if chance(d, 15) {
		nodes["last"] = randomOutput(d)
	}
	randomUndo(d, nodes, keys)
	flow := object{"mode": "dag", "nodes": nodes, "on_error": oneOf(d, "on_error", "", "continue", "fail_fast"),
		"input_shape": oneOf(d, "shape", "", "", "deps", "merged"), "profile": oneOf(d, "profile", "", "", "ork", "pgflow")}
	if chance(d, 20) {
		flow["defaults"] = object{"retry": randomRetry(d), "skip_mode": oneOf(d, "skip_mode", "", "optional", "fail")}
	}
	return flow
}

// randomUndo gives some nodes of a scope of either mode a node that undoes them.
func randomUndo(d dice, nodes object, keys []string) {
	if !chance(d, 30) {
		return
	}
	nodes["undo"] = randomClosing(d)
	for i, key := range keys {
		if i == 0 || chance(d, 50) {
			nodes[key].(object)["compensate"] = "undo"
		}
	}
}

// randomFinally may give a whole flow a node that runs at its end.
func randomFinally(d dice, flow object) {
	if chance(d, 25) {
		flow["nodes"].(object)["finally"] = randomClosing(d)
		flow["finally"] = "finally"
	}
}

// randomClosing is a node that runs when the task is over.
func randomClosing(d dice) object {
	n := object{"service": oneOf(d, "service", "echo", "boom", "third"), "exec_type": oneOf(d, "exec", "", "queue"), "retry": randomRetry(d)}
	switch between(d, "closing", 0, 7) {
	case 0:
		return object{"kind": "timer", "params": object{"delay_ms": 300}}
	case 1:
		return object{"kind": "wait_event", "params": object{"signal_key": "$shared.flag", "timeout_ms": 400}}
	case 2:
		return object{"kind": "foreach", "service": "odd", "prep": object{"input_key": "$params.list"}, "parallel_mode": "concurrent"}
	case 3:
		return object{"kind": "subflow", "subflow": object{"start": "x", "nodes": object{"x": n}}}
	}
	return n
}

func randomRetry(d dice) object {
	return object{"max_attempts": between(d, "tries", 1, 3), "delay": oneOf(d, "delay", "0s", "50ms", "200ms"), "jitter": oneOf(d, "jitter", 0, 0.5),
		"backoff": oneOf(d, "backoff", "", "fixed", "exponential"), "max_delay": oneOf(d, "max_delay", "0s", "300ms")}
}

func randomDagNode(d dice, before []string, depth int) object {
	n := object{"run_on": oneOf(d, "run_on", "", "", "", "always")}
	var deps []string
	for _, key := range before {
		if chance(d, 45) {
			deps = append(deps, key)
		}
	}
	if len(deps) > 0 {
		n["depends_on"] = deps
	}
	if when := randomWhen(d, deps); len(when) > 0 && chance(d, 40) {
		n["when"] = when
	}
	n["skip_mode"] = oneOf(d, "skip_mode", "", "", "propagate", "optional", "fail")
	n["on_exhausted"] = oneOf(d, "exhausted", "", "", "skip", "skip-cascade")
	if chance(d, 30) {
		n["retry"] = randomRetry(d)
	}
	if chance(d, 10) {
		n["params"] = object{"mul": 7}
	}
	randomDagKind(d, n, deps, depth)
	return n
}

func randomDagKind(d dice, n object, deps []string, depth int) {
	switch kind := oneOf(d, "kind", "", "", "", "", "fanout", "fanout", "map", "branch", "branch", "timer", "wait_event", "approval"); {
	case kind == "branch" && depth < 2:
		n["kind"] = kind
		randomBranch(d, n, deps, depth)
	case kind == "timer", kind == "wait_event", kind == "approval":
		n["kind"] = kind
		randomWait(d, Kind(kind), n)
		delete(n, "failure_strategy")
	case kind == "fanout":
		n["kind"] = kind
		n["each"] = randomEach(d, deps)
		randomDagExec(d, n)
		randomInput(d, n, deps)
	case kind == "map" && len(deps) < 2:
		n["kind"] = kind
		n["each"] = object{"concurrency": between(d, "concurrency", 0, 2), "on_error": oneOf(d, "each", "", "fail_fast", "collect", "continue")}
		randomDagExec(d, n)
	default:
		randomDagExec(d, n)
		randomInput(d, n, deps)
	}
}

func randomDagExec(d dice, n object) {
	if chance(d, 15) {
		n["route"] = "direct"
	} else {
		n["service"] = oneOf(d, "service", "mul", "boom", "odd", "third", "params", "echo", "list", "yes")
		n["route"] = oneOf(d, "route", "", "push", "queue", "queue")
	}
	n["timeout"] = oneOf(d, "timeout", "0s", "0s", "500ms")
	n["start_delay"] = oneOf(d, "start_delay", "0s", "0s", "0s", "150ms")
	if n["route"] == "queue" {
		n["start_timeout"] = oneOf(d, "start_timeout", "0s", "0s", "300ms")
		n["heartbeat_timeout"] = oneOf(d, "heartbeat", "0s", "0s", "250ms")
	}
}

func randomInput(d dice, n object, deps []string) {
	switch between(d, "input", 0, 7) {
	case 0:
		n["input_shape"] = "deps"
	case 1:
		n["input_shape"], n["input"] = "merged", object{"val": 1, "extra": []int{1}}
	case 2, 3:
		n["inputs"] = object{"x": object{"const": 1}, "y": object{"ref": randomRef(d, deps)}, "z": object{"ref": randomRef(d, deps)}}
	case 4:
		n["prep"] = object{"input_key": randomRef(d, deps)}
	case 5:
		n["prep"] = object{"input_map": object{"x": randomRef(d, deps), "y": "text"}}
	case 6:
		n["prep"] = object{"expr": randomCEL(d, deps)}
	}
}

// randomRef is a reference; some of what they name is never there.
func randomRef(d dice, deps []string) string {
	if len(deps) > 0 && chance(d, 60) {
		return oneOf(d, "dep", deps...) + oneOf(d, "path", ".x", ".run.list", ".extra")
	}
	return oneOf(d, "ref", "$run.val", "$run.list", "$run.list[3].x", "$shared.flag", "$params.text", "$run.none")
}

func randomList(d dice, deps []string) string {
	if len(deps) > 0 && chance(d, 60) {
		return "$deps." + oneOf(d, "dep", deps...)
	}
	return oneOf(d, "list", "$run.list", "$run.list", "$run.list", "$shared.flag", "$run.none")
}

func randomEach(d dice, deps []string) object {
	each := object{"concurrency": between(d, "concurrency", 0, 2), "on_error": oneOf(d, "each", "", "fail_fast", "collect", "continue")}
	switch between(d, "items", 0, 5) {
	case 0, 1:
		each["items"] = object{"service": oneOf(d, "rows", "list", "list", "list", "boom", "echo")}
	case 2, 3:
		each["items"] = randomList(d, deps)
	case 4:
		each["items"], each["count"] = randomList(d, deps), 2
	default:
		each["count"] = oneOf[any](d, "count", 3, "$run.val", "$run.val", "$run.none")
	}
	return each
}

func randomWhen(d dice, deps []string) object {
	when := object{}
	pattern := func() object {
		if len(deps) > 0 && chance(d, 50) {
			return object{oneOf(d, "dep", deps...): object{}}
		}
		return oneOf(d, "pattern", object{"run": object{"val": 3}}, object{"run": object{"val": 4}}, object{"val": 3}, object{})
	}
	if chance(d, 40) {
		when["if"] = pattern()
	}
	if chance(d, 25) {
		when["if_not"] = pattern()
	}
	if chance(d, 40) {
		when["cond"] = object{"service": oneOf(d, "cond", "yes", "no", "no", "echo", "boom"), "exec_type": oneOf(d, "exec", "", "queue")}
	}
	if chance(d, 25) {
		when["expr"] = oneOf(d, "expr", "has(run.val)", "run.val > 2", "!has(shared.flag)", "has(shared.flag) ? bool(shared.flag) : size(deps) < 2", "input == null || true")
	}
	return when
}

// randomCEL gives any value, or fails.
func randomCEL(d dice, deps []string) string {
	of := "run.val"
	if len(deps) > 0 {
		of = "deps." + oneOf(d, "dep", deps...)
	}
	return oneOf(d, "value", "run", of, `{"a": `+of+`, "b": [run.list, 1]}`, "run.list.map(x, x)", of+" + 1", "shared", `has(shared.flag) ? [1, 2] : [dyn("a")]`)
}

// randomBranch is a flow of either mode inside a node, inline or embedded.
func randomBranch(d dice, n object, deps []string, depth int) {
	inner := randomDag(d, depth+1)
	delete(inner, "profile")
	if chance(d, 30) {
		inner = randomGraph(d, depth+1)
		inner["result"] = oneOf(d, "result", "", "out")
		n["timeout_ms"] = oneOf(d, "timeout", 0, 0, 700)
	}
	n["flow"] = inner
	switch between(d, "prep", 0, 4) {
	case 0:
		n["prep"] = object{"service": oneOf(d, "service", "echo", "params", "list", "boom")}
	case 1:
		n["prep"] = object{"input_key": randomRef(d, deps)}
	case 3:
		n["prep"] = object{"expr": randomCEL(d, deps)}
	case 2:
		n["prep"] = object{"input_map": object{"val": "$run.val", "list": randomRef(d, deps)}}
		if chance(d, 50) {
			inner["embedded"] = "another"
		}
	}
}

func randomOutput(d dice) object {
	n := object{"kind": "output"}
	if chance(d, 50) {
		n["service"], n["retry"] = oneOf(d, "service", "echo", "third", "boom"), randomRetry(d)
	}
	return n
}
