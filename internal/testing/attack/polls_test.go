package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Attacks by polls and workers.
var onPolls = []attack{
	{name: "a poll that names 12,000 services", strike: widePolls(12_000, 4)},
	{name: "polls that name as much as they may", strike: widePolls(1000, 50)},
	{name: "names of 1 MB", strike: longNames},
	{name: "a poll for 1e9 jobs", strike: greedyPoll},
	{name: "jobs whose params are large", strike: heavyJobs},
	{name: "completions of jobs that others have", strike: falseCompletions},
}

// words returns words of the maximal length.
func words(n int, begin string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%0*d", begin, 256-len(begin), i)
	}
	return list
}

// widePolls come from clients that hang up at once.
func widePolls(services, clients int) func(*attacker) {
	return func(a *attacker) {
		short := make([]string, services)
		for i := range short {
			short[i] = fmt.Sprintf("s%d", i)
		}
		bodies := []obj{
			{"worker_id": "wide", "services": short, "wait_ms": 30_000},
			{"worker_id": "wide", "services": short, "max": 5, "wait_ms": 30_000},
			{"worker_id": "wide", "services": words(min(services, 1000), "s"),
				"labels": words(min(services, 1000), "l"), "max": 5, "wait_ms": 30_000},
		}
		a.each(a.of(clients, 10*clients), clients, func(i int) {
			ctx, hangUp := context.WithTimeout(a.ctx, 200*time.Millisecond)
			defer hangUp()
			if i%4 == 3 {
				a.sendWithin(ctx, "POST", "/v1/workers/wide/poll",
					wire.PollRequest{JobRequest: wire.JobRequest{Services: short, Max: 5}, WaitMS: 30_000})
				return
			}
			a.sendWithin(ctx, "POST", "/api/queue/poll", bodies[i%len(bodies)])
		})
	}
}

func longNames(a *attacker) {
	long := strings.Repeat("n", 1<<20)
	for range a.of(1, 5) {
		a.send("POST", "/api/workers/register",
			obj{"id": a.name("long"), "url": "http://127.0.0.1:1", "services": []string{long},
				"labels": []string{long}})
		a.send("POST", "/api/workers/register", obj{"id": long, "url": "http://127.0.0.1:1", "services": []string{"x"}})
		a.send("POST", "/api/queue/poll", obj{"worker_id": long, "services": []string{long},
			"labels": []string{long}, "max": 1, "wait_ms": 100})
		a.send("POST", "/api/queue/poll", obj{"worker_id": "x", "flow": long, "wait_ms": 100})
		a.send("POST", "/api/flows", obj{"name": long})
		a.send("POST", "/v1/flows", obj{"definition": obj{"name": long, "start": "a", "nodes": obj{"a": obj{"kind": "choice"}}}})
		a.send("POST", "/v1/flows", obj{"slug": long, "definition": obj{"name": "x", "start": "a",
			"nodes": obj{"a": obj{"kind": "choice"}}}})
		a.send("PUT", "/v1/flows/"+long, yaml(waits))
		a.send("POST", "/api/flows/"+long+"/ensure", obj{"definition": obj{}})
		a.send("POST", "/v1/tasks", obj{"flow": long})
		a.send("GET", "/v1/tasks/"+long[:50_000], nil)
		a.publish("service", yaml("start: a\nnodes:\n  a: {exec_type: queue, service: "+long+"}\n"))
		a.start("service", nil)
		a.publish("node", yaml("start: "+long+"\nnodes:\n  "+long+": {kind: choice}\n"))
		a.start("node", nil)
	}
}

// greedyPoll asks for all jobs.
func greedyPoll(a *attacker) {
	service := a.name("greedy")
	units := a.of(40, 300)
	a.publish("fan", yaml(fmt.Sprintf(`
start: each
nodes:
  each: {kind: foreach, exec_type: queue, service: %s, parallel_mode: concurrent, prep: {input_key: $params.list}}
`, service)))
	a.start("fan", obj{"list": make([]int, units), "pad": strings.Repeat("p", 900_000)})
	pause(a.ctx, 300*time.Millisecond)
	a.atOnce(4, func(int) {
		got := a.send("POST", "/api/queue/poll",
			obj{"worker_id": "greedy", "services": []string{service}, "max": 1_000_000_000, "wait_ms": 1000})
		if more := a.send("POST", "/v1/workers/greedy/poll",
			wire.PollRequest{JobRequest: wire.JobRequest{Services: []string{service}, Max: 1000},
				WaitMS: 1000}); more.size > got.size {
			got = more
		}
		const bound = 64 << 20
		if got.size > bound {
			a.hole("a poll was answered with %d MB", got.size>>20)
		}
	})
}

