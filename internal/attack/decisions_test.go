package attack

import (
	"fmt"
	"strings"
	"time"
)

// What flows can have a member decide.
var onDecisions = []attack{
	{name: "CEL on much data", strike: costlyCEL, busy: true},
	{name: "commands by the thousand", strike: manyCommands},
	{name: "large signals to a task that waits", strike: largeSignals},
}

// cases is a choice of many cases that are all false.
func cases(n int, expr func(i int) string) yaml {
	var d strings.Builder
	d.WriteString("start: a\nnodes:\n  a:\n    kind: choice\n    default_action: go\n    choice_cases:\n")
	for i := range n {
		fmt.Fprintf(&d, "      - {action: c%d, expr: %s}\n", i, expr(i))
	}
	d.WriteString("edges:\n  - {from: a, action: go, to: a}\n")
	return yaml(d.String())
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
