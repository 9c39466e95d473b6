package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

// flowScenario is a flow, the params of a task, and the expected outcome. Scenarios are drawn such
// that the outcome does not depend on the order of events.
type flowScenario struct {
	definition []byte
	params     json.RawMessage
	signals    map[string]json.RawMessage // each has to be sent once, at any time
	// it is open which units ran before a fast failure, so only the status is compared
	loose bool
	want  taskOutcome

	code *codeProgram // the flow is a function

	// For dag mode:
	dag     bool
	again   bool           // whether the task is retried once if it fails
	direct  bool           // whether the task has direct units, completed from outside
	appends map[string]int // number of units to append, by direct fanout
	cel     celExpressions
}

type object = map[string]any

// farMS draws a deadline that is never reached. Most exceed the range of a Duration.
func farMS(rng *rand.Rand) int64 {
	return pickOne(rng, int64(9_000_000_000_000), 9_300_000_000_000, 10_000_000_000_000, 20_000_000_000_000, 100_000_000_000_000)
}

// farText is like farMS, as a duration text for definitions in dag mode.
func farText(rng *rand.Rand) string { return pickOne(rng, "876000h", "36500d") }

// graphWriter draws a scenario in graph mode. A scope is a chain of short fragments; each fragment
// has one entry and some exits.
type graphWriter struct {
	rng     *rand.Rand
	play    *flowScenario
	names   int
	scope   *scopeDraft
	subflow int // depth
	rich    bool
	remote  bool // a worker is always attached, or will be
	undo    bool // nodes may have compensations
}

type scopeDraft struct {
	nodes object
	edges []object
	keys  []string // shared keys written before the fragment
}

// flowFragment is a part of a scope: its entry and its exits.
type flowFragment struct {
	first string
	exits []string
}

func drawPlay(rng *rand.Rand, rich, remote bool) *flowScenario {
	p := &flowScenario{signals: map[string]json.RawMessage{}}
	w := &graphWriter{rng: rng, play: p, rich: rich, remote: remote, undo: rich && rng.IntN(3) == 0}
	d := w.writeGraph(1 + rng.IntN(6))
	if rng.IntN(10) != 0 {
		d["on_error"] = "follow"
	}
	if rng.IntN(8) == 0 {
		d["timeout_ms"] = farMS(rng)
	}
	w.addKeys(d, "$params.n")
	if rich && rng.IntN(5) == 0 {
		d["finally"] = "last"
		last := object{} // the input may contain a stack trace
		w.writeExec(last, "echo", "echo", "boom")
		d["nodes"].(object)["last"] = last
	}
	p.definition, _ = json.Marshal(d)
	list := make([]int, rng.IntN(9))
	for i := range list {
		list[i] = rng.IntN(50)
	}
	p.params, _ = json.Marshal(object{"n": rng.IntN(100), "list": list,
		"text": fmt.Sprint("text ", rng.IntN(100)), "o": object{"x": rng.IntN(9)}})
	return p
}

// compilePlan compiles the scenario and computes its outcome.
func (p *flowScenario) compilePlan(limits flow.Limits) (*flow.Plan, error) {
	d, err := definition.Parse(p.definition)
	if err != nil {
		return nil, err
	}
	plan, problems := compile.Definition(d, limits)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if p.code != nil {
		return plan, nil
	}
	if p.dag {
		p.want = evaluatePlay(p, 1)
		if p.again && p.want.Status == flow.TaskFailed {
			p.want = evaluatePlay(p, 2)
		}
		return plan, nil
	}
	p.want, err = referenceOutcome(p, plan, limits)
	return plan, err
}

