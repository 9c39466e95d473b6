package blackbox

import (
	"fmt"

	"github.com/stretchr/testify/require"
)

const directD = "d: {depends_on: [a], route: direct}"

func pgDirect(c *client) {
	f := c.pgflow(nodeA, directD, "e: {depends_on: [d], "+once+"}")
	r := f.run(obj{})
	f.work("a", 1)
	r.is("started", "d started", "e created")
	require.Equal(c, []any{"queued"}, values(r.tasks("d"), "status"))
	require.Equal(c, []any{"array"}, values(r.tasks("d"), "origin"))
	has(c.T, `{"run":{},"a":1}`, r.tasks("d")[0]["input"])
	f.nothing()
	done := r.do("/tasks/complete_direct", obj{"step": "d", "task_index": 0, "output": "yes"})
	require.Equal(c, []any{true, "completed", "yes"}, []any{done["changed"], done["status"], done["output"]})
	has(c.T, `{"run":{},"d":"yes"}`, f.one("e")["input"])
}

func pgDirectTwice(c *client) {
	f := c.pgflow(nodeA, directD, "e: {depends_on: [d], "+once+"}", "g: {depends_on: [a], route: direct}")
	r := f.run(obj{})
	status, answer := r.ask("/tasks/complete_direct", obj{"step": "d", "output": 1})
	require.Equal(c, 409, status, "it has not begun: %v", answer)
	f.work("a", 1)
	body := obj{"step": "d", "task_index": 0, "output": "yes"}
	r.do("/tasks/complete_direct", body)
	body["output"] = "no"
	again := r.do("/tasks/complete_direct", body)
	require.Equal(c, []any{false, "completed", "yes"}, []any{again["changed"], again["status"], again["output"]})
	for _, path := range []string{"/tasks/complete", "/tasks/complete_direct"} {
		step := map[string]string{"/tasks/complete": "d", "/tasks/complete_direct": "e"}[path]
		status, answer := r.ask(path, obj{"step": step, "output": 1})
		require.Equal(c, 409, status, "%s %v", path, answer)
		require.Equal(c, "conflict", answer["error"])
	}
	require.Equal(c, "failed", r.do("/tasks/fail", obj{"step": "g", "error_message": "refused"})["status"])
	r.is("failed", "g failed task_error")
	status, _ = r.ask("/tasks/complete_direct", obj{"step": "nobody"})
	require.Equal(c, 404, status)
}

// pgByStep ends tasks identified by step and index.
func pgByStep(c *client) {
	f := c.pgflow(nodeA, nodeB)
	r := f.run(obj{})
	waits := r.do("/tasks/complete", obj{"step": "a", "output": 1})
	require.Equal(c, []any{false, "queued"}, []any{waits["changed"], waits["status"]}, "nobody has it")
	f.one("a")
	done := r.do("/tasks/complete", obj{"step": "a", "task_index": 0, "output": 1})
	require.Equal(c, []any{true, "completed", 1.0, "w"}, []any{done["changed"], done["status"],
		done["attempts_count"], done["last_worker_id"]})
	late := r.do("/tasks/fail", obj{"step": "a", "error_message": "late"})
	require.Equal(c, []any{false, "completed", 1.0}, []any{late["changed"], late["status"], late["output"]})
	f.one("b")
	failed := r.do("/tasks/fail", obj{"step": "b", "error_message": "slow", "reason": "timeout"})
	require.Equal(c, []any{"failed", "timeout", "slow"}, []any{failed["status"], failed["failure_reason"], failed["error_message"]})
	r.is("failed", "b failed task_timeout")
}

func pgPause(c *client) {
	f := c.pgflow(nodeA, nodeB, "g: {kind: map, depends_on: [a], "+once+"}")
	r := f.run(obj{})
	a := f.one("a")
	paused := r.do("/pause", nil)["run"].(obj)
	require.Equal(c, []any{"started", nil}, []any{paused["status"], paused["resumed_at"]}, "paused is no status")
	require.NotNil(c, paused["paused_at"])
	require.Equal(c, "started", c.get("/runs/" + r.id + "/wait?status=paused")["run"].(obj)["status"])
	r.do("/pause", nil)
	f.done(a, []int{1, 2})
	f.nothing()
	r.is("started", "a completed", "b created", "g created")
	resumed := r.do("/resume", nil)["run"].(obj)
	require.Equal(c, "started", resumed["status"])
	require.NotNil(c, resumed["paused_at"])
	require.NotNil(c, resumed["resumed_at"])
	r.do("/resume", nil)
	for _, task := range f.all(3) {
		r.do("/pause", nil)
		f.done(task, 1)
	}
	r.ended("completed", `{"b":1,"g":[1,1]}`)
	for _, what := range []string{"/pause", "/resume", "/cancel"} {
		status, answer := r.ask(what, nil)
		require.Equal(c, 409, status, "%v", answer)
	}

	f = c.pgflow("a: {retry: {max_attempts: 2, delay: 1, backoff: fixed}}", nodeB)
	r = f.run(obj{})
	a = f.one("a")
	r.do("/pause", nil)
	f.fail(a, "once")
	f.work("a", 1) // it is retried
	f.nothing()
	r.is("started", "a completed", "b created")
}

