package blackbox

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// Nodes that many checks begin with. once keeps the checks fast, because the profile's default is
// three attempts.
const (
	once  = "retry: {max_attempts: 1}"
	nodeA = "a: {" + once + "}"
	nodeB = "b: {depends_on: [a], " + once + "}"
)

func pgRootIsQueued(c *client) {
	f := c.pgflow(nodeA, nodeB)
	r := f.run(obj{"n": 1})
	a := f.one("a")
	has(c.T, `{"run":{"n":1}}`, a["input"])
	has(c.T, `{"n":1}`, a["flow_input"])
	require.Equal(c, []any{f.slug, r.id, 0.0, 1.0, 60.0}, []any{a["flow_slug"], a["run_id"], a["task_index"], a["attempt"], a["timeout"]})
	run, steps := r.states()
	r.matches(run, steps, "started", "a started", "b created")
	require.Equal(c, 2.0, run["remaining_steps"])
	require.Equal(c, 1.0, steps["b"]["remaining_deps"])
	require.Equal(c, []any{1.0, nil}, []any{steps["b"]["initial_tasks"], steps["b"]["remaining_tasks"]})
}

func pgChain(c *client) {
	f := c.pgflow(nodeA, nodeB)
	r := f.run(obj{"n": 1})
	f.work("a", 5)
	r.is("started", "a completed", "b started")
	b := f.one("b")
	has(c.T, `{"run":{"n":1},"a":5}`, b["input"])
	f.done(b, 6)
	run, _ := r.states()
	has(c.T, `{"b":6}`, run["output"])
	require.Equal(c, []any{"completed", 0.0}, []any{run["status"], run["remaining_steps"]})
}

func pgShapeDeps(c *client) {
	f := c.pgflowWith("input_shape: deps", nodeA, nodeB)
	f.run(obj{"n": 1})
	a := f.one("a")
	has(c.T, `{"n":1}`, a["input"])
	f.done(a, 5)
	has(c.T, `{"a":5}`, f.one("b")["input"])
}

func pgJoinWaits(c *client) {
	f := c.pgflow(nodeA, "b: {"+once+"}", "c: {depends_on: [a, b], "+once+"}")
	r := f.run(obj{})
	got := f.poll("a", "b")
	f.done(got["a"], 1)
	f.nothing()
	r.is("started", "c created")
	f.done(got["b"], 2)
	has(c.T, `{"run":{},"a":1,"b":2}`, f.one("c")["input"])
}

// pgRetries also checks the times of retries, by the engine's clock.
func pgRetries(c *client) {
	f := c.pgflow("a: {retry: {max_attempts: 3, delay: 1, backoff: exponential}}")
	r := f.run(obj{})
	task := f.one("a")
	waits := []time.Duration{2 * time.Second, 4 * time.Second}
	for attempt := range waits {
		require.Equal(c, "queued", f.fail(task, "no")["status"])
		row := r.tasks("a")[0]
		require.Equal(c, []any{"queued", float64(attempt + 1), "error", "no"},
			[]any{row["status"], row["attempts_count"], row["failure_reason"], row["error_message"]})
		task = f.one("a")
		require.Equal(c, float64(attempt+2), task["attempt"])
	}
	ended, started := r.told("attempt_ended"), r.told("attempts_dispatched")
	for attempt, wait := range waits {
		require.Equal(c, wait, c.between(ended[attempt]["at"], ended[attempt]["due_at"]))
		require.GreaterOrEqual(c, c.between(ended[attempt]["due_at"], started[attempt+1]["at"]), time.Duration(0))
	}
	require.Equal(c, "failed", f.fail(task, "never")["status"])
	r.is("failed", "a failed task_error")
	row := r.tasks("a")[0]
	require.Equal(c, []any{"failed", 3.0, "error", "never"},
		[]any{row["status"], row["attempts_count"], row["failure_reason"], row["error_message"]})
}

func pgFailureEndsTheRun(c *client) {
	f := c.pgflow(nodeA, "x: {"+once+"}")
	r := f.run(obj{})
	got := f.poll("a", "x")
	f.fail(got["a"], "no")
	before, steps := r.states()
	r.matches(before, steps, "failed", "a failed task_error", "x started")
	require.Nil(c, before["output"])
	late := f.done(got["x"], 1)
	require.Equal(c, []any{false, "started"}, []any{late["changed"], late["status"]})
	after, _ := r.states()
	require.Equal(c, before, after)
}

func pgTimeouts(c *client) {
	one := c.pgflow("a: {timeout: 3, " + once + "}")
	two := c.pgflow("a: {timeout: 3, retry: {max_attempts: 2, delay: 1, backoff: exponential}}")
	r, again := one.run(obj{}), two.run(obj{})
	first := one.one("a")
	require.Equal(c, 1.0, two.one("a")["attempt"])
	second := two.one("a")
	require.Equal(c, 2.0, second["attempt"])
	r.is("failed", "a failed task_timeout")
	require.Equal(c, "timeout", r.tasks("a")[0]["failure_reason"])
	require.Equal(c, []any{0.0, 2.0}, []any{second["task_index"], again.tasks("a")[0]["attempts_count"]})
	require.Equal(c, false, one.done(first, 1)["changed"])
}

func pgStartDelay(c *client) {
	f := c.pgflow("a: {start_delay: 2, " + once + "}")
	r := f.run(obj{})
	r.is("started", "a started")
	require.Equal(c, "queued", r.tasks("a")[0]["status"])
	f.one("a")
	entered, started := r.told("step_entered")[0], r.told("attempts_dispatched")[0]
	require.Equal(c, 2*time.Second, c.between(entered["at"], entered["until"]))
	require.GreaterOrEqual(c, c.between(entered["until"], started["at"]), time.Duration(0))
}

func pgNoTaskTwice(c *client) {
	f := c.pgflow("f: {kind: map, " + once + "}")
	items := make([]int, 100)
	f.run(items)
	var mu sync.Mutex
	var workers sync.WaitGroup
	seen := map[any]int{}
	note := func(tasks []any) (all bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, task := range tasks {
			seen[task.(obj)["task_index"]]++
		}
		return len(seen) == len(items)
	}
	end := time.Now().Add(deadline)
	for range 2 {
		workers.Go(func() {
			for all := false; !all && time.Now().Before(end); {
				answer, err := postJSON(f.url()+"/api/queue/poll", obj{"worker_id": "w", "flow": f.slug, "max": 7, "wait_ms": 200})
				if err != nil {
					return
				}
				tasks, _ := answer["tasks"].([]any)
				all = note(tasks)
			}
		})
	}
	workers.Wait()
	require.Len(c, seen, 100)
	f.nothing()
	for index, times := range seen {
		require.Equal(c, 1, times, "task %v", index)
	}
}
