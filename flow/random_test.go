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
func randomDefinition(rt *rapid.T) string {
	d := randomGraph(rt, 0)
	if chance(rt, 10) {
		d["timeout_ms"] = 2_000
	}
	if chance(rt, 10) {
		d["on_error"] = "fail"
	}
	b, err := json.Marshal(d)
	if err != nil {
		rt.Fatal(err)
	}
	return string(b)
}

func chance(rt *rapid.T, percent int) bool { return rapid.IntRange(0, 99).Draw(rt, "chance") < percent }

func oneOf[T any](rt *rapid.T, name string, from ...T) T {
	return rapid.SampledFrom(from).Draw(rt, name)
}

func randomGraph(rt *rapid.T, depth int) object {
	keys := []string{"a", "b", "c/d#1", "e%", "f"}[:rapid.IntRange(1, 5-depth).Draw(rt, "nodes")]
	nodes := object{}
	var edges []object
	for _, from := range keys {
		nodes[from] = randomNode(rt, depth)
		for _, action := range []string{"default", "go", "error", "approved", "rejected"} {
			if chance(rt, 35) {
				edges = append(edges, object{"from": from, "action": action, "to": oneOf(rt, "to", slices.Concat(keys, []string{""})...)})
			}
		}
	}
	return object{"start": keys[0], "nodes": nodes, "edges": edges}
}

func randomNode(rt *rapid.T, depth int) object {
	kinds := []Kind{KindExecutor, KindExecutor, KindChoice, KindParallel, KindForeach, KindTimer, KindWaitEvent, KindApproval, KindSubflow, KindSubflow}
	kind := oneOf(rt, "kind", kinds...)
	if kind == KindSubflow && depth == 2 {
		kind = KindExecutor
	}
	n := object{"kind": kind, "prep": randomPrep(rt), "post": randomPost(rt, kind)}
	if chance(rt, 10) {
		n["on_error"] = "fail"
	}
	switch kind {
	case KindExecutor:
		n["max_retries"] = oneOf(rt, "retries", 0, 0, 2)
		n["wait_ms"] = oneOf(rt, "wait_ms", 0, 100)
		randomExec(rt, n)
	case KindParallel:
		randomParallel(rt, n)
	case KindForeach:
		n["prep"] = object{"input_key": oneOf(rt, "list", "$params.list", "$params.list", "out", "$params.val")}
		n["foreach_execs"] = []object{{"index": 1, "exec_type": "local_func", "func": "f", "params": object{"mul": 9}}}
		randomWindow(rt, n)
		randomExec(rt, n)
	case KindSubflow:
		n["subflow"] = randomGraph(rt, depth+1)
		n["failure_strategy"] = oneOf(rt, "strategy", "", "continue", "retry")
		n["max_retries"], n["wait_ms"] = rapid.IntRange(0, 3).Draw(rt, "retries"), oneOf(rt, "wait_ms", 0, 100)
		n["timeout_ms"] = oneOf(rt, "timeout", 0, 0, 700)
	default:
		randomWait(rt, kind, n)
	}
	return n
}

func randomExec(rt *rapid.T, n object) {
	n["service"] = oneOf(rt, "service", "mul", "boom", "odd", "third", "route", "params", "echo")
	n["exec_type"] = oneOf(rt, "exec", "", "queue", "queue")
	n["timeout_ms"] = oneOf(rt, "timeout", 0, 0, 500)
}

func randomWindow(rt *rapid.T, n object) {
	n["parallel_mode"] = oneOf(rt, "mode", "", "concurrent", "concurrent")
	n["max_parallel"] = rapid.IntRange(0, 3).Draw(rt, "max_parallel")
	n["failure_strategy"] = oneOf(rt, "strategy", "", "continue", "fail_fast")
}

func randomParallel(rt *rapid.T, n object) {
	randomWindow(rt, n)
	randomExec(rt, n)
	delete(n, "service")
	switch rapid.IntRange(0, 3).Draw(rt, "branches") {
	case 0:
		n["parallel_services"] = []string{"mul", "odd", "odd", "echo"}
	case 1:
		n["parallel_execs"] = []object{{"service": "mul", "params": object{"mul": 3}}, {"service": "boom", "exec_type": "queue"}, {"service": "third"}}
	case 2:
		n["params"] = object{"services": []any{"echo", 1, "params"}}
	}
}

func randomWait(rt *rapid.T, kind Kind, n object) {
	params := object{}
	switch kind {
	case KindTimer:
		params["delay_ms"] = oneOf[any](rt, "delay", 0, 200, "x")
	case KindWaitEvent:
		params["signal_key"] = oneOf(rt, "signal", "$shared.flag", "flag", "$params.text", "")
		params["timeout_ms"] = oneOf(rt, "timeout", 0, 300)
		n["failure_strategy"] = oneOf(rt, "strategy", "", "continue", "retry")
	case KindApproval:
		params["approval_key"] = oneOf(rt, "approval", "$shared.flag", "verdict", "$params.val")
		n["timeout_ms"] = oneOf(rt, "timeout", 0, 400)
	case KindChoice:
		n["default_action"] = oneOf(rt, "default", "", "go")
		n["choice_cases"] = []object{{"action": "approved", "expr": object{"gt": []any{"$params.val", 2}}}, {"action": "go", "expr": object{"exists": "$shared.out"}}}
	}
	n["params"] = params
}

func randomPrep(rt *rapid.T) object {
	switch rapid.IntRange(0, 3).Draw(rt, "prep") {
	case 0:
		return object{"input_key": oneOf(rt, "input", "$params.val", "$params.list[1]", "out", "$shared.flag", "$params.", "$shared.")}
	case 1:
		return object{"input_map": object{"x": "$params.text", "y": "lit", "z": "$shared.out.x"}}
	}
	return object{}
}

