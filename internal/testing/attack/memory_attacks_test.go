package attack

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Attacks that are bounded in number and large in bytes.
var onMemory = []attack{
	{name: "lists of tasks of 1 MB", strike: heavyLists},
	{name: "streams that nobody reads over a long journal", strike: deafStreams},
	{name: "readers of a task with 64 MB shared", strike: heavyReads},
	{name: "lists of tasks with 40 MB shared", strike: heaviestLists},
	{name: "followers of a task with 64 MB shared", strike: heavyFollowers},
	{name: "outputs of 1 MB each", strike: heavyOutputs},
	{name: "a fan-out of many small outputs", strike: manyOutputs},
	{name: "answers that nobody reads", strike: unreadAnswers},
}

const megabyte = 1_000_000

func heavyLists(a *attacker) {
	a.publish("waits", waits)
	pad := strings.Repeat("p", megabyte)
	a.each(a.of(10, 300), 4, func(int) { a.start("waits", obj{"pad": pad}) })
	a.atOnce(a.of(2, 4), func(_ int) {
		for _, path := range []string{"/api/tasks?page_size=1000&flow_version_id=" +
			a.flows[a.name("waits")], "/v1/tasks?limit=500&flow=" + a.name("waits"),
			"/api/tasks?page_size=500"} {
			a.send("GET", path, nil)
		}
	})
}

// heavy creates a task with shared values and a journal of the given size.
func (a *attacker) heavy(megabytes int) (task string) {
	if a.flows[a.name("waits")] == "" {
		a.publish("waits", waits)
	}
	task = a.start("waits", nil)
	pad := strings.Repeat("p", megabyte)
	a.each(megabytes, 2, func(i int) {
		a.urge("POST", "/v1/tasks/"+task+"/signal", obj{"key": fmt.Sprintf("k%d", i), "value": pad})
	})
	return task
}

func deafStreams(a *attacker) {
	task := a.heavy(a.of(4, 54))
	for i := range a.of(16, 40) {
		switch i % 4 {
		case 0, 1:
			a.deaf(a.head("GET", "/v1/tasks/"+task+"/stream", "Accept: text/event-stream"))
		case 2:
			a.deaf(a.head("GET", "/api/runs/"+task+"/events", "Accept: text/event-stream"))
		case 3:
			if conn := a.deaf(a.head("GET", "/v1/ws", "Connection: Upgrade", "Upgrade: websocket",
				"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")); conn != nil {
				// it may be closed
				_, _ = conn.Write(frame(fmt.Sprintf(`{"subscribe":{"channel":"task:%s"}}`, task)))
			}
		}
	}
	pause(a.ctx, time.Duration(a.of(500, 10_000))*time.Millisecond)
}

func heavyReads(a *attacker) {
	task := a.heavy(a.of(5, 62))
	a.each(a.of(8, 24), 8, func(i int) {
		a.send("GET", []string{"/v1/tasks/" + task, "/api/tasks/get?id=" + task, "/api/runs/" + task + "?view=states&tasks=true"}[i%3], nil)
	})
	a.each(a.of(4, 12), 4, func(int) { a.send("GET", "/v1/tasks/"+task+"/events?limit=500", nil) })
}

// heaviestLists list a few tasks, each larger than the memory limit of a list.
func heaviestLists(a *attacker) {
	for range a.of(3, 8) {
		a.heavy(a.of(2, 40))
	}
	a.atOnce(a.of(2, 6), func(int) {
		for _, path := range []string{"/api/tasks?page_size=100&flow_version_id=" +
			a.flows[a.name("waits")], "/v1/tasks?limit=500&flow=" + a.name("waits")} {
			a.send("GET", path, nil)
		}
	})
}

// heavyFollowers wait for a waiting task and do not read the answers.
func heavyFollowers(a *attacker) {
	task := a.heavy(a.of(5, 62))
	for range a.of(4, 40) {
		a.deaf(a.head("GET", "/v1/tasks/"+task+"?wait_ms=300"))
		a.deaf(a.head("GET", "/api/runs/"+task+"/wait?timeout_ms=60000"))
		a.deaf(a.head("GET", "/api/runs/"+task+"/events", "Accept: text/event-stream"))
	}
	pause(a.ctx, time.Duration(a.of(500, 10_000))*time.Millisecond)
}

func heavyOutputs(a *attacker) {
	service := a.name("heavy")
	a.publish("fan", yaml(fmt.Sprintf(`
start: each
nodes:
  each: {kind: foreach, exec_type: queue, service: %s, parallel_mode: concurrent, prep: {input_key: $params.list}, post: {output_key: out}}
  next: {kind: wait_event, prep: {input_key: out}, params: {signal_key: $shared.go}}
edges:
  - {from: each, action: default, to: next}
`, service)))
	task := a.start("fan", obj{"list": make([]int, a.of(12, 540))})
	out, _ := json.Marshal(strings.Repeat("o", megabyte)) // encoding a string cannot fail
	a.workOff(service, out, 4, time.Duration(a.of(4, 45))*time.Second)
	a.send("GET", "/v1/tasks/"+task+"/units?step=each&limit=500", nil)
	a.send("GET", "/v1/tasks/"+task+"/runs?limit=500", nil)
}

func manyOutputs(a *attacker) {
	service := a.name("many")
	a.publish("fan", yaml(fmt.Sprintf(`
mode: dag
nodes:
  list: {exec_type: queue, service: %s}
  each: {depends_on: [list], each: {items: $deps.list}, exec_type: local_func, func: log_result}
`, service)))
	task := a.start("fan", obj{})
	items := make([]string, a.of(2000, 50_000))
	for i := range items {
		items[i] = fmt.Sprintf("%016d", i)
	}
	list, _ := json.Marshal(items) // encoding strings cannot fail
	a.workOff(service, list, 1, 2*time.Second)
	for deadline := time.Now().Add(time.Duration(a.of(1, 20)) * time.Second); time.Now().Before(deadline) && a.ctx.Err() == nil; {
		a.atOnce(4, func(i int) {
			a.send("GET", "/v1/tasks/"+task+[]string{"/units?step=each&limit=1", "/steps?limit=1", "/runs?limit=1", ""}[i], nil)
		})
	}
}

// unreadAnswers request large answers and do not read them. The member finally cuts them off.
func unreadAnswers(a *attacker) {
	task := a.heavy(a.of(4, 40))
	service := a.name("unread")
	a.publish("fan", yaml(fmt.Sprintf(`
start: each
nodes:
  each: {kind: foreach, exec_type: queue, service: %s, parallel_mode: concurrent, prep: {input_key: $params.list}}
`, service)))
	a.start("fan", obj{"list": make([]int, 100), "pad": strings.Repeat("p", 900_000)})
	// encoding cannot fail
	poll, _ := json.Marshal(obj{"worker_id": "deaf", "services": []string{service}, "max": 10, "wait_ms": 1000})
	for i := range a.of(8, 24) {
		if i%2 == 0 {
			a.deaf(a.head("GET", "/v1/tasks/"+task+"?wait_ms=100"))
			continue
		}
		a.deaf(a.head("POST", "/api/queue/poll", fmt.Sprintf("Content-Length: %d", len(poll))) + string(poll))
	}
	pause(a.ctx, time.Duration(a.of(500, 10_000))*time.Millisecond)
}
