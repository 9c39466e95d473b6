package flowtest

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// RandomDag draws a flow in dag mode. The order of dependencies differs from the order of the
// definition.
func RandomDag(d Dice, depth int) Object {
	keys := []string{"a", "b", "c", "e", "g"}[:Between(d, "nodes", 1, 5-depth)]
	if Chance(d, 30) {
		slices.Reverse(keys)
	}
	nodes := Object{}
	for i, key := range keys {
		nodes[key] = randomDagNode(d, keys[:i], depth)
	}
	if Chance(d, 15) {
		nodes["last"] = randomOutput(d)
	}
	randomUndo(d, nodes, keys)
	flow := Object{"mode": "dag", "nodes": nodes, "on_error": OneOf(d, "on_error", "", "continue", "fail_fast"),
		"input_shape": OneOf(d, "shape", "", "", "deps", "merged"), "profile": OneOf(d, "profile", "", "", "ork", "pgflow")}
	if Chance(d, 20) {
		flow["defaults"] = Object{"retry": randomRetry(d), "skip_mode": OneOf(d, "skip_mode", "", "optional", "fail")}
	}
	return flow
}

// randomUndo adds compensations to some nodes of a scope in either mode.
func randomUndo(d Dice, nodes Object, keys []string) {
	if !Chance(d, 30) {
		return
	}
	nodes["undo"] = randomClosing(d)
	for i, key := range keys {
		if i == 0 || Chance(d, 50) {
			nodes[key].(Object)["compensate"] = "undo"
		}
	}
}

// randomFinally may add a finally node to a whole flow.
func randomFinally(d Dice, flow Object) {
	if Chance(d, 25) {
		flow["nodes"].(Object)["finally"] = randomClosing(d)
		flow["finally"] = "finally"
	}
}

// randomClosing draws a node that runs when the task is over.
func randomClosing(d Dice) Object {
	n := Object{"service": OneOf(d, "service", "echo", "boom", "third"),
		"exec_type": OneOf(d, "exec", "", "queue"), "retry": randomRetry(d)}
	switch Between(d, "closing", 0, 7) {
	case 0:
		return Object{"kind": "timer", "params": Object{"delay_ms": 300}}
	case 1:
		return Object{"kind": "wait_event", "params": Object{"signal_key": "$shared.flag", "timeout_ms": 400}}
	case 2:
		return Object{"kind": "foreach", "service": "odd", "prep": Object{"input_key": "$params.list"}, "parallel_mode": "concurrent"}
	case 3:
		return Object{"kind": "subflow", "subflow": Object{"start": "x", "nodes": Object{"x": n}}}
	}
	return n
}

func randomRetry(d Dice) Object {
	return Object{"max_attempts": Between(d, "tries", 1, 3), "delay": OneOf(d, "delay", "0s",
		"50ms", "200ms"), "jitter": OneOf(d, "jitter", 0, 0.5),
		"backoff": OneOf(d, "backoff", "", "fixed", "exponential"), "max_delay": OneOf(d, "max_delay", "0s", "300ms")}
}

func randomDagNode(d Dice, before []string, depth int) Object {
	n := Object{"run_on": OneOf(d, "run_on", "", "", "", "always")}
	var deps []string
	for _, key := range before {
		if Chance(d, 45) {
			deps = append(deps, key)
		}
	}
	if len(deps) > 0 {
		n["depends_on"] = deps
	}
	if when := randomWhen(d, deps); len(when) > 0 && Chance(d, 40) {
		n["when"] = when
	}
	if n["when"] != nil {
		n["skip_mode"] = OneOf(d, "skip_mode", "", "", "propagate", "optional", "fail")
	}
	randomDagKind(d, n, deps, depth)
	randomFailures(d, n)
	return n
}

