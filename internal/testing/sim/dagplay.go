package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/troupe-engine/troupe/flow"
)

// dagWriter draws a scenario in dag mode. The evaluator computes its outcome.
type dagWriter struct {
	rng    *rand.Rand
	play   *flowScenario
	names  int
	undo   bool // nodes may have compensations,
	deep   bool // whether nodes in inner flows are undone, too
	remote bool // a worker is always attached, or will be
	fast   bool // the first failure ends the task, so it is open which other nodes ran
}

func drawDag(rng *rand.Rand, remote bool) *flowScenario {
	p := &flowScenario{dag: true, signals: map[string]json.RawMessage{}, appends: map[string]int{},
		cel: celExpressions{rng, map[string]celExpression{}}}
	w := &dagWriter{rng: rng, play: p, remote: remote, fast: rng.IntN(5) == 0}
	p.loose = w.fast
	p.again = !w.fast && rng.IntN(3) == 0
	w.undo = rng.IntN(3) == 0
	w.deep = w.undo && !p.again // a task that has undone inner nodes cannot be retried
	d := w.writeScope(1+rng.IntN(8), 0, true)
	d["mode"], d["profile"] = "dag", pickOne(rng, "", "ork")
	d["on_error"] = "continue"
	if w.fast {
		d["on_error"] = "fail_fast"
	}
	d["input_shape"] = pickOne(rng, "run_deps", "deps", "merged")
	nodes := d["nodes"].(object)
	if rng.IntN(8) == 0 {
		d["timeout_ms"] = farMS(rng)
	}
	drawKeys(rng, d, "$run.n")
	if rng.IntN(4) == 0 {
		d["finally"] = "last"
		nodes["last"] = object{"service": pickOne(rng, "echo", "echo", "boom"), "exec_type": pickOne(rng, "", "queue")}
	}
	p.definition, _ = json.Marshal(d)
	list := make([]int, rng.IntN(5))
	for i := range list {
		list[i] = rng.IntN(50)
	}
	p.params, _ = json.Marshal(object{"n": rng.IntN(100), "list": list, "plan": pickOne(rng, "free", "paid")})
	return p
}

// writeScope draws nodes that depend on some of the earlier ones.
func (w *dagWriter) writeScope(n, depth int, root bool) object {
	nodes := object{}
	var before []string
	for range n {
		w.names++
		key := fmt.Sprintf("n%02d", w.names)
		var deps []string
		for _, dep := range before {
			if w.rng.IntN(100) < 40 {
				deps = append(deps, dep)
			}
		}
		node := w.writeNode(key, deps, depth)
		if len(deps) > 0 {
			node["depends_on"] = deps
		}
		if (w.deep || w.undo && root) && w.rng.IntN(2) == 0 {
			by := pickOne(w.rng, "undo", "revoke")
			node["compensate"], nodes[by] = by, w.writeUndo()
		}
		nodes[key] = node
		before = append(before, key)
	}
	if w.rng.IntN(6) == 0 {
		nodes["o"] = object{"kind": "output"}
		if w.rng.IntN(2) == 0 {
			w.writeExec(nodes["o"].(object), "echo", "flaky", "boom")
		}
	}
	return object{"nodes": nodes}
}

// writeUndo draws a compensation node.
func (w *dagWriter) writeUndo() object {
	return object{"service": pickOne(w.rng, "echo", "echo", "flaky", "boom"),
		"exec_type": pickOne(w.rng, "", "queue"), "retry": object{"max_attempts": 1 + w.rng.IntN(3),
			"delay": "20ms"}}
}

