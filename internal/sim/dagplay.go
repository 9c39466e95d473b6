package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/troupe-engine/troupe/flow"
)

// dagWriter writes a play of dag mode. The evaluator says how it has to end.
type dagWriter struct {
	rng    *rand.Rand
	play   *play
	names  int
	undo   bool // nodes may name what undoes them,
	deep   bool // also those inside others
	remote bool // somebody is always attached, or will be
	fast   bool // the first failure ends the task, so which others ran is open
}

func drawDag(rng *rand.Rand, remote bool) *play {
	p := &play{dag: true, signals: map[string]json.RawMessage{}, appends: map[string]int{}, cel: expressions{rng, map[string]expression{}}}
	w := &dagWriter{rng: rng, play: p, remote: remote, fast: rng.IntN(5) == 0}
	p.loose = w.fast
	p.again = !w.fast && rng.IntN(3) == 0
	w.undo = rng.IntN(3) == 0
	w.deep = w.undo && !p.again // a task that has undone what is inside others cannot be retried
	d := w.scope(1+rng.IntN(8), 0, true)
	d["mode"], d["profile"] = "dag", pick(rng, "", "ork")
	d["on_error"] = "continue"
	if w.fast {
		d["on_error"] = "fail_fast"
	}
	d["input_shape"] = pick(rng, "run_deps", "deps", "merged")
	nodes := d["nodes"].(object)
	if rng.IntN(8) == 0 {
		d["timeout_ms"] = farMS(rng)
	}
	drawKeys(rng, d, "$run.n")
	if rng.IntN(4) == 0 {
		d["finally"] = "last"
		nodes["last"] = object{"service": pick(rng, "echo", "echo", "boom"), "exec_type": pick(rng, "", "queue")}
	}
	p.definition, _ = json.Marshal(d)
	list := make([]int, rng.IntN(5))
	for i := range list {
		list[i] = rng.IntN(50)
	}
	p.params, _ = json.Marshal(object{"n": rng.IntN(100), "list": list, "plan": pick(rng, "free", "paid")})
	return p
}

// scope draws nodes that wait for some of those before them.
func (w *dagWriter) scope(n, depth int, root bool) object {
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
		node := w.node(key, deps, depth)
		if len(deps) > 0 {
			node["depends_on"] = deps
		}
		if (w.deep || w.undo && root) && w.rng.IntN(2) == 0 {
			by := pick(w.rng, "undo", "revoke")
			node["compensate"], nodes[by] = by, w.undoing()
		}
		nodes[key] = node
		before = append(before, key)
	}
	if w.rng.IntN(6) == 0 {
		nodes["o"] = object{"kind": "output"}
		if w.rng.IntN(2) == 0 {
			w.work(nodes["o"].(object), "echo", "flaky", "boom")
		}
	}
	return object{"nodes": nodes}
}

// undoing is a node that undoes others.
func (w *dagWriter) undoing() object {
	return object{"service": pick(w.rng, "echo", "echo", "flaky", "boom"), "exec_type": pick(w.rng, "", "queue"), "retry": object{"max_attempts": 1 + w.rng.IntN(3), "delay": "20ms"}}
}