// randomFailures may add failure handling and retries to a node of a dag, where that is allowed.
func randomFailures(d Dice, n Object) {
	when, _ := n["when"].(Object)
	prep, _ := n["prep"].(Object)
	asked := when["cond"] != nil
	fails, repeats := true, n["route"] != "direct"
	switch n["kind"] {
	case "branch":
		graph := n["flow"].(Object)["mode"] == nil
		fails, repeats = graph, graph || asked || prep["service"] != nil
	case "timer":
		fails, repeats = false, asked
	case "wait_event", "approval":
		repeats = asked
	}
	if fails {
		n["on_exhausted"] = OneOf(d, "exhausted", "", "", "skip", "skip-cascade")
	}
	if repeats && Chance(d, 30) {
		n["retry"] = randomRetry(d)
	}
}

func randomDagKind(d Dice, n Object, deps []string, depth int) {
	switch kind := OneOf(d, "kind", "", "", "", "", "fanout", "fanout", "map", "branch", "branch", "timer", "wait_event", "approval"); {
	case kind == "branch" && depth < 2:
		n["kind"] = kind
		randomBranch(d, n, deps, depth)
	case kind == "timer", kind == "wait_event", kind == "approval":
		n["kind"] = kind
		randomWait(d, flow.Kind(kind), n)
		delete(n, "failure_strategy")
	case kind == "fanout":
		each := randomEach(d, deps)
		n["kind"], n["each"] = kind, each
		randomDagExec(d, n)
		randomInput(d, n, deps, each["items"] != nil)
	case kind == "map" && len(deps) < 2:
		n["kind"] = kind
		n["each"] = Object{"concurrency": Between(d, "concurrency", 0, 2),
			"on_error": OneOf(d, "each", "", "fail_fast", "collect", "continue")}
		randomDagExec(d, n)
	default:
		randomDagExec(d, n)
		randomInput(d, n, deps, false)
	}
}

func randomDagExec(d Dice, n Object) {
	if Chance(d, 15) {
		n["route"] = "direct"
	} else {
		n["service"] = OneOf(d, "service", "mul", "boom", "odd", "third", "params", "echo", "list", "yes")
		n["route"] = OneOf(d, "route", "", "push", "queue", "queue")
		if n["kind"] == "fanout" || n["kind"] == "map" {
			randomKeys(d, n, "$item", "$run.val")
		} else {
			randomKeys(d, n, "$input", "$run.val")
		}
	}
	if Chance(d, 10) {
		n["params"] = Object{"mul": 7}
	}
	n["timeout"] = OneOf(d, "timeout", "0s", "0s", "500ms")
	n["start_delay"] = OneOf(d, "start_delay", "0s", "0s", "0s", "150ms")
	if n["route"] == "queue" {
		n["start_timeout"] = OneOf(d, "start_timeout", "0s", "0s", "300ms")
		n["heartbeat_timeout"] = OneOf(d, "heartbeat", "0s", "0s", "250ms")
	}
	if n["route"] == "direct" {
		return
	}
	if n["kind"] == nil {
		randomProgram(d, n)
	} else {
		randomProgram(d, n, "${item}", "${item.x}")
	}
}

// randomInput may add an input mapping to a node, but not to one whose units get items.
func randomInput(d Dice, n Object, deps []string, items bool) {
	last := 7
	if items {
		last = 1
	}
	switch Between(d, "input", 0, last) {
	case 0:
		n["input_shape"] = "deps"
	case 1:
		n["input_shape"], n["input"] = "merged", Object{"val": 1, "extra": []int{1}}
	case 2, 3:
		n["inputs"] = Object{"x": Object{"const": 1}, "y": Object{"ref": randomRef(d, deps)}, "z": Object{"ref": randomRef(d, deps)}}
	case 4:
		n["prep"] = Object{"input_key": randomRef(d, deps)}
	case 5:
		n["prep"] = Object{"input_map": Object{"x": randomRef(d, deps), "y": "text"}}
	case 6:
		n["prep"] = Object{"expr": randomCEL(d, deps)}
	}
}