func pickOne[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func (w *graphWriter) writeGraph(scenes int) object {
	outer := w.scope
	w.scope = &scopeDraft{nodes: object{}}
	var start string
	var exits []string
	for range scenes {
		s := w.writeFragment()
		if start == "" {
			start = s.first
		}
		for _, from := range exits {
			w.addEdge(from, "default", s.first)
		}
		exits = s.exits
	}
	g := object{"start": start, "nodes": w.scope.nodes, "edges": w.scope.edges}
	w.scope = outer
	return g
}

func (w *graphWriter) addNode(n object) string {
	w.names++
	key := fmt.Sprint("n", w.names)
	if w.undo && w.rng.IntN(2) == 0 {
		by := pickOne(w.rng, "undo", "revoke")
		n["compensate"], w.scope.nodes[by] = by, w.writeUndo()
	}
	w.scope.nodes[key] = n
	return key
}

// undoneKey is the shared key written by compensations.
const undoneKey = "undone"

// writeUndo draws a compensation node.
func (w *graphWriter) writeUndo() object {
	n := object{}
	retries(n, w.rng.IntN(3), pickOne(w.rng, 0, 30))
	if w.rng.IntN(3) == 0 {
		n["post"] = object{"output_key": undoneKey}
	}
	w.writeExec(n, "echo", "echo", "flaky", "boom", "big")
	return n
}

// retries adds retries to an executor.
func retries(n object, most, pause int) {
	if most > 0 {
		n["retry"] = retryOf(most, pause)
	}
}

// retryOf returns a retry policy with the given number of attempts after the first.
func retryOf(most, pause int) object {
	return object{"max_attempts": 1 + most, "delay": fmt.Sprint(pause, "ms")}
}

func (w *graphWriter) addEdge(from, action, to string) {
	w.scope.edges = append(w.scope.edges, object{"from": from, "action": action, "to": to})
}

func (w *graphWriter) writeFragment() flowFragment {
	if !w.rich {
		return w.writeExecutor()
	}
	switch w.rng.IntN(14) {
	case 0, 1:
		return w.writeParallel()
	case 2, 3:
		return w.writeForeach()
	case 4, 5:
		if w.subflow < 2 {
			return w.writeSubflow()
		}
	case 6:
		return w.writeLoop()
	case 7:
		return w.writeChoice()
	case 8:
		return w.writeTimer()
	case 9, 10:
		return w.writeWait()
	case 11:
		return w.writeHanging()
	}
	return w.writeExecutor()
}

// singleNode returns a fragment with a single node.
func (w *graphWriter) singleNode(n object) flowFragment {
	key := w.addNode(n)
	return flowFragment{key, []string{key}}
}

func (w *graphWriter) writeExecutor() flowFragment {
	n := object{"prep": w.writePrep(), "post": w.writePost()}
	w.writeExec(n, services...)
	w.addKeys(n, "$params.n", "$input")
	if w.rng.IntN(2) == 0 {
		retries(n, w.rng.IntN(4), pickOne(w.rng, 0, 20, 500))
	}
	if w.rng.IntN(6) == 0 {
		n["timeout_ms"] = farMS(w.rng)
	}
	key := w.addNode(n)
	s := flowFragment{key, []string{key}}
	if w.rng.IntN(4) == 0 {
		s = w.addFork(s, "error")
	}
	if n["service"] == "route" {
		n["post"].(object)["action_key"] = "action"
		s = w.addFork(w.addFork(s, "go"), "stop")
	}
	return s
}

// addKeys draws shared limits in rich scenarios.
func (w *graphWriter) addKeys(n object, refs ...string) {
	if w.rich {
		drawKeys(w.rng, n, refs...)
	}
}

// addFork adds a separate path for an action.
func (w *graphWriter) addFork(s flowFragment, action string) flowFragment {
	n := object{"prep": w.writePrep(), "post": w.writePost()}
	w.writeExec(n, "echo", "inc")
	other := w.addNode(n)
	w.addEdge(s.first, action, other)
	return flowFragment{s.first, append(s.exits, other)}
}

// writeExec draws the executor of a node.
func (w *graphWriter) writeExec(n object, from ...string) {
	service := pickOne(w.rng, from...)
	n["service"] = service
	switch w.rng.IntN(4) {
	case 0:
		n["exec_type"] = "queue"
	case 3:
		if w.rich {
			n["exec_type"] = "external"
		}
	case 1:
		n["exec_type"], n["func"] = "local_func", service
	default:
		if w.remote && w.rng.IntN(2) == 0 {
			n["exec_type"] = "remote"
		}
	}
}

func (w *graphWriter) chooseInput() string {
	if keys := w.scope.keys; len(keys) > 0 && w.rng.IntN(2) == 0 {
		return pickOne(w.rng, keys...)
	}
	return pickOne(w.rng, "$params.n", "$params.list", "$params.text", "$params.o")
}

func (w *graphWriter) writePrep() object {
	switch w.rng.IntN(5) {
	case 0:
		return object{"input_map": object{"a": "$params.n", "b": w.chooseInput()}}
	case 1:
		return object{}
	}
	return object{"input_key": w.chooseInput()}
}

func (w *graphWriter) writePost() object {
	if w.rng.IntN(5) == 0 {
		return object{}
	}
	return object{"output_key": w.newKey()}
}

func (w *graphWriter) newKey() string {
	key := pickOne(w.rng, "k1", "k2", "k3", "k4")
	w.scope.keys = append(w.scope.keys, key)
	return key
}

// writeUnits draws the concurrency and failure strategy of units. With a fast failure, which units
// ran depends on the order of reports.
func (w *graphWriter) writeUnits(n object) {
	n["failure_strategy"] = pickOne(w.rng, "", "", "continue", "fail_fast")
	if w.rng.IntN(4) == 0 {
		n["retry"] = retryOf(w.rng.IntN(3), pickOne(w.rng, 0, 30))
	}
	if w.rng.IntN(2) == 0 {
		n["parallel_mode"], n["max_parallel"] = "concurrent", w.rng.IntN(4)
		if n["failure_strategy"] == "fail_fast" {
			w.play.loose = true
			n["post"] = object{}
		}
	}
}

func (w *graphWriter) writeParallel() flowFragment {
	n := object{"kind": "parallel", "prep": w.writePrep(), "post": w.writePost()}
	var branches []object
	for range 1 + w.rng.IntN(4) {
		b := object{}
		w.writeExec(b, services...)
		if w.rng.IntN(3) == 0 {
			b["params"] = object{"extra": w.rng.IntN(3)}
		}
		branches = append(branches, b)
	}
	n["parallel_execs"] = branches
	w.addKeys(n, "$params.n")
	w.writeUnits(n)
	return w.singleNode(n)
}

func (w *graphWriter) writeForeach() flowFragment {
	n := object{"kind": "foreach", "prep": object{"input_key": pickOne(w.rng, "$params.list",
		"$params.list", w.chooseInput())}, "post": w.writePost()}
	w.writeExec(n, services...)
	w.addKeys(n, "$item", "$params.n")
	if w.rng.IntN(3) == 0 {
		n["foreach_execs"] = []object{{"index": 1, "exec_type": "local_func", "func": "odd"}}
	}
	w.writeUnits(n)
	return w.singleNode(n)
}

func (w *graphWriter) writeSubflow() flowFragment {
	w.subflow++
	n := object{"kind": "subflow", "post": w.writePost(), "subflow": w.writeGraph(1 + w.rng.IntN(4))}
	w.subflow--
	strategy := pickOne(w.rng, "", "", "continue", "retry")
	most, pause := w.rng.IntN(3), pickOne(w.rng, 0, 30)
	switch {
	case strategy == "retry":
		n["retry"] = retryOf(max(most, 1)-1, pause)
	case strategy == "" && w.rng.IntN(2) == 0:
		n["retry"] = retryOf(most, pause)
	}
	n["failure_strategy"] = strategy
	return w.singleNode(n)
}

// writeLoop draws a loop with a few rounds.
func (w *graphWriter) writeLoop() flowFragment {
	w.names++
	count := fmt.Sprint("count", w.names)
	n := object{"prep": object{"input_key": count}, "post": object{"output_key": count}}
	w.writeExec(n, "inc")
	body := w.addNode(n)
	again := w.addNode(object{"kind": "choice", "choice_cases": []object{
		{"action": "again", "expr": object{"lt": []any{"$shared." + count, 1 + w.rng.IntN(4)}}},
	}})
	w.addEdge(again, "again", body)
	if w.rng.IntN(3) > 0 {
		w.addEdge(body, "default", again)
		return flowFragment{body, []string{again}}
	}
	ask := w.addSignalStep()
	w.addEdge(body, "default", ask)
	for _, action := range []string{"approved", "default"} {
		w.addEdge(ask, action, again)
	}
	return flowFragment{body, []string{again}}
}

// addSignalStep adds a step that takes another signal in each round of a loop.
func (w *graphWriter) addSignalStep() string {
	w.names++
	key := fmt.Sprint("signal", w.names)
	w.play.signals[key] = json.RawMessage(pickOne(w.rng, `true`, `{"by":"somebody"}`, `7`))
	if w.rng.IntN(2) == 0 {
		return w.addNode(object{"kind": "wait_event", "params": object{"signal_key": key}})
	}
	return w.addNode(object{"kind": "approval", "params": object{"approval_key": "$shared." + key}})
}

func (w *graphWriter) writeChoice() flowFragment {
	var when any = object{"gt": []any{"$params.n", w.rng.IntN(100)}}
	if w.rng.IntN(2) == 0 {
		when = pickOne(w.rng, "params.n > 50",
			"size(params.text) < 7 && params.list.exists(x, x > 25)",
			`has(shared.k1) && shared.k1 == "x"`, "input == null || params.o.x % 2 == 0")
	}
	key := w.addNode(object{"kind": "choice", "prep": w.writePrep(), "post": w.writePost(), "choice_cases": []object{
		{"action": "go", "expr": when},
	}})
	return w.addFork(flowFragment{key, []string{key}}, "go")
}

func (w *graphWriter) writeTimer() flowFragment {
	return w.singleNode(object{"kind": "timer", "prep": w.writePrep(), "post": w.writePost(),
		"params": object{"delay_ms": pickOne(w.rng, 0, 10, 300, 3000, 20_000)}})
}

// writeWait draws a step that ends by a signal or by a timer, but never by a race of both.
func (w *graphWriter) writeWait() flowFragment {
	w.names++
	key := fmt.Sprint("signal", w.names)
	if w.rng.IntN(3) == 0 {
		return w.singleNode(object{"kind": "wait_event", "post": w.writePost(),
			"params": object{"signal_key": "$shared." + key,
				"timeout_ms": pickOne(w.rng, 50, 2000, 9000)},
			"failure_strategy": pickOne(w.rng, "", "continue")})
	}
	w.play.signals[key] = json.RawMessage(pickOne(w.rng, `true`, `"approved"`, `{"by":"somebody"}`, `7`))
	if w.rng.IntN(2) == 0 {
		params := object{"signal_key": "$shared." + key}
		if w.rng.IntN(3) == 0 {
			params["timeout_ms"] = pickOne(w.rng, farMS(w.rng), 0)
		}
		return w.singleNode(object{"kind": "wait_event", "post": w.writePost(), "params": params})
	}
	n := w.addNode(object{"kind": "approval", "post": w.writePost(), "params": object{"approval_key": "$shared." + key}})
	return w.addFork(flowFragment{n, []string{n}}, "approved")
}

// writeHanging draws a step whose jobs are never reported, so that the step times out.
func (w *graphWriter) writeHanging() flowFragment {
	most, pause := w.rng.IntN(2), pickOne(w.rng, 0, 50)
	n := object{}
	w.writeExec(n, hang)
	if w.rng.IntN(3) == 0 {
		n = object{"kind": "parallel", "parallel_execs": []object{n, n}, "parallel_mode": pickOne(w.rng, "", "concurrent"),
			"retry": retryOf(most, pause)}
	} else {
		retries(n, most, pause)
	}
	n["prep"], n["timeout_ms"] = w.writePrep(), pickOne(w.rng, 30, 400, 2500)
	key := w.addNode(n)
	return w.addFork(flowFragment{key, []string{key}}, "error")
}