func (w *dagWriter) writeNode(key string, deps []string, depth int) object {
	n := object{"run_on": pickOne(w.rng, "", "", "", "always")}
	if w.rng.IntN(3) == 0 {
		n["when"], n["skip_mode"] = w.writeCondition(deps), pickOne(w.rng, "", "optional", "propagate", "fail")
	}
	switch kind := w.rng.IntN(16); {
	case kind < 3 && depth < 2:
		w.writeBranch(n, deps, depth)
		return n
	case kind < 7:
		w.writeFanout(n, key, deps)
	case kind == 7:
		n["kind"], n["params"] = "timer", object{"delay_ms": pickOne(w.rng, 0, 10, 300, 3000)}
		return n
	case kind == 8:
		n["kind"], n["params"] = "wait_event", object{"signal_key": "$shared." + key}
		w.play.signals[key] = json.RawMessage(pickOne(w.rng, `true`, `"now"`, `{"by":"somebody"}`, `7`))
		return n
	case kind == 9:
		n["route"], w.play.direct = "direct", true
	default:
		w.writeExec(n, "echo", "inc", "flaky", "coin", "list", "boom", "fatal", "panics", "second")
		if n["when"] == nil && w.rng.IntN(4) == 0 {
			n["prep"] = object{"expr": w.play.cel.recordExpr(w.play.cel.drawValue(fieldsOf(deps)...))}
		}
	}
	if !isRetryable(n) { // skipped nodes are not retried
		n["on_exhausted"] = pickOne(w.rng, "", "", "skip", "skip-cascade")
	}
	if w.rng.IntN(8) == 0 {
		n["start_delay"] = pickOne(w.rng, "0s", "30ms", "400ms")
	}
	if w.rng.IntN(6) == 0 {
		w.addDeadlines(n)
	}
	return n
}

// addDeadlines gives a node deadlines that are never reached. A claim gets none, because a poller
// that disappears would hold it forever.
func (w *dagWriter) addDeadlines(n object) {
	n["timeout_ms"] = farMS(w.rng)
	if n["route"] == "queue" {
		n["start_timeout"] = farText(w.rng)
	}
}

// isRetryable reports whether a node fails only in the first run of the task.
func isRetryable(n object) bool { return n["service"] == "second" || n["service"] == "unlucky" }

// writeExec draws the executor of a node and its number of attempts.
func (w *dagWriter) writeExec(n object, from ...string) {
	service := pickOne(w.rng, from...)
	n["service"] = service
	switch w.rng.IntN(4) {
	case 0:
		n["route"] = "queue"
	case 3:
		n["exec_type"] = "external"
	case 1:
		n["exec_type"], n["func"] = "local_func", service
	default:
		if w.remote && w.rng.IntN(2) == 0 {
			n["exec_type"] = "remote"
		}
	}
	drawKeys(w.rng, n, "$run.n")
	if w.rng.IntN(2) == 0 {
		n["retry"] = object{"max_attempts": 1 + w.rng.IntN(3), "delay": pickOne(w.rng, "0s", "20ms",
			"300ms"), "backoff": pickOne(w.rng, "", "exponential"), "jitter": 0.5}
	}
}

func (w *dagWriter) writeFanout(n object, key string, deps []string) {
	each := object{"concurrency": w.rng.IntN(4), "on_error": pickOne(w.rng, "fail_fast", "collect", "continue")}
	switch w.rng.IntN(4) {
	case 0:
		each["count"] = 1 + w.rng.IntN(3)
	case 1:
		each["items"] = object{"service": pickOne(w.rng, "list", "list", "coin")}
	default:
		each["items"] = "$run.list"
		if len(deps) > 0 && w.rng.IntN(2) == 0 {
			each["items"] = "$deps." + pickOne(w.rng, deps...) // it may have been skipped
		}
	}
	n["kind"], n["each"] = "fanout", each
	if w.rng.IntN(4) == 0 {
		n["route"], w.play.direct = "direct", true
		n["timeout_ms"] = pickOne(w.rng, 0, farMS(w.rng))
		// appended units remain only if the retry has the same items
		if each["count"] != nil || !w.play.again {
			w.play.appends[key] = w.rng.IntN(3)
		}
		return
	}
	w.writeExec(n, "echo", "inc", "flaky", "coin", "boom", "second", "unlucky", "unlucky")
	// otherwise it would complete without these units and would not be retried
	if isRetryable(n) && each["on_error"] == "continue" {
		each["on_error"] = "collect"
	}
}

