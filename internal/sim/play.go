package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
)

// play is a flow, what a task of it is started with, and how that has to end. Plays are drawn so that
// the end does not depend on the order of what happens.
type play struct {
	definition []byte
	params     json.RawMessage
	signals    map[string]json.RawMessage // each has to be sent once, at any time
	loose      bool                       // which units ran before a fast failure is open: only the status counts
	want       outcome

	// Of dag mode.
	dag     bool
	again   bool           // it is retried once if it fails
	direct  bool           // it has steps that are finished directly
	appends map[string]int // to fanouts of those: how many units
	cel     expressions
}

type object = map[string]any

// farMS is a deadline that nobody lives to see. Most are further off than a Duration reaches.
func farMS(rng *rand.Rand) int64 {
	return pick(rng, int64(9_000_000_000_000), 9_300_000_000_000, 10_000_000_000_000, 20_000_000_000_000, 100_000_000_000_000)
}

// farText is the same as definitions of dag mode write it; a text is a Duration.
func farText(rng *rand.Rand) string { return pick(rng, "876000h", "36500d") }

// writer writes a play. A scope is a chain of short scenes; each begins at one node and leads on from
// some.
type writer struct {
	rng     *rand.Rand
	play    *play
	names   int
	scope   *scopeDraft
	subflow int // depth
	rich    bool
	remote  bool // somebody is always attached, or will be
	undo    bool // nodes may name what undoes them
}

type scopeDraft struct {
	nodes object
	edges []object
	keys  []string // of shared, that are written before the scene
}

// scene is a part of a scope: where it begins and from where it goes on.
type scene struct {
	first string
	exits []string
}

func drawPlay(rng *rand.Rand, rich, remote bool) *play {
	p := &play{signals: map[string]json.RawMessage{}}
	w := &writer{rng: rng, play: p, rich: rich, remote: remote, undo: rich && rng.IntN(3) == 0}
	d := w.graph(1 + rng.IntN(6))
	if rng.IntN(10) != 0 {
		d["on_error"] = "follow"
	}
	if rng.IntN(8) == 0 {
		d["timeout_ms"] = farMS(rng)
	}
	w.keys(d, "$params.n")
	if rich && rng.IntN(5) == 0 {
		d["finally"] = "last"
		last := object{} // what it gets may hold a stack
		w.exec(last, "echo", "echo", "boom")
		d["nodes"].(object)["last"] = last
	}
	p.definition, _ = json.Marshal(d)
	list := make([]int, rng.IntN(9))
	for i := range list {
		list[i] = rng.IntN(50)
	}
	p.params, _ = json.Marshal(object{"n": rng.IntN(100), "list": list, "text": fmt.Sprint("text ", rng.IntN(100)), "o": object{"x": rng.IntN(9)}})
	return p
}

