package blackbox

import (
	"time"

	"github.com/stretchr/testify/require"
)

// pgSkippedMaps have no items.
func pgSkippedMaps(c *client) {
	const p = "p: {when: {if: {run: {go: 1}}}, skip_mode: optional, " + once + "}"
	r := c.pgflow(p, "m: {kind: map, depends_on: [p], "+once+"}", "n: {kind: map, depends_on: [m], route: direct}").run(obj{})
	r.is("completed", "p skipped condition_unmet", "m completed", "n completed")
	has(c.T, `{"n":[]}`, r.first["run"].(obj)["output"])

	f := c.pgflow("p: {on_exhausted: skip, "+once+"}", "m: {kind: map, depends_on: [p], "+once+"}")
	r = f.run(obj{})
	f.fail(f.one("p"), "boom")
	r.is("completed", "p skipped handler_failed", "m completed")

	r = c.pgflow("B: {kind: branch, when: {if: {run: {go: 1}}}, skip_mode: optional, flow: {mode: dag, nodes: {x: {"+once+"}}}}",
		"m: {kind: foreach, depends_on: [B], each: {items: $deps.B.rows}, "+once+"}").run(obj{})
	r.is("completed", "B skipped dependency_skipped", "m completed")
}

// pgAnyOrder completes units of a work list in an arbitrary order.
func pgAnyOrder(c *client) {
	complete := func(r *pgRun, unit int) {
		done := r.do("/tasks/complete_direct", obj{"step": "f", "task_index": unit, "output": unit})
		require.Equal(c, []any{true, "completed", float64(unit)}, []any{done["changed"], done["status"], done["output"]}, "unit %d", unit)
	}
	r := c.pgflow("f: {kind: map, route: direct, each: {concurrency: 2}}").run([]int{0, 1, 2, 3, 4})
	complete(r, 4)
	require.Equal(c, []any{5.0}, r.do("/tasks/append", obj{"step": "f", "item": "more"})["task_indexes"])
	for _, unit := range []int{5, 3, 0, 2, 1} {
		r.is("started", "f started")
		complete(r, unit)
	}
	r.is("completed", "f completed")

	list := make([]int, 2_001) // one more than the units of a step in flight
	r = c.pgflow("f: {kind: map, route: direct}").run(list)
	complete(r, 2_000)
	again := r.do("/tasks/complete_direct", obj{"step": "f", "task_index": 2_000, "output": "no"})
	require.Equal(c, []any{false, "completed", 2000.0}, []any{again["changed"], again["status"], again["output"]})
}

// pgAfterCancel completes the work that a cancel has left in flight.
func pgAfterCancel(c *client) {
	f := c.pgflow("a: {route: direct}", "b: {depends_on: [a], "+once+"}")
	r := f.run(obj{})
	r.do("/cancel", nil)
	done := r.do("/tasks/complete_direct", obj{"step": "a", "task_index": 0, "output": 7})
	require.Equal(c, []any{true, "completed", 7.0}, []any{done["changed"], done["status"], done["output"]})
	_, steps := r.states()
	require.Equal(c, []any{"completed", 7.0, "created"}, []any{steps["a"]["status"], steps["a"]["output"], steps["b"]["status"]})
	require.Equal(c, []any{"completed"}, values(r.tasks("a"), "status"))
	f.nothing()
	again := r.do("/tasks/complete_direct", obj{"step": "a", "task_index": 0, "output": 8})
	require.Equal(c, []any{false, "completed", 7.0}, []any{again["changed"], again["status"], again["output"]})
}

// pgDirectTimeout checks the timeout of a step that is never completed.
func pgDirectTimeout(c *client) {
	r := c.pgflow("b: {route: direct, timeout: 0.2}").run(obj{})
	require.Eventually(c, func() bool {
		run, _ := r.states()
		return run["status"] == "failed"
	}, deadline, 10*time.Millisecond)
	r.is("failed", "b failed task_timeout")
}

// pgWithdrawn checks a step withdrawn by fail_fast: in pgflow it stays started, in /v1 it has
// ended.
func pgWithdrawn(c *client) {
	f := c.pgflow(nodeA, "x: {route: direct}", "m: {route: direct, each: {count: 2}}", "b: {depends_on: [x], "+once+"}")
	r := f.run(obj{})
	f.fail(f.one("a"), "boom")
	r.is("failed", "a failed task_error", "x started", "m started", "b created")

	v1 := &client{T: c.T, server: c.server}
	task := v1.get("/v1/tasks/" + r.id)
	has(c.T, `{"created":1,"started":0,"completed":0,"failed":1,"skipped":2}`, task["counts"])
	for _, step := range objects(c, v1.get("/v1/tasks/" + r.id + "/steps")["items"]) {
		switch step["node"] {
		case "x", "m":
			require.Equal(c, []any{"skipped", "withdrawn", task["ended_at"]}, []any{step["state"], step["reason"], step["ended_at"]})
			require.NotNil(c, step["entered_at"])
		case "b":
			require.Equal(c, "created", step["state"])
		}
	}
	require.Equal(c, []any{"canceled", "canceled"}, values(objects(c, v1.get("/v1/tasks/" + r.id + "/units?step=m")["items"]), "state"))
}