func (w *dagWriter) node(key string, deps []string, depth int) object {
	n := object{"run_on": pick(w.rng, "", "", "", "always")}
	if w.rng.IntN(3) == 0 {
		n["when"], n["skip_mode"] = w.when(deps), pick(w.rng, "", "optional", "propagate", "fail")
	}
	switch kind := w.rng.IntN(16); {
	case kind < 3 && depth < 2:
		w.branch(n, deps, depth)
		return n
	case kind < 7:
		w.fanout(n, key, deps)
	case kind == 7:
		n["kind"], n["params"] = "timer", object{"delay_ms": pick(w.rng, 0, 10, 300, 3000)}
		return n
	case kind == 8:
		n["kind"], n["params"] = "wait_event", object{"signal_key": "$shared." + key}
		w.play.signals[key] = json.RawMessage(pick(w.rng, `true`, `"now"`, `{"by":"somebody"}`, `7`))
		return n
	case kind == 9:
		n["route"], w.play.direct = "direct", true
	default:
		w.work(n, "echo", "inc", "flaky", "coin", "list", "boom", "fatal", "panics", "second")
		if n["when"] == nil && w.rng.IntN(4) == 0 {
			n["prep"] = object{"expr": w.play.cel.keep(w.play.cel.value(fieldsOf(deps)...))}
		}
	}
	if !retryable(n) { // what was skipped is not tried again
		n["on_exhausted"] = pick(w.rng, "", "", "skip", "skip-cascade")
	}
	if w.rng.IntN(8) == 0 {
		n["start_delay"] = pick(w.rng, "0s", "30ms", "400ms")
	}
	if w.rng.IntN(6) == 0 {
		w.far(n)
	}
	return n
}

// far gives a node deadlines that do not come. A claim has none: whoever took a job and went would hold it for ever.
func (w *dagWriter) far(n object) {
	n["timeout_ms"] = farMS(w.rng)
	if n["route"] == "queue" {
		n["start_timeout"] = farText(w.rng)
	}
}

// retryable nodes fail only the first time.
func retryable(n object) bool { return n["service"] == "second" || n["service"] == "unlucky" }

// work says who does it, and how often it is tried.
func (w *dagWriter) work(n object, from ...string) {
	service := pick(w.rng, from...)
	n["service"] = service
	switch w.rng.IntN(4) {
	case 0:
		n["route"] = "queue"
	case 3:
		n["exec_type"] = "outside"
	case 1:
		n["exec_type"], n["func"] = "local_func", service
	default:
		if w.remote && w.rng.IntN(2) == 0 {
			n["exec_type"] = "remote"
		}
	}
	drawKeys(w.rng, n, "$run.n")
	if w.rng.IntN(2) == 0 {
		n["retry"] = object{"max_attempts": 1 + w.rng.IntN(3), "delay": pick(w.rng, "0s", "20ms", "300ms"), "backoff": pick(w.rng, "", "exponential"), "jitter": 0.5}
	}
}

func (w *dagWriter) fanout(n object, key string, deps []string) {
	each := object{"concurrency": w.rng.IntN(4), "on_error": pick(w.rng, "fail_fast", "collect", "continue")}
	switch w.rng.IntN(4) {
	case 0:
		each["count"] = 1 + w.rng.IntN(3)
	case 1:
		each["items"] = object{"service": pick(w.rng, "list", "list", "coin")}
	default:
		each["items"] = "$run.list"
		if len(deps) > 0 && w.rng.IntN(2) == 0 {
			each["items"] = "$deps." + pick(w.rng, deps...) // it may have been skipped
		}
	}
	n["kind"], n["each"] = "fanout", each
	if w.rng.IntN(4) == 0 {
		n["route"], w.play.direct = "direct", true
		n["timeout_ms"] = pick(w.rng, 0, farMS(w.rng))
		if each["count"] != nil || !w.play.again { // what was appended stays when there are no other items the next time
			w.play.appends[key] = w.rng.IntN(3)
		}
		return
	}
	w.work(n, "echo", "inc", "flaky", "coin", "boom", "second", "unlucky", "unlucky")
	if retryable(n) && each["on_error"] == "continue" { // it would complete without, and be done
		each["on_error"] = "collect"
	}
}

func (w *dagWriter) when(deps []string) object {
	when := object{}
	pattern := object{"plan": "paid"}
	if len(deps) > 0 && w.rng.IntN(2) == 0 {
		pattern = object{pick(w.rng, deps...): object{}}
	}
	switch w.rng.IntN(6) {
	case 0:
		when["if"] = pattern
	case 1:
		when["if_not"] = pattern
	case 2, 3:
		when["expr"] = w.play.cel.keep(w.play.cel.condition(2, fieldsOf(deps)...))
		if w.rng.IntN(3) == 0 {
			when["if_not"] = pattern
		}
	default:
		when["cond"] = object{"service": pick(w.rng, "yesno", "yesno", "yesno", "boom", "echo"), "exec_type": pick(w.rng, "", "queue")}
	}
	return when
}

