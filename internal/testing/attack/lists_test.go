package attack

import (
	"fmt"
	"time"
)

// Attacks on long histories.
var onLists = []attack{
	{name: "pages of a task of many steps", strike: longHistories, busy: true},
	{name: "flows deleted while others read them", strike: deletions},
}

func longHistories(a *attacker) {
	a.publish("loop", `
start: a
nodes:
  a: {kind: choice, default_action: go}
edges:
  - {from: a, action: go, to: a}
`)
	task := a.start("loop", nil)
	pause(a.ctx, time.Duration(a.of(500, 15_000))*time.Millisecond)
	a.send("POST", "/v1/tasks/"+task+"/pause", nil)
	a.each(a.of(8, 64), 8, func(i int) {
		a.send("GET", "/v1/tasks/"+task+[]string{"/runs?limit=1", "/steps?limit=1", "/events?limit=500", "/runs?limit=500"}[i%4], nil)
	})
}

// deletions delete flows with their tasks while they are read and worked on.
func deletions(a *attacker) {
	for round := range a.of(5, 60) {
		slug := fmt.Sprintf("%s_%d", a.name("gone"), round)
		if got := a.urge("POST", "/api/flows/"+slug+"/ensure",
			obj{"definition": obj{"profile": "pgflow",
				"nodes": obj{"a": obj{}, "m": obj{"kind": "map", "route": "direct"}}}}); !got.ok() {
			continue
		}
		runs := make([]string, 3)
		for i := range runs {
			runs[i] = a.urge("POST", "/api/flows/"+slug+"/runs", obj{"input": []int{1, 2, 3}}).task()
		}
		a.atOnce(13, func(i int) {
			run := runs[i%len(runs)]
			switch i % 4 {
			case 0:
				a.send("GET", "/api/runs/"+run+"?view=states&tasks=true", nil)
			case 1:
				a.send("POST", "/api/runs/"+run+"/tasks/complete_direct", obj{"step": "m", "task_index": i % 3, "output": 1})
			case 2:
				a.send("GET", "/v1/tasks/"+run+"/runs", nil)
			case 3:
				a.send("POST", "/api/queue/poll", obj{"worker_id": "x", "flow": slug, "max": 5, "wait_ms": 1})
			}
			if i == 12 {
				a.send("DELETE", "/api/flows/"+slug+"?data=true", nil)
			}
		})
		a.urge("DELETE", "/api/flows/"+slug+"?data=true", nil)
	}
}