// plan compiles the play and says how it must end.
func (p *play) plan(limits flow.Limits) (*flow.Plan, error) {
	d, err := define.Parse(p.definition)
	if err != nil {
		return nil, err
	}
	plan, problems := compile.Definition(d, limits)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if p.dag {
		p.want = evaluate(p, 1)
		if p.again && p.want.Status == flow.TaskFailed {
			p.want = evaluate(p, 2)
		}
		return plan, nil
	}
	p.want, err = refer(p, plan, limits)
	return plan, err
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func (w *writer) graph(scenes int) object {
	outer := w.scope
	w.scope = &scopeDraft{nodes: object{}}
	var start string
	var exits []string
	for range scenes {
		s := w.scene()
		if start == "" {
			start = s.first
		}
		for _, from := range exits {
			w.edge(from, "default", s.first)
		}
		exits = s.exits
	}
	g := object{"start": start, "nodes": w.scope.nodes, "edges": w.scope.edges}
	w.scope = outer
	return g
}

func (w *writer) node(n object) string {
	w.names++
	key := fmt.Sprint("n", w.names)
	if w.undo && w.rng.IntN(2) == 0 {
		by := pick(w.rng, "undo", "revoke")
		n["compensate"], w.scope.nodes[by] = by, w.undoing()
	}
	w.scope.nodes[key] = n
	return key
}

// undoneKey is the key of shared that nodes write to which undo others.
const undoneKey = "undone"

// undoing is a node that undoes others.
func (w *writer) undoing() object {
	n := object{}
	retries(n, w.rng.IntN(3), pick(w.rng, 0, 30))
	if w.rng.IntN(3) == 0 {
		n["post"] = object{"output_key": undoneKey}
	}
	w.exec(n, "echo", "echo", "flaky", "boom", "big")
	return n
}

// retries gives an executor more attempts, if any.
func retries(n object, most, pause int) {
	if most > 0 {
		n["max_retries"], n["wait_ms"] = most, pause
	}
}

// retryOf is a retry of so many attempts after the first one.
func retryOf(most, pause int) object {
	return object{"max_attempts": 1 + most, "delay": fmt.Sprint(pause, "ms")}
}

func (w *writer) edge(from, action, to string) {
	w.scope.edges = append(w.scope.edges, object{"from": from, "action": action, "to": to})
}

func (w *writer) scene() scene {
	if !w.rich {
		return w.executor()
	}
	switch w.rng.IntN(14) {
	case 0, 1:
		return w.parallel()
	case 2, 3:
		return w.foreach()
	case 4, 5:
		if w.subflow < 2 {
			return w.nested()
		}
	case 6:
		return w.loop()
	case 7:
		return w.choice()
	case 8:
		return w.timer()
	case 9, 10:
		return w.waiting()
	case 11:
		return w.hanging()
	}
	return w.executor()
}

// alone is a scene of one node.
func (w *writer) alone(n object) scene {
	key := w.node(n)
	return scene{key, []string{key}}
}

func (w *writer) executor() scene {
	n := object{"prep": w.prep(), "post": w.post()}
	w.exec(n, services...)
	w.keys(n, "$params.n", "$input")
	if w.rng.IntN(2) == 0 {
		retries(n, w.rng.IntN(4), pick(w.rng, 0, 20, 500))
	}
	if w.rng.IntN(6) == 0 {
		n["timeout_ms"] = farMS(w.rng)
	}
	key := w.node(n)
	s := scene{key, []string{key}}
	if w.rng.IntN(4) == 0 {
		s = w.fork(s, "error")
	}
	if n["service"] == "route" {
		n["post"].(object)["action_key"] = "action"
		s = w.fork(w.fork(s, "go"), "stop")
	}
	return s
}

// keys are for plays in which much happens.
func (w *writer) keys(n object, refs ...string) {
	if w.rich {
		drawKeys(w.rng, n, refs...)
	}
}

// fork adds a way of its own for an action.
func (w *writer) fork(s scene, action string) scene {
	n := object{"prep": w.prep(), "post": w.post()}
	w.exec(n, "echo", "inc")
	other := w.node(n)
	w.edge(s.first, action, other)
	return scene{s.first, append(s.exits, other)}
}

// exec says how the jobs of a node travel.
func (w *writer) exec(n object, from ...string) {
	service := pick(w.rng, from...)
	n["service"] = service
	switch w.rng.IntN(4) {
	case 0:
		n["exec_type"] = "queue"
	case 3:
		if w.rich {
			n["exec_type"] = "outside"
		}
	case 1:
		n["exec_type"], n["func"] = "local_func", service
	default:
		if w.remote && w.rng.IntN(2) == 0 {
			n["exec_type"] = "remote"
		}
	}
}

func (w *writer) input() string {
	if keys := w.scope.keys; len(keys) > 0 && w.rng.IntN(2) == 0 {
		return pick(w.rng, keys...)
	}
	return pick(w.rng, "$params.n", "$params.list", "$params.text", "$params.o")
}

func (w *writer) prep() object {
	switch w.rng.IntN(5) {
	case 0:
		return object{"input_map": object{"a": "$params.n", "b": w.input()}}
	case 1:
		return object{}
	}
	return object{"input_key": w.input()}
}

func (w *writer) post() object {
	if w.rng.IntN(5) == 0 {
		return object{}
	}
	return object{"output_key": w.key()}
}

func (w *writer) key() string {
	key := pick(w.rng, "k1", "k2", "k3", "k4")
	w.scope.keys = append(w.scope.keys, key)
	return key
}

// units says how many at once, and what their failures mean. Which units ran before a fast failure
// depends on the order of reports.
func (w *writer) units(n object) {
	n["failure_strategy"] = pick(w.rng, "", "", "continue", "fail_fast")
	if w.rng.IntN(4) == 0 {
		n["retry"] = retryOf(w.rng.IntN(3), pick(w.rng, 0, 30))
	}
	if w.rng.IntN(2) == 0 {
		n["parallel_mode"], n["max_parallel"] = "concurrent", w.rng.IntN(4)
		if n["failure_strategy"] == "fail_fast" {
			w.play.loose = true
			n["post"] = object{}
		}
	}
}

func (w *writer) parallel() scene {
	n := object{"kind": "parallel", "prep": w.prep(), "post": w.post()}
	var branches []object
	for range 1 + w.rng.IntN(4) {
		b := object{}
		w.exec(b, services...)
		if w.rng.IntN(3) == 0 {
			b["params"] = object{"extra": w.rng.IntN(3)}
		}
		branches = append(branches, b)
	}
	n["parallel_execs"] = branches
	w.keys(n, "$params.n")
	w.units(n)
	return w.alone(n)
}

func (w *writer) foreach() scene {
	n := object{"kind": "foreach", "prep": object{"input_key": pick(w.rng, "$params.list", "$params.list", w.input())}, "post": w.post()}
	w.exec(n, services...)
	w.keys(n, "$item", "$params.n")
	if w.rng.IntN(3) == 0 {
		n["foreach_execs"] = []object{{"index": 1, "exec_type": "local_func", "func": "odd"}}
	}
	w.units(n)
	return w.alone(n)
}

func (w *writer) nested() scene {
	w.subflow++
	n := object{"kind": "subflow", "post": w.post(), "subflow": w.graph(1 + w.rng.IntN(4))}
	w.subflow--
	strategy := pick(w.rng, "", "", "continue", "retry")
	most, pause := w.rng.IntN(3), pick(w.rng, 0, 30)
	switch {
	case strategy == "retry":
		n["max_retries"], n["wait_ms"] = most, pause
	case strategy == "" && w.rng.IntN(2) == 0:
		n["retry"] = retryOf(most, pause)
	}
	n["failure_strategy"] = strategy
	return w.alone(n)
}

// loop goes back a few times.
func (w *writer) loop() scene {
	w.names++
	count := fmt.Sprint("count", w.names)
	n := object{"prep": object{"input_key": count}, "post": object{"output_key": count}}
	w.exec(n, "inc")
	body := w.node(n)
	again := w.node(object{"kind": "choice", "choice_cases": []object{
		{"action": "again", "expr": object{"lt": []any{"$shared." + count, 1 + w.rng.IntN(4)}}},
	}})
	w.edge(again, "again", body)
	if w.rng.IntN(3) > 0 {
		w.edge(body, "default", again)
		return scene{body, []string{again}}
	}
	ask := w.asks()
	w.edge(body, "default", ask)
	for _, action := range []string{"approved", "default"} {
		w.edge(ask, action, again)
	}
	return scene{body, []string{again}}
}

// asks is a step that is asked in each round of a loop, and takes another signal each time.
func (w *writer) asks() string {
	w.names++
	key := fmt.Sprint("signal", w.names)
	w.play.signals[key] = json.RawMessage(pick(w.rng, `true`, `{"by":"somebody"}`, `7`))
	if w.rng.IntN(2) == 0 {
		return w.node(object{"kind": "wait_event", "params": object{"signal_key": key}})
	}
	return w.node(object{"kind": "approval", "params": object{"approval_key": "$shared." + key}})
}

func (w *writer) choice() scene {
	var when any = object{"gt": []any{"$params.n", w.rng.IntN(100)}}
	if w.rng.IntN(2) == 0 {
		when = pick(w.rng, "params.n > 50", "size(params.text) < 7 && params.list.exists(x, x > 25)", `has(shared.k1) && shared.k1 == "x"`, "input == null || params.o.x % 2 == 0")
	}
	key := w.node(object{"kind": "choice", "prep": w.prep(), "post": w.post(), "choice_cases": []object{
		{"action": "go", "expr": when},
	}})
	return w.fork(scene{key, []string{key}}, "go")
}

func (w *writer) timer() scene {
	return w.alone(object{"kind": "timer", "prep": w.prep(), "post": w.post(), "params": object{"delay_ms": pick(w.rng, 0, 10, 300, 3000, 20_000)}})
}

// waiting is a step that a signal ends, or its clock: never either of them.
func (w *writer) waiting() scene {
	w.names++
	key := fmt.Sprint("signal", w.names)
	if w.rng.IntN(3) == 0 {
		return w.alone(object{"kind": "wait_event", "post": w.post(), "params": object{"signal_key": "$shared." + key, "timeout_ms": pick(w.rng, 50, 2000, 9000)},
			"failure_strategy": pick(w.rng, "", "continue")})
	}
	w.play.signals[key] = json.RawMessage(pick(w.rng, `true`, `"approved"`, `{"by":"somebody"}`, `7`))
	if w.rng.IntN(2) == 0 {
		params := object{"signal_key": "$shared." + key}
		if w.rng.IntN(3) == 0 {
			params["timeout_ms"] = pick(w.rng, farMS(w.rng), 0)
		}
		return w.alone(object{"kind": "wait_event", "post": w.post(), "params": params})
	}
	n := w.node(object{"kind": "approval", "post": w.post(), "params": object{"approval_key": "$shared." + key}})
	return w.fork(scene{n, []string{n}}, "approved")
}

// hanging is a step that nobody ever reports about.
func (w *writer) hanging() scene {
	most, pause := w.rng.IntN(2), pick(w.rng, 0, 50)
	n := object{}
	w.exec(n, hang)
	if w.rng.IntN(3) == 0 {
		n = object{"kind": "parallel", "parallel_execs": []object{n, n}, "parallel_mode": pick(w.rng, "", "concurrent"),
			"retry": retryOf(most, pause)}
	} else {
		retries(n, most, pause)
	}
	n["prep"], n["timeout_ms"] = w.prep(), pick(w.rng, 30, 400, 2500)
	key := w.node(n)
	return w.fork(scene{key, []string{key}}, "error")
}