// fieldsOf are what expressions of a node may name.
func fieldsOf(deps []string) []string {
	fields := []string{"run.n", "run.n", "run.list", "run.plan"}
	for _, dep := range deps {
		fields = append(fields, "deps."+dep)
	}
	return fields
}

// branch is a flow inside: mostly of dag mode and laid out flat, else a graph of two steps.
func (w *dagWriter) branch(n object, deps []string, depth int) {
	n["kind"] = "branch"
	switch w.rng.IntN(5) {
	case 0:
		n["prep"] = object{"service": pick(w.rng, "echo", "list", "boom")}
	case 2:
		n["prep"] = object{"expr": w.play.cel.keep(w.play.cel.value(fieldsOf(deps)...))}
	case 1:
		n["prep"] = object{"input_map": object{"n": "$run.n", "plan": "$run.plan"}}
		if len(deps) > 0 {
			n["prep"].(object)["input_map"].(object)["d"] = "$deps." + pick(w.rng, deps...)
		}
	}
	if w.rng.IntN(3) == 0 {
		first := pick(w.rng, "inc", "coin", "flaky")
		if depth == 0 && len(deps) == 0 && n["when"] == nil && n["prep"] == nil { // its visits are those of its task then
			first = pick(w.rng, "inc", "coin", "flaky", "second", "unlucky")
		}
		second := pick(w.rng, "echo", "echo", "coin")
		n["flow"] = object{"start": "x", "result": "out", "edges": []object{{"from": "x", "action": "default", "to": "y"}},
			"nodes": object{
				"x": object{"service": first, "exec_type": pick(w.rng, "", "queue"), "prep": object{"input_key": "$params.n"}, "post": object{"output_key": "out"}},
				"y": object{"service": second, "prep": object{"input_map": object{"was": "$shared.out"}}, "post": object{"output_key": "out"}},
			}}
		if w.rng.IntN(3) == 0 {
			w.choice(n["flow"].(object))
		}
		if w.deep && w.rng.IntN(2) == 0 {
			nodes := n["flow"].(object)["nodes"].(object)
			nodes["u"] = w.undoing()
			nodes["x"].(object)["compensate"], nodes["y"].(object)["compensate"] = "u", "u"
		}
		if first == "inc" || first == "coin" || first == "flaky" {
			n["on_exhausted"] = pick(w.rng, "", "skip", "skip-cascade")
		}
		return
	}
	n["flow"] = w.scope(1+w.rng.IntN(3), depth+1, false)
}

// choice puts one between the two steps of a graph, which it may end there.
func (w *dagWriter) choice(g object) {
	when := w.play.cel.keep(w.play.cel.condition(2, "params.n", "params.list", "shared.out", "shared.none"))
	g["nodes"].(object)["c"] = object{"kind": "choice", "choice_cases": []object{{"action": "go", "expr": when}}}
	g["edges"] = []object{{"from": "x", "action": "default", "to": "c"}, {"from": "c", "action": "go", "to": "y"}}
}

// dagOutcomeOf is how a task of dag mode has ended.
func dagOutcomeOf(s *flow.State) outcome {
	ends := map[string]*end{}
	for i, n := range s.Root.Plan.Dag.List {
		switch n.Kind {
		case flow.KindGate, flow.KindCond, flow.KindPrep:
		default:
			ends[n.Key] = &end{status: s.Root.Nodes[i].Status(), out: decoded(s.Root.Nodes[i].Output)}
		}
	}
	return dagOutcome(s.Status, ends, decoded(s.Result()))
}
