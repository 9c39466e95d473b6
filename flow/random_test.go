package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// object is a piece of a random definition.
type object map[string]any

// randomDefinition draws a flow of any kinds of nodes. It may loop; a limit of steps ends it then.
func randomDefinition(d dice) string {
	flow := randomGraph(d, 0)
	if chance(d, 60) {
		flow = randomDag(d, 0)
	} else if chance(d, 10) {
		flow["on_error"] = "fail"
	}
	randomFinally(d, flow)
	if chance(d, 10) {
		flow["timeout_ms"] = 2_000
	}
	b, err := json.Marshal(flow)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// dice decide. Those of rapid shrink a failure, those of bytes let a fuzzer see what it does.
type dice interface {
	pick(what string, n int) int // 0..n-1
}

type rapidDice struct{ *rapid.T }

func (r rapidDice) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(r.T, what) }

type byteDice struct{ left []byte }

func (b *byteDice) pick(_ string, n int) int {
	if len(b.left) == 0 {
		return 0
	}
	first := b.left[0]
	b.left = b.left[1:]
	return int(first) % n
}

func chance(d dice, percent int) bool { return d.pick("chance", 100) < percent }

func oneOf[T any](d dice, what string, from ...T) T { return from[d.pick(what, len(from))] }

func between(d dice, what string, low, high int) int { return low + d.pick(what, high-low+1) }

func randomGraph(d dice, depth int) object {
	keys := []string{"a", "b", "c/d#1", "e%", "f"}[:between(d, "nodes", 1, 5-depth)]
	nodes := object{}
	var edges []object
	for _, from := range keys {
		nodes[from] = randomNode(d, depth)
		for _, action := range []string{"default", "go", "error", "approved", "rejected"} {
			if chance(d, 35) {
				edges = append(edges, object{"from": from, "action": action, "to": oneOf(d, "to", slices.Concat(keys, []string{""})...)})
			}
		}
	}
	randomUndo(d, nodes, keys)
	return object{"start": keys[0], "nodes": nodes, "edges": edges}
}

func randomNode(d dice, depth int) object {
	kinds := []Kind{KindExecutor, KindExecutor, KindChoice, KindParallel, KindForeach, KindTimer, KindWaitEvent, KindApproval, KindSubflow, KindSubflow}
	kind := oneOf(d, "kind", kinds...)
	if kind == KindSubflow && depth == 2 {
		kind = KindExecutor
	}
	n := object{"kind": kind, "prep": randomPrep(d), "post": randomPost(d, kind)}
	if chance(d, 10) {
		n["on_error"] = "fail"
	}
	switch kind {
	case KindExecutor:
		n["max_retries"] = oneOf(d, "retries", 0, 0, 2)
		n["wait_ms"] = oneOf(d, "wait_ms", 0, 100)
		randomExec(d, n)
	case KindParallel:
		randomParallel(d, n)
	case KindForeach:
		n["prep"] = object{"input_key": oneOf(d, "list", "$params.list", "$params.list", "out", "$params.val")}
		n["foreach_execs"] = []object{{"index": 1, "exec_type": "local_func", "func": "f", "params": object{"mul": 9}}}
		randomWindow(d, n)
		randomExec(d, n)
	case KindSubflow:
		if chance(d, 30) {
			n["flow"] = randomDag(d, depth+1)
		} else {
			n["subflow"] = randomGraph(d, depth+1)
		}
		n["failure_strategy"] = oneOf(d, "strategy", "", "continue", "retry")
		n["max_retries"], n["wait_ms"] = between(d, "retries", 0, 3), oneOf(d, "wait_ms", 0, 100)
		n["timeout_ms"] = oneOf(d, "timeout", 0, 0, 700)
	default:
		randomWait(d, kind, n)
	}
	return n
}

func randomExec(d dice, n object) {
	n["service"] = oneOf(d, "service", "mul", "boom", "odd", "third", "route", "params", "echo")
	n["exec_type"] = oneOf(d, "exec", "", "queue", "queue")
	n["timeout_ms"] = oneOf(d, "timeout", 0, 0, 500)
}

func randomWindow(d dice, n object) {
	n["parallel_mode"] = oneOf(d, "mode", "", "concurrent", "concurrent")
	n["max_parallel"] = between(d, "max_parallel", 0, 3)
	n["failure_strategy"] = oneOf(d, "strategy", "", "continue", "fail_fast")
}

func randomParallel(d dice, n object) {
	randomWindow(d, n)
	randomExec(d, n)
	delete(n, "service")
	switch between(d, "branches", 0, 3) {
	case 0:
		n["parallel_services"] = []string{"mul", "odd", "odd", "echo"}
	case 1:
		n["parallel_execs"] = []object{{"service": "mul", "params": object{"mul": 3}}, {"service": "boom", "exec_type": "queue"}, {"service": "third"}}
	case 2:
		n["params"] = object{"services": []any{"echo", 1, "params"}}
	}
}

