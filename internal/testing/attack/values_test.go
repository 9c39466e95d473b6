package attack

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Attacks by values nested almost as deep as JSON decoders allow: an object that contains one
// exceeds the limit.
var onValues = []attack{
	{name: "nested values by signal", strike: nestedSignals},
	{name: "nested values by start", strike: nestedStarts},
	{name: "nested values by the result of a job", strike: nestedResults},
	{name: "nested values by append and completion", strike: nestedUnits},
	{name: "a loop that nests a value by itself", strike: nestingLoop},
	{name: "times beyond all clocks", strike: farTimes},
}

// depths are around the limits of decoders.
var depths = []int{900, 1100, 5000, 9_990, 9_998, 10_001, 200_000}

func nested(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
}

func nestedObject(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
}

// text returns a body with values too deep to be encoded here.
func text(format string, args ...any) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(format, args...))
}

func nestedSignals(a *attacker) {
	a.publish("waits", waits)
	for _, depth := range depths {
		for _, value := range []json.RawMessage{nested(depth), nestedObject(depth)} {
			task := a.start("waits", nil)
			a.send("POST", "/v1/tasks/"+task+"/signal", text(`{"key":"deep","value":%s}`, value))
			a.send("POST", "/api/tasks/signal", text(`{"task_id":%q,"key":"deeper","value":%s}`, task, value))
		}
	}
}

func nestedStarts(a *attacker) {
	a.publish("waits", waits)
	a.publish("dag", "mode: dag\nnodes:\n  wait: {kind: wait_event, params: {signal_key: $shared.go}}\n")
	for _, depth := range depths {
		a.startWith("waits", text(`{"deep":%s}`, nested(depth)))
		a.startWith("dag", nested(depth))
		a.started("dag", a.send("POST", "/api/flows/"+a.name("dag")+"/runs", text(`{"input":%s}`, nestedObject(depth))))
		params := fmt.Sprintf(`{"deep":%s}`, nestedObject(depth))
		a.started("waits", a.send("POST", "/api/tasks", obj{"flow_version_id": a.flows[a.name("waits")], "params_json": params}))
	}
}

// nestedResults are results of a pull worker.
func nestedResults(a *attacker) {
	service := a.name("deep")
	a.publish("job", yaml(`
start: a
nodes:
  a: {exec_type: queue, service: `+service+`, prep: {input_key: $params.n}, post: {output_key: out, output_map: {part: x}}}
  b: {kind: wait_event, params: {signal_key: $shared.go}}
edges:
  - {from: a, action: default, to: b}
`))
	for n := range depths {
		a.start("job", obj{"n": n})
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		jobs := a.poll(service, len(depths))
		for i, job := range jobs {
			a.send("POST", "/api/queue/complete", text(`{"queue_id":%q,"token":%q,"result":%s}`,
				job.ID, job.Token, nested(depths[i%len(depths)])))
		}
		if len(jobs) == 0 {
			return
		}
	}
}

// poll claims available jobs.
func (a *attacker) poll(service string, most int) []wire.QueueTask {
	var got wire.QueueTasks
	answer := a.urge("POST", "/api/queue/poll", obj{"worker_id": "attacker", "services": []string{service}, "max": most, "wait_ms": 500})
	if !answer.ok() || len(answer.body) == 0 || answer.into(&got) != nil {
		return nil
	}
	return got.Tasks
}

func nestedUnits(a *attacker) {
	a.publish("units", `
mode: dag
nodes:
  m: {kind: map, route: direct}
  d: {route: direct}
`)
	for _, depth := range depths {
		task := a.start("units", json.RawMessage("[1,2,3]"))
		path := "/v1/tasks/" + task
		a.send("POST", path+"/append", text(`{"step":"m","items":[%s]}`, nested(depth)))
		a.send("POST", path+"/complete", text(`{"step":"m","unit":1,"output":%s}`, nestedObject(depth)))
		a.send("POST", path+"/complete", text(`{"step":"d","output":%s}`, nested(depth)))
		a.send("POST", "/api/runs/"+task+"/tasks/complete_direct", text(`{"step":"m","task_index":2,"output":%s}`, nested(depth)))
	}
}

// nestingLoop nests each value in the next one.
func nestingLoop(a *attacker) {
	a.publish("func", `
start: a
nodes:
  a: {exec_type: local_func, func: log_result, prep: {input_map: {a: $shared.o}}, post: {output_key: o}}
edges:
  - {from: a, action: default, to: a}
`)
	a.publish("choice", `
start: a
nodes:
  a: {kind: choice, prep: {input_map: {a: $shared.o}}, post: {output_key: o}, default_action: again}
edges:
  - {from: a, action: again, to: a}
`)
	for range a.of(1, 2) {
		a.start("func", nil)
		a.start("choice", nil)
	}
	pause(a.ctx, time.Duration(a.of(500, 10_000))*time.Millisecond)
}

// farTimes are more milliseconds than some clocks have nanoseconds.
func farTimes(a *attacker) {
	for i, ms := range []string{"10000000000000", "99999999999999", "9223372036854", "9223372036855", "9223372036854775807"} {
		name := fmt.Sprintf("far-%d", i)
		a.publish(name, yaml(fmt.Sprintf(`
start: a
timeout_ms: %[1]s
nodes:
  a: {kind: parallel, parallel_mode: concurrent, parallel_execs: [{service: %[2]s, exec_type: queue}, {service: probe-push, exec_type: push}], timeout_ms: %[1]s}
  t: {kind: timer, params: {delay_ms: %[1]s}}
edges:
  - {from: a, action: default, to: t}
`, ms, a.name("far"))))
		for range a.of(2, 20) {
			a.start(name, nil)
		}
		for _, job := range a.poll(a.name("far"), 10) {
			a.send("POST", "/api/queue/heartbeat", obj{"queue_id": job.ID, "token": job.Token, "extend": 1e300})
			a.send("POST", "/api/queue/complete", wire.QueueComplete{QueueID: job.ID, Token: job.Token, Result: json.RawMessage("1")})
		}
	}
}
