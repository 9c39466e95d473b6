package attack

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Attacks by decisions of flows.
var onDecisions = []attack{
	{name: "six endless loops of choices", strike: endlessLoops, busy: true},
	{name: "40 regular expressions on 900 KB", strike: regularExpressions, busy: true},
	{name: "100 comparisons with a list of 950 KB", strike: longComparisons, busy: true},
	{name: "CEL on much data", strike: costlyCEL, busy: true},
	{name: "items times count beyond all numbers", strike: overflows},
	{name: "commands by the thousand", strike: manyCommands},
	{name: "large signals to a task that waits", strike: largeSignals},
}

func endlessLoops(a *attacker) {
	a.publish("loop", `
start: a
nodes:
  a: {kind: choice, default_action: go}
  b: {kind: choice, default_action: go}
edges:
  - {from: a, action: go, to: b}
  - {from: b, action: go, to: a}
`)
	for range 6 {
		a.start("loop", nil)
	}
	pause(a.ctx, time.Duration(a.of(1000, 15_000))*time.Millisecond)
}

// cases returns a choice with many false cases.
func cases(n int, expr func(i int) string) yaml {
	var d strings.Builder
	d.WriteString("start: a\nnodes:\n  a:\n    kind: choice\n    default_action: go\n    choice_cases:\n")
	for i := range n {
		fmt.Fprintf(&d, "      - {action: c%d, expr: %s}\n", i, expr(i))
	}
	d.WriteString("edges:\n  - {from: a, action: go, to: a}\n")
	return yaml(d.String())
}

func regularExpressions(a *attacker) {
	a.publish("matches", cases(40, func(i int) string {
		return fmt.Sprintf(`'params.text.matches("(a|ab|b|ba){%d}c+$")'`, 1+i%8)
	}))
	text := strings.Repeat("ab", 450_000)
	for range a.of(1, 4) {
		a.start("matches", obj{"text": text})
	}
	pause(a.ctx, time.Duration(a.of(500, 10_000))*time.Millisecond)
}

func longComparisons(a *attacker) {
	a.publish("eq", cases(100, func(i int) string { return fmt.Sprintf(`{eq: [$params.list, %d]}`, i) }))
	a.publish("in", cases(100, func(i int) string { return fmt.Sprintf(`{in: ["x%d", $params.list]}`, i) }))
	a.publish("contains", cases(100, func(i int) string { return fmt.Sprintf(`{contains: [$params.list, "y%d"]}`, i) }))
	list := make([]string, 95_000)
	for i := range list {
		list[i] = fmt.Sprintf("%07d", i)
	}
	for range a.of(1, 2) {
		a.start("eq", obj{"list": list})
		a.start("in", obj{"list": list})
		a.start("contains", obj{"list": list})
	}
	pause(a.ctx, time.Duration(a.of(500, 10_000))*time.Millisecond)
}

func costlyCEL(a *attacker) {
	a.publish("cel", cases(40, func(i int) string {
		return fmt.Sprintf(`'params.list.filter(x, x.startsWith("%d")).map(x, x + x).exists(x, params.list.exists(y, x == y))'`, i%10)
	}))
	list := make([]string, 95_000)
	for i := range list {
		list[i] = fmt.Sprintf("%07d", i)
	}
	for range a.of(1, 4) {
		a.start("cel", obj{"list": list})
	}
	pause(a.ctx, time.Duration(a.of(500, 10_000))*time.Millisecond)
}

// overflows request more units than fit into an integer: 64-bit products overflow to few or none.
func overflows(a *attacker) {
	for i, x := range []struct {
		items int
		count string
	}{{16, "1152921504606846976"}, {3, "6148914691236517206"}, {5, "3689348814741910324"}, {2, "9223372036854775807"}, {1, "-1"}} {
		fixed, given := fmt.Sprintf("fixed-%d", i), fmt.Sprintf("given-%d", i)
		unit := "exec_type: queue, service: " + a.name("nobody")
		a.publish(fixed, yaml(fmt.Sprintf("mode: dag\nnodes:\n  u: {%s, each: {items: $run.list, count: %s}}\n", unit, x.count)))
		a.publish(given, yaml(fmt.Sprintf("mode: dag\nnodes:\n  u: {%s, each: {items: $run.list, count: $run.n}}\n", unit)))
		input := obj{"list": make([]int, x.items), "n": json.RawMessage(x.count)}
		a.start(fixed, input)
		a.start(given, input)
	}
	pause(a.ctx, time.Duration(a.of(200, 2000))*time.Millisecond)
}

func manyCommands(a *attacker) {
	a.publish("waits", waits)
	tasks := make([]string, 20)
	for i := range tasks {
		tasks[i] = a.start("waits", nil)
	}
	a.each(a.of(1000, 20_000), a.of(100, 1000), func(i int) {
		path := "/v1/tasks/" + tasks[i%len(tasks)]
		switch i % 4 {
		case 0:
			a.send("POST", path+"/pause", nil)
		case 1:
			a.send("POST", path+"/resume", nil)
		default:
			a.send("POST", path+"/signal", obj{"key": fmt.Sprintf("k%d", i%100), "value": i})
		}
	})
}

func largeSignals(a *attacker) {
	a.publish("waits", waits)
	task := a.start("waits", nil)
	large := strings.Repeat("x", 1_000_000)
	a.each(a.of(8, 200), 4, func(i int) {
		a.send("POST", "/v1/tasks/"+task+"/signal", obj{"key": fmt.Sprintf("k%d", i%20), "value": large})
		a.send("GET", "/v1/tasks/"+task, nil)
		a.send("POST", "/v1/tasks/"+task+"/signal", obj{"key": "tiny", "value": i})
	})
}