func randomPost(rt *rapid.T, kind Kind) object {
	p := object{"output_key": oneOf(rt, "output", "", "out", "flag"), "action_static": oneOf(rt, "static", "", "", "go"),
		"action_key": oneOf(rt, "action_key", "", "action", "signal", "approval")}
	if kind == KindExecutor && chance(rt, 20) {
		p["output_map"] = object{"out": "x", "verdict": "action"}
	}
	return p
}

const randomParams = `{"val": 3, "list":[1, 2, 3,{"x": 4}], "text":"h\u00e9 <&>\u2028", "big": 12345678901234567890, "action":"go"}`

// randomCommand draws what may happen to a task next: also what is late, repeated or nonsense.
func (tb *table) randomCommand(rt *rapid.T) (string, Command) {
	request := oneOf(rt, "request", "", "", "r1", "r2")
	switch rapid.IntRange(0, 13).Draw(rt, "command") {
	case 0:
		return request, Pause{}
	case 1:
		return request, Resume{}
	case 2:
		if chance(rt, 10) {
			return request, Cancel{}
		}
		return request, Start{}
	case 3, 4:
		key, value := oneOf(rt, "key", "flag", "verdict", "out", "_rt", ""), oneOf(rt, "value", `true`, `false`, `"go"`, `null`, ` {"x" : [1 ]}`, `0`)
		return request, Signal{Key: key, Value: json.RawMessage(value)}
	case 5:
		return request, Claim{Address: tb.randomAddress(rt), Worker: oneOf(rt, "worker", "w1", "w2"), Token: tb.token(rt), Until: tb.env.Now + 150}
	case 6:
		return request, Extend{Address: tb.randomAddress(rt), Worker: oneOf(rt, "worker", "w1", "w2"), Token: tb.token(rt), Until: tb.env.Now + 150}
	case 7:
		return request, GiveBack{Address: tb.randomAddress(rt), Token: tb.token(rt)}
	case 8:
		return request, Note{Address: tb.randomAddress(rt), Text: oneOf(rt, "note", "running", "\xff", strings.Repeat("x", 300))}
	case 9:
		if chance(rt, 20) {
			return request, FailStep{Address: tb.randomAddress(rt), Error: "crashed"}
		}
		return request, Proceed{}
	case 10:
		kind := AlarmKind(rapid.IntRange(0, 7).Draw(rt, "alarm"))
		return request, Ring{Alarm{At: tb.env.Now, Address: tb.randomAddress(rt), Kind: kind}}
	}
	r := Report{Address: tb.randomAddress(rt), Token: tb.token(rt), Fatal: chance(rt, 10), TimedOut: chance(rt, 10)}
	if job, ok := tb.jobs[r.Address]; ok && chance(rt, 70) {
		return request, carryOut(job)
	}
	r.Output = json.RawMessage(oneOf(rt, "result", ``, `null`, `1`, `{"action": "go", "x":[1, 2]}`, `"`+strings.Repeat("y", 3000)+`"`))
	r.Error = oneOf(rt, "error", "", "", "boom \xff<\u2028>", strings.Repeat("z", 100))
	return request, r
}

func (tb *table) token(rt *rapid.T) string { return oneOf(rt, "token", "", "", "t1", "t2") }

// randomAddress is mostly that of a job in flight, else one nearby or a nonsense one.
func (tb *table) randomAddress(rt *rapid.T) Address {
	var known []Address
	for _, e := range tb.events {
		known = append(known, e.Address())
	}
	if open := tb.open(); len(open) > 0 && chance(rt, 75) {
		return oneOf(rt, "open", open...)
	}
	if len(known) > 0 && chance(rt, 70) {
		return oneOf(rt, "known", known[max(0, len(known)-20):]...)
	}
	return Address{Scope: oneOf(rt, "scope", "", "a#1", "x/y"), Node: oneOf(rt, "node", "a", "b", "nope"),
		Visit: rapid.IntRange(-1, 2).Draw(rt, "visit"), Unit: rapid.IntRange(-1, 9).Draw(rt, "unit"), Attempt: rapid.IntRange(-1, 2).Draw(rt, "attempt")}
}

// happen makes something happen: a command, time, an alarm out of turn, a crash.
func (tb *table) happen(rt *rapid.T, i int) {
	switch rapid.IntRange(0, 9).Draw(rt, "what") {
	case 0:
		tb.wait(int64(rapid.IntRange(0, 250).Draw(rt, "ms")))
	case 1:
		if len(tb.alarms) > 0 { // also before its time
			tb.ring(rapid.IntRange(0, len(tb.alarms)-1).Draw(rt, "alarm"))
		}
	case 2:
		if chance(rt, 40) {
			tb.crash(fmt.Sprintf("m%d", i+2))
		}
	default:
		tb.ask(tb.randomCommand(rt))
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
		tb.wait(1_000)
		if len(tb.events) == before {
			tb.do(Signal{Key: "flag", Value: json.RawMessage(`true`)})
			tb.do(Signal{Key: "verdict", Value: json.RawMessage(`"yes"`)})
		}
	}
	return tb.state.Status.Ended()
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
		case AttemptClaimed, AttemptExtended, AttemptNoted, AttemptReturned, AttemptEnded:
			if !slices.Contains(started, e.Address()) {
				return fmt.Errorf("%s of attempt %s, which was not started", e.Type, e.Address())
			}
		}
	}
	return nil
}