func pgCancel(c *client) {
	f := c.pgflow(nodeA, nodeB, "g: {each: {items: $run}, "+once+"}")
	r := f.run([]int{1})
	got := f.poll("a", "g")
	cancelled := r.do("/cancel", nil)["run"].(obj)
	require.Equal(c, "started", cancelled["status"], "nor is cancelled")
	require.NotNil(c, cancelled["cancelled_at"])
	r.do("/cancel", nil)
	status, _ := r.ask("/tasks/append", obj{"step": "g", "item": 2})
	require.Equal(c, 409, status)
	require.Equal(c, true, f.done(got["a"], 1)["changed"])
	f.fail(got["g"], "for good")
	run, steps := r.states()
	r.matches(run, steps, "started", "a completed", "b created")
	require.NotNil(c, run["cancelled_at"])
	require.Equal(c, []any{nil, nil, nil}, []any{run["completed_at"], run["failed_at"], run["output"]})
	f.nothing()
	for _, what := range []string{"/resume", "/pause"} {
		status, answer := r.ask(what, nil)
		require.Equal(c, 409, status, "%v", answer)
	}
	r.do("/cancel", nil)
}

func pgExhausted(c *client) {
	f := c.pgflow("a: {on_exhausted: skip, "+once+"}", "c: {depends_on: [a], "+once+"}")
	r := f.run(obj{})
	f.fail(f.one("a"), "gave up")
	_, steps := r.states()
	require.Equal(c, []any{"skipped", "handler_failed", "gave up"},
		[]any{steps["a"]["status"], steps["a"]["skip_reason"], steps["a"]["error_message"]})
	require.Equal(c, "failed", r.tasks("a")[0]["status"])
	has(c.T, `{"run":{}}`, f.one("c")["input"])

	m := c.pgflow("m: {kind: map, on_exhausted: skip, "+once+"}", "z: {"+once+"}")
	r = m.run([]int{1, 2})
	got := map[any]obj{}
	for _, task := range m.all(3) {
		if task["step_slug"] == "m" {
			got[task["task_index"]] = task
		}
	}
	m.fail(got[0.0], "no")
	before, before2 := r.states()
	late := m.done(got[1.0], 1)
	require.Equal(c, false, late["changed"])
	after, after2 := r.states()
	require.Equal(c, []any{before, before2}, []any{after, after2})
	r.matches(after, after2, "started", "m skipped handler_failed")
}

// pgDeleted also checks that no client gets anything of a deleted flow.
func pgDeleted(c *client) {
	f := c.pgflow(nodeA)
	held := f.run(obj{})
	task := f.one("a")
	f.run(obj{})
	status, answer := c.call("DELETE", "/flows/"+f.slug, nil)
	require.Equal(c, 400, status, "%v", answer)
	status, answer = c.call("DELETE", "/flows/"+f.slug+"?data=true", nil)
	require.Equal(c, 200, status)
	require.Equal(c, 2.0, answer.(obj)["deleted_runs"])
	for _, gone := range []func() (int, any){
		func() (int, any) { return c.call("GET", "/runs/"+held.id, nil) },
		func() (int, any) { return c.call("POST", "/queue/complete", obj{"id": task["id"], "result": 1}) },
		func() (int, any) { return c.call("POST", "/flows/"+f.slug+"/runs", obj{"input": 1}) },
		func() (int, any) { return c.call("POST", "/queue/poll", obj{"worker_id": "w", "flow": f.slug}) },
		func() (int, any) { return c.call("DELETE", "/flows/"+f.slug+"?data=true", nil) },
	} {
		status, answer := gone()
		require.Equal(c, 404, status, "%v", answer)
	}
	status, answer = c.call("POST", "/flows/"+f.slug+"/ensure", obj{"definition": pgDefinition(c, "", nodeA)})
	require.Equal(c, 200, status)
	require.Equal(c, "compiled", answer.(obj)["status"])
}

// pgHeartbeat checks that a claim lasts as long as the poller requests. Without a heartbeat it
// expires, in order of the claims.
func pgHeartbeat(c *client) {
	var task obj
	var f *pgFlow
	// until there is enough time to extend the claim
	for timeout, inTime := 1, false; !inTime; timeout *= 4 {
		f = c.pgflow(fmt.Sprintf("a: {heartbeat_timeout: %d, %s}", timeout, once))
		f.run(obj{})
		task = f.all(1)[0]
		inTime = len(c.post("/queue/heartbeat", obj{"id": task["id"], "extend": 3600})["canceled"].([]any)) == 0
	}
	silent := f.run(obj{})
	f.all(1)
	c.get("/runs/" + silent.id + "/wait?status=failed")
	require.Equal(c, true, f.done(task, 1)["changed"])
	require.Equal(c, []any{task["id"]}, c.post("/queue/heartbeat", obj{"id": task["id"]})["canceled"])
}

// pgGraphInside has a branch with a subflow in graph mode, in a scope of its own.
func pgGraphInside(c *client) {
	f := c.pgflow("B: {kind: branch, flow: {start: x, result: out, nodes: {x: {exec_type: queue, service: s, post: {output_key: out}}, "+
		"y: {exec_type: queue, service: s}}, edges: [{from: x, action: default, to: y}]}}", "z: {depends_on: [B], "+once+"}")
	r := f.run(obj{})
	x := f.one("B/x")
	byID := f.done(x, 5)
	require.Equal(c, []any{true, "B/x", "completed"}, []any{byID["changed"], byID["step_slug"], byID["status"]})
	again := f.done(x, 6)
	require.Equal(c, []any{false, "B/x", "completed", 5.0, 1.0, "w"},
		[]any{again["changed"], again["step_slug"], again["status"], again["output"],
			again["attempts_count"], again["last_worker_id"]})

	f.one("B/y")
	byStep := r.do("/tasks/complete", obj{"step": "B/y", "output": 7})
	require.Equal(c, []any{true, "B/y"}, []any{byStep["changed"], byStep["step_slug"]})
	has(c.T, `{"run":{},"B":5}`, f.one("z")["input"])
	late := r.do("/tasks/fail", obj{"step": "B/y", "error_message": "late"})
	require.Equal(c, []any{false, "completed", 7.0}, []any{late["changed"], late["status"], late["output"]})
}