// heavyJobs each carry the params of their task.
func heavyJobs(a *attacker) {
	service := a.name("heavy")
	a.publish("fan", yaml(fmt.Sprintf(`
start: each
nodes:
  each: {kind: foreach, exec_type: queue, service: %s, parallel_mode: concurrent, prep: {input_key: $params.list}}
`, service)))
	a.start("fan", obj{"list": make([]int, a.of(300, 10_000))})
	a.start("fan", obj{"list": make([]string, a.of(200, 2000)), "pad": strings.Repeat("p", 100_000)})
	a.workOff(service, json.RawMessage("1"), 4, time.Duration(a.of(1, 15))*time.Second)
}

// workOff carries out the jobs of a service until none are left, for a limited time.
func (a *attacker) workOff(service string, result json.RawMessage, workers int, most time.Duration) {
	deadline := time.Now().Add(most)
	a.atOnce(workers, func(int) {
		for time.Now().Before(deadline) && a.ctx.Err() == nil {
			jobs := a.poll(service, 50)
			for _, job := range jobs {
				a.send("POST", "/api/queue/complete", wire.QueueComplete{QueueID: job.ID, Token: job.Token, Result: result})
			}
			if len(jobs) == 0 {
				return
			}
		}
	})
}

// falseCompletions must not complete a job of another worker.
func falseCompletions(a *attacker) {
	service := a.name("mine")
	a.publish("job", yaml(fmt.Sprintf("start: a\nnodes:\n  a: {exec_type: queue, service: %s, post: {output_key: out}}\n", service)))
	task := a.start("job", nil)
	jobs := a.poll(service, 1)
	if task == "" || len(jobs) == 0 {
		return
	}
	a.each(a.of(50, 1000), 20, func(i int) {
		got := a.send("POST", "/api/queue/complete", wire.QueueComplete{QueueID: jobs[0].ID,
			Token: fmt.Sprintf("guess-%d", i), Result: json.RawMessage(`"stolen"`)})
		if got.ok() {
			a.hole("a completion with a guessed token was taken: %v", got)
		}
	})
	job := strings.TrimPrefix(jobs[0].ID, "q-")
	a.each(a.of(50, 1000), 20, func(i int) {
		guess := fmt.Sprintf("guess-%d", i)
		for path, body := range map[string]any{
			"/v1/jobs/" + job + "/complete": wire.JobOutput{Token: guess, Output: json.RawMessage(`"stolen"`)},
			"/v1/jobs/" + job + "/fail":     wire.JobFailure{Token: guess, Error: "stolen"},
			"/v1/jobs/" + job + "/claim":    wire.ClaimJob{Worker: "thief", Token: guess},
		} {
			if got := a.send("POST", path, body); got.ok() {
				a.hole("%s with a guessed token was taken: %v", path, got)
			}
		}
		stolen := wire.JobReport{Job: job, Token: guess, Output: json.RawMessage(`"stolen"`)}
		a.send("POST", "/v1/workers/thief/reports", wire.JobReports{Reports: []wire.JobReport{stolen, stolen}})
		a.send("POST", "/v1/workers/thief/release", wire.ReleaseClaims{Claims: []wire.HeldJob{{Job: job, Token: guess}}})
	})
	a.urge("POST", "/api/queue/complete", wire.QueueComplete{QueueID: jobs[0].ID, Token: jobs[0].Token, Result: json.RawMessage(`"done"`)})
	if got := a.urge("GET", "/v1/tasks/"+task, nil); got.ok() && strings.Contains(string(got.body), "stolen") {
		a.hole("a job was completed by a stranger: %v", got)
	}
}