// randomRef draws a reference; some references have no value.
func randomRef(d Dice, deps []string) string {
	if len(deps) > 0 && Chance(d, 60) {
		return OneOf(d, "dep", deps...) + OneOf(d, "path", ".x", ".run.list", ".extra")
	}
	return OneOf(d, "ref", "$run.val", "$run.list", "$run.list[3].x", "$shared.flag", "$params.text", "$run.none")
}

func randomList(d Dice, deps []string) string {
	if len(deps) > 0 && Chance(d, 60) {
		return "$deps." + OneOf(d, "dep", deps...)
	}
	return OneOf(d, "list", "$run.list", "$run.list", "$run.list", "$shared.flag", "$run.none")
}

func randomEach(d Dice, deps []string) Object {
	each := Object{"concurrency": Between(d, "concurrency", 0, 2), "on_error": OneOf(d, "each", "", "fail_fast", "collect", "continue")}
	switch Between(d, "items", 0, 5) {
	case 0, 1:
		each["items"] = Object{"service": OneOf(d, "rows", "list", "list", "list", "boom", "echo")}
	case 2, 3:
		each["items"] = randomList(d, deps)
	case 4:
		each["items"], each["count"] = randomList(d, deps), 2
	default:
		each["count"] = OneOf[any](d, "count", 3, "$run.val", "$run.val", "$run.none")
	}
	return each
}

func randomWhen(d Dice, deps []string) Object {
	when := Object{}
	pattern := func() Object {
		if len(deps) > 0 && Chance(d, 50) {
			return Object{OneOf(d, "dep", deps...): Object{}}
		}
		return OneOf(d, "pattern", Object{"run": Object{"val": 3}}, Object{"run": Object{"val": 4}}, Object{"val": 3}, Object{})
	}
	if Chance(d, 40) {
		when["if"] = pattern()
	}
	if Chance(d, 25) {
		when["if_not"] = pattern()
	}
	if Chance(d, 40) {
		when["cond"] = Object{"service": OneOf(d, "cond", "yes", "no", "no", "echo", "boom"), "exec_type": OneOf(d, "exec", "", "queue")}
	}
	if Chance(d, 25) {
		when["expr"] = OneOf(d, "expr", "has(run.val)", "run.val > 2", "!has(shared.flag)",
			"has(shared.flag) ? bool(shared.flag) : size(deps) < 2", "input == null || true")
	}
	return when
}

// randomCEL draws an expression that returns any value, or fails.
func randomCEL(d Dice, deps []string) string {
	of := "run.val"
	if len(deps) > 0 {
		of = "deps." + OneOf(d, "dep", deps...)
	}
	return OneOf(d, "value", "run", of, `{"a": `+of+`, "b": [run.list, 1]}`, "run.list.map(x, x)",
		of+" + 1", "shared", `has(shared.flag) ? [1, 2] : [dyn("a")]`)
}

// randomBranch adds an inner flow of either mode, inline or embedded.
func randomBranch(d Dice, n Object, deps []string, depth int) {
	inner := RandomDag(d, depth+1)
	delete(inner, "on_error") // a branch has the on_error of the flow around it
	delete(inner, "profile")
	if Chance(d, 30) {
		inner = randomGraph(d, depth+1)
		inner["result"] = OneOf(d, "result", "", "out")
		n["timeout_ms"] = OneOf(d, "timeout", 0, 0, 700)
	}
	n["flow"] = inner
	switch Between(d, "prep", 0, 4) {
	case 0:
		n["prep"] = Object{"service": OneOf(d, "service", "echo", "params", "list", "boom")}
	case 1:
		n["prep"] = Object{"input_key": randomRef(d, deps)}
	case 3:
		n["prep"] = Object{"expr": randomCEL(d, deps)}
	case 2:
		n["prep"] = Object{"input_map": Object{"val": "$run.val", "list": randomRef(d, deps)}}
		if Chance(d, 50) {
			inner["embedded"] = "another"
		}
	}
}

func randomOutput(d Dice) Object {
	n := Object{"kind": "output"}
	if Chance(d, 50) {
		n["service"], n["retry"] = OneOf(d, "service", "echo", "third", "boom"), randomRetry(d)
	}
	return n
}