func randomWait(d dice, kind Kind, n object) {
	params := object{}
	switch kind {
	case KindTimer:
		params["delay_ms"] = oneOf[any](d, "delay", 0, 200, "x")
	case KindWaitEvent:
		params["signal_key"] = oneOf(d, "signal", "$shared.flag", "flag", "$params.text", "")
		params["timeout_ms"] = oneOf(d, "timeout", 0, 300)
		n["failure_strategy"] = oneOf(d, "strategy", "", "continue", "retry")
	case KindApproval:
		params["approval_key"] = oneOf(d, "approval", "$shared.flag", "verdict", "$params.val")
		n["timeout_ms"] = oneOf(d, "timeout", 0, 400)
	case KindChoice:
		n["default_action"] = oneOf(d, "default", "", "go")
		n["choice_cases"] = []object{{"action": "approved", "expr": object{"gt": []any{"$params.val", 2}}}, {"action": "go", "expr": oneOf[any](d, "expr", object{"exists": "$shared.out"},
			"has(shared.out) && shared.out != null", "params.val + params.nope > 1", "size(input) > 2", "params.list.exists(x, x == 3)")}}
	}
	n["params"] = params
}

func randomPrep(d dice) object {
	switch between(d, "prep", 0, 3) {
	case 0:
		return object{"input_key": oneOf(d, "input", "$params.val", "$params.list[1]", "out", "$shared.flag", "$params.", "$shared.")}
	case 1:
		return object{"input_map": object{"x": "$params.text", "y": "lit", "z": oneOf(d, "nested", "$shared.out.x", "$shared.out")}}
	}
	return object{}
}

func randomPost(d dice, kind Kind) object {
	p := object{"output_key": oneOf(d, "output", "", "out", "flag"), "action_static": oneOf(d, "static", "", "", "go"),
		"action_key": oneOf(d, "action_key", "", "action", "signal", "approval")}
	if kind == KindExecutor && chance(d, 20) {
		p["output_map"] = object{"out": "x", "verdict": "action"}
	}
	return p
}

const randomParams = `{"val": 3, "list":[1, 2, 3,{"x": 4}], "text":"h\u00e9 <&>\u2028", "big": 12345678901234567890, "action":"go"}`

// paramsFor are what a task of a plan begins with.
func paramsFor(p *Plan) json.RawMessage {
	if p.Root.Dag != nil && p.Root.Dag.RootMap != "" {
		return json.RawMessage(`[1, {"x": 2},null, 3]`)
	}
	return json.RawMessage(randomParams)
}

// randomCommand draws what may happen to a task next: also what is late, repeated or nonsense.
func (tb *table) randomCommand(d dice) (string, Command) {
	request := oneOf(d, "request", "", "", "r1", "r2")
	switch between(d, "command", 0, 18) {
	case 0:
		return request, Pause{}
	case 1:
		return request, Resume{}
	case 2:
		if chance(d, 40) {
			return request, Cancel{Gently: chance(d, 60), Force: chance(d, 20)}
		}
		return request, Start{}
	case 3, 4:
		key, value := oneOf(d, "key", "flag", "verdict", "out", "_rt", ""), oneOf(d, "value", `true`, `false`, `"go"`, `null`, ` {"x" : [1 ]}`, `0`, `[4 ,5]`, `[{"x": 6}]`, `[[[[{"x":[1]}]]]]`, `[[[[[[[]]]]]]]`)
		return request, Signal{Key: key, Value: json.RawMessage(value)}
	case 5:
		return request, Claim{Address: tb.randomAddress(d), Worker: oneOf(d, "worker", "w1", "w2"), Token: tb.token(d), Until: tb.env.Now + 150}
	case 6:
		return request, Extend{Address: tb.randomAddress(d), Worker: oneOf(d, "worker", "w1", "w2"), Token: tb.token(d), Until: tb.env.Now + 150}
	case 7:
		return request, GiveBack{Address: tb.randomAddress(d), Token: tb.token(d)}
	case 8:
		return request, Note{Address: tb.randomAddress(d), Text: oneOf(d, "note", "running", "\xff", strings.Repeat("x", 300))}
	case 9:
		if chance(d, 20) {
			return request, FailStep{Address: tb.randomAddress(d), Error: "crashed"}
		}
		return request, Proceed{Waits: chance(d, 50)}
	case 10:
		if chance(d, 30) {
			return request, Leave{}
		}
		return request, Begin{tb.randomAddress(d)}
	case 11:
		kind := AlarmKind(between(d, "alarm", 0, 9))
		return request, Ring{Alarm{At: tb.env.Now, Address: tb.randomAddress(d), Kind: kind}}
	case 12:
		return request, RetryTask{}
	case 13:
		items := []json.RawMessage{json.RawMessage(`7`), nil, json.RawMessage(`{"x": [ 1]}`)}[:between(d, "items", 0, 3)]
		return request, Append{Address: tb.randomFanout(d), Items: items, Route: oneOf(d, "route", "", "", "push", "queue", "direct")}
	case 14:
		return request, tb.finishDirectly(tb.randomAddress(d), oneOf(d, "direct", "", "", "no"))
	}
	if chance(d, 20) {
		var all Reports
		for range between(d, "reports", 0, 6) {
			all = append(all, tb.randomReport(d))
		}
		return request, all
	}
	return request, tb.randomReport(d)
}