func (w *dagWriter) writeCondition(deps []string) object {
	when := object{}
	pattern := object{"plan": "paid"}
	if len(deps) > 0 && w.rng.IntN(2) == 0 {
		pattern = object{pickOne(w.rng, deps...): object{}}
	}
	switch w.rng.IntN(6) {
	case 0:
		when["if"] = pattern
	case 1:
		when["if_not"] = pattern
	case 2, 3:
		when["expr"] = w.play.cel.recordExpr(w.play.cel.drawCondition(2, fieldsOf(deps)...))
		if w.rng.IntN(3) == 0 {
			when["if_not"] = pattern
		}
	default:
		when["cond"] = object{"service": pickOne(w.rng, "yesno", "yesno", "yesno", "boom", "echo"),
			"exec_type": pickOne(w.rng, "", "queue")}
	}
	return when
}

// fieldsOf returns the fields that expressions of a node may use.
func fieldsOf(deps []string) []string {
	fields := []string{"run.n", "run.n", "run.list", "run.plan"}
	for _, dep := range deps {
		fields = append(fields, "deps."+dep)
	}
	return fields
}

// writeBranch draws an inner flow: usually in dag mode and expanded into its parent, otherwise a
// graph of two steps.
func (w *dagWriter) writeBranch(n object, deps []string, depth int) {
	n["kind"] = "branch"
	switch w.rng.IntN(5) {
	case 0:
		n["prep"] = object{"service": pickOne(w.rng, "echo", "list", "boom")}
	case 2:
		n["prep"] = object{"expr": w.play.cel.recordExpr(w.play.cel.drawValue(fieldsOf(deps)...))}
	case 1:
		n["prep"] = object{"input_map": object{"n": "$run.n", "plan": "$run.plan"}}
		if len(deps) > 0 {
			n["prep"].(object)["input_map"].(object)["d"] = "$deps." + pickOne(w.rng, deps...)
		}
	}
	if w.rng.IntN(3) == 0 {
		first := pickOne(w.rng, "inc", "coin", "flaky")
		// the visits of the scope are then the visits of its task
		if depth == 0 && len(deps) == 0 && n["when"] == nil && n["prep"] == nil {
			first = pickOne(w.rng, "inc", "coin", "flaky", "second", "unlucky")
		}
		second := pickOne(w.rng, "echo", "echo", "coin")
		n["flow"] = object{"start": "x", "result": "out", "edges": []object{{"from": "x", "action": "default", "to": "y"}},
			"nodes": object{
				"x": object{"service": first, "exec_type": pickOne(w.rng, "", "queue"),
					"prep": object{"input_key": "$params.n"}, "post": object{"output_key": "out"}},
				"y": object{"service": second,
					"prep": object{"input_map": object{"was": "$shared.out"}},
					"post": object{"output_key": "out"}},
			}}
		if w.rng.IntN(3) == 0 {
			w.addChoice(n["flow"].(object))
		}
		if w.deep && w.rng.IntN(2) == 0 {
			nodes := n["flow"].(object)["nodes"].(object)
			nodes["u"] = w.writeUndo()
			nodes["x"].(object)["compensate"], nodes["y"].(object)["compensate"] = "u", "u"
		}
		if first == "inc" || first == "coin" || first == "flaky" {
			n["on_exhausted"] = pickOne(w.rng, "", "skip", "skip-cascade")
		}
		return
	}
	n["flow"] = w.writeScope(1+w.rng.IntN(3), depth+1, false)
}

// addChoice inserts a choice between the two steps of a graph; it may end the graph there.
func (w *dagWriter) addChoice(g object) {
	when := w.play.cel.recordExpr(w.play.cel.drawCondition(2, "params.n", "params.list", "shared.out", "shared.none"))
	g["nodes"].(object)["c"] = object{"kind": "choice", "choice_cases": []object{{"action": "go", "expr": when}}}
	g["edges"] = []object{{"from": "x", "action": "default", "to": "c"}, {"from": "c", "action": "go", "to": "y"}}
}

// dagOutcomeOf returns the outcome of a task in dag mode.
func dagOutcomeOf(s *flow.State) taskOutcome {
	ends := map[string]*nodeEnd{}
	for i, n := range s.Root.Plan.Dag.List {
		switch n.Kind {
		case flow.KindGate, flow.KindCond, flow.KindPrep:
		default:
			ends[n.Key] = &nodeEnd{status: s.Root.Nodes[i].Status(), out: decodeValue(s.Root.Nodes[i].Output)}
		}
	}
	return dagOutcome(s.Status, ends, decodeValue(s.Result()))
}