// randomReport is mostly that of a job in flight.
func (tb *table) randomReport(d dice) Report {
	r := Report{Address: tb.randomAddress(d), Token: tb.token(d), Fatal: chance(d, 10), TimedOut: chance(d, 10)}
	if job, ok := tb.jobs[r.Address]; ok && chance(d, 70) {
		return carryOut(job)
	}
	r.Output = json.RawMessage(oneOf(d, "result", ``, `null`, `1`, `{"action": "go", "x":[1, 2]}`, `{"x":[[[[[]]]]]}`, `"`+strings.Repeat("y", 3000)+`"`))
	r.Error = oneOf(d, "error", "", "", "boom \xff<\u2028>", strings.Repeat("z", 100))
	return r
}

func (tb *table) token(d dice) string { return oneOf(d, "token", "", "", "t1", "t2") }

// randomAddress is mostly that of a job in flight, else one nearby or a nonsense one.
func (tb *table) randomAddress(d dice) Address {
	var known []Address
	for _, e := range tb.events {
		known = append(known, e.Address())
	}
	if open := append(tb.open(), tb.direct()...); len(open) > 0 && chance(d, 75) {
		return oneOf(d, "open", open...)
	}
	if len(known) > 0 && chance(d, 70) {
		return oneOf(d, "known", known[max(0, len(known)-20):]...)
	}
	return Address{Scope: oneOf(d, "scope", "", "a#1", "x/y"), Node: oneOf(d, "node", "a", "b", "nope"),
		Visit: between(d, "visit", -1, 2), Unit: between(d, "unit", -1, 9), Attempt: between(d, "attempt", -1, 2)}
}

// randomFanout is a step that takes further units, if there is one.
func (tb *table) randomFanout(d dice) Address {
	for _, st := range tb.state.Active() {
		if st.Node.Kind == KindFanout && chance(d, 80) {
			return st.Address()
		}
	}
	return tb.randomAddress(d)
}

// happen makes something happen: a command, time, an alarm out of turn, a crash.
func (tb *table) happen(d dice, i int) {
	switch between(d, "what", 0, 9) {
	case 0:
		tb.wait(int64(between(d, "ms", 0, 250)))
	case 1:
		if len(tb.alarms) > 0 { // also before its time
			tb.ring(between(d, "alarm", 0, len(tb.alarms)-1))
		}
	case 2:
		if chance(d, 40) {
			tb.crash(fmt.Sprintf("m%d", i+2), oneOf[int64](d, "visibility", 0, 400))
		}
	default:
		tb.ask(tb.randomCommand(d))
	}
}

// drain lets the world do its duty until the task ends: jobs are carried out, alarms ring, signals come.
func (tb *table) drain() bool {
	if tb.state.Paused() && !tb.state.Status.Ended() {
		tb.do(Resume{})
	}
	for range 400 {
		if tb.state.Status.Ended() {
			return true
		}
		before := len(tb.events)
		tb.work()
		for _, a := range tb.direct() {
			tb.do(tb.finishDirectly(a, ""))
		}
		tb.wait(1_000)
		if len(tb.events) == before {
			tb.do(Signal{Key: "flag", Value: json.RawMessage(`true`)})
			tb.do(Signal{Key: "verdict", Value: json.RawMessage(`"yes"`)})
			tb.giveUp()
		}
	}
	return tb.state.Status.Ended()
}

// giveUp cancels a task in which somebody waits for what nobody can send.
func (tb *table) giveUp() {
	for _, w := range Waiting(tb.state) {
		if strings.Contains(w.Text, "$params.") {
			tb.do(Cancel{Force: true})
			return
		}
	}
}

// orderedEvents says that what belongs to an attempt lies between its beginning and its end.
func orderedEvents(events []Event) error {
	var started []Address
	for i := range events {
		e := &events[i]
		switch e.Type {
		case AttemptsStarted:
			for u := e.Unit; u < e.Unit+e.Total; u++ {
				a := e.Address()
				a.Unit = u
				if slices.Contains(started, a) {
					return fmt.Errorf("attempt %s was started twice", a)
				}
				started = append(started, a)
			}
		case AttemptBegun, AttemptClaimed, AttemptExtended, AttemptNoted, AttemptReturned, AttemptEnded:
			if !slices.Contains(started, e.Address()) {
				return fmt.Errorf("%s of attempt %s, which was not started", e.Type, e.Address())
			}
		}
	}
	return nil
}
