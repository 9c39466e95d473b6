package blackbox

import (
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
)

// fanF is a fanout with items from a handler.
const fanF = "f: {each: {items: {service: items}}, " + once + "}"

// fan starts a run with a fanout over these items.
func (c *client) fan(items any, more ...string) *pgRun {
	c.Helper()
	f := c.pgflow(append([]string{fanF}, more...)...)
	r := f.run(obj{})
	f.work("prep:f", items)
	return r
}

func pgFanout(c *client) {
	f := c.pgflow(fanF)
	r := f.run(obj{})
	prep := f.one("prep:f")
	has(c.T, `{"run":{}}`, prep["input"])
	r.is("started", "prep:f started", "f created")
	f.done(prep, []any{10, nil, 30})
	got := f.units("f", 3)
	has(c.T, `[10,null,30]`, []any{got[0]["input"], got[1]["input"], got[2]["input"]})
	require.Equal(c, []any{"array", "array", "array"}, values(r.tasks("f"), "origin"))
	require.Equal(c, []any{"started", "started", "started"}, values(r.tasks("f"), "status"))
}

func pgOutputsInOrder(c *client) {
	r := c.fan([]any{10, nil, 30})
	got := r.units("f", 3)
	r.done(got[2], "c")
	r.done(got[0], "a")
	_, steps := r.states()
	require.Equal(c, []any{"started", 1.0, 3.0}, []any{steps["f"]["status"], steps["f"]["remaining_tasks"], steps["f"]["initial_tasks"]})
	r.done(got[1], "b")
	_, steps = r.states()
	has(c.T, `["a","b","c"]`, steps["f"]["output"])
	require.Equal(c, 0.0, steps["f"]["remaining_tasks"])
	r.ended("completed", `{"f":["a","b","c"]}`)
}

func pgItemsMustBeAnArray(c *client) {
	r := c.fan(obj{})
	r.is("failed", "prep:f completed", "f failed preprocessing_error")
	require.Empty(c, r.tasks("f"))

	f := c.pgflow(fanF)
	failed := f.run(obj{})
	f.fail(f.one("prep:f"), "no")
	failed.is("failed", "prep:f failed preprocessing_error", "f failed preprocessing_error")
	require.Empty(c, failed.tasks("f"))
}

func pgEmptyFanout(c *client) {
	r := c.fan([]any{}, "c: {depends_on: [f], "+once+"}")
	_, steps := r.states()
	require.Equal(c, []any{"completed", []any{}, 0.0, 0.0}, []any{steps["f"]["status"], steps["f"]["output"],
		steps["f"]["initial_tasks"], steps["f"]["remaining_tasks"]})
	require.NotNil(c, steps["f"]["started_at"])
	require.Equal(c, steps["f"]["completed_at"], steps["f"]["started_at"], "it starts and ends at once")
	has(c.T, `{"run":{},"f":[]}`, r.one("c")["input"])
	for _, e := range r.events(5) {
		require.NotEqual(c, "step:f:started", e.name)
	}
}

func pgOneTaskIsTriedAgain(c *client) {
	f := c.pgflow("f: {kind: map, retry: {max_attempts: 2, delay: 1, backoff: exponential}}")
	r := f.run([]int{1, 2, 3})
	got := f.units("f", 3)
	f.fail(got[1], "once")
	f.done(got[0], "a")
	f.done(got[2], "c")
	r.is("started", "f started")
	again := f.one("f")
	require.Equal(c, []any{1.0, 2.0}, []any{again["task_index"], again["attempt"]})
	f.done(again, "b")
	r.ended("completed", `{"f":["a","b","c"]}`)
	require.Equal(c, []any{1.0, 2.0, 1.0}, values(r.tasks("f"), "attempts_count"))
}

func pgAppend(c *client) {
	r := c.fan([]any{10, nil, 30})
	status, answer := r.ask("/tasks/append", obj{"step": "f", "item": 40})
	require.Equal(c, 201, status)
	require.Equal(c, obj{"task_indexes": []any{3.0}}, answer)
	_, steps := r.states()
	require.Equal(c, []any{4.0, 3.0}, []any{steps["f"]["remaining_tasks"], steps["f"]["initial_tasks"]})
	require.Equal(c, "appended", r.tasks("f")[3]["origin"])
	require.Equal(c, []any{4.0, 5.0}, r.do("/tasks/append", obj{"step": "f", "items": []any{50, nil}, "route": "queue"})["task_indexes"])
	for i, task := range r.units("f", 6) {
		r.done(task, i)
	}
	r.ended("completed", `{"f":[0,1,2,3,4,5]}`)
}

func pgAppendIsRefused(c *client) {
	f := c.pgflow(fanF, "s: {"+once+"}", "d: {route: direct, each: {items: $run}}")
	r := f.run([]int{1})
	for want, body := range map[int][]obj{
		409: {{"step": "f", "item": 1}, {"step": "s", "item": 1}, {"step": "d", "item": 1, "route": "queue"}},
		201: {{"step": "d", "item": 2}, {"step": "d", "item": nil}},
		404: {{"step": "nobody", "item": 1}},
		400: {{"item": 1}, {"step": "d"}, {"step": "d", "item": 1, "items": []int{}}},
	} {
		for _, b := range body {
			status, answer := r.ask("/tasks/append", b)
			require.Equal(c, want, status, "%v: %v", b, answer)
		}
	}
	f.done(f.poll("prep:f", "s")["prep:f"], []any{})
	status, answer := r.ask("/tasks/append", obj{"step": "f", "item": 1})
	require.Equal(c, 409, status)
	require.Equal(c, "conflict", answer["error"])
}

// pgAppendRace repeatedly appends an item while the last task is completed. Either the step stays
// open for it, or the append is rejected.
func pgAppendRace(c *client) {
	f := c.pgflow("f: {kind: map, timeout: 3600, " + once + "}")
	const rounds = 200
	runs := map[any]*pgRun{}
	for range rounds {
		r := f.run([]int{1})
		runs[r.id] = r
	}
	tasks := f.all(rounds)
	appended := make([]int, rounds)
	var racing sync.WaitGroup
	for group := range slices.Chunk(tasks, 10) {
		for _, task := range group {
			run := f.url() + "/api/runs/" + task["run_id"].(string)
			round := slices.IndexFunc(tasks, func(t obj) bool { return t["id"] == task["id"] })
			racing.Go(func() { appended[round], _, _ = sendJSON(run+"/tasks/append", obj{"step": "f", "item": "late"}) })
			racing.Go(func() { _, _ = postJSON(f.url()+"/api/queue/complete", obj{"id": task["id"], "result": "first"}) })
		}
		racing.Wait()
	}
	open := 0
	for round, status := range appended {
		r := runs[tasks[round]["run_id"]]
		if status == 201 {
			open++
			r.is("started", "f started")
			continue
		}
		require.Equal(c, 409, status)
		r.ended("completed", `{"f":["first"]}`)
	}
	for _, task := range f.all(open) {
		f.done(task, "second")
		runs[task["run_id"]].ended("completed", `{"f":["first","second"]}`)
	}
	f.nothing()
}

func pgMapOfNoArray(c *client) {
	f := c.pgflow("p: {"+once+"}", "m: {kind: map, depends_on: [p], when: {if: {}}, skip_mode: optional, on_exhausted: skip, "+once+"}")
	r := f.run(obj{})
	f.work("p", "x")
	run, steps := r.states()
	r.matches(run, steps, "failed", "p completed", "m failed preprocessing_error")
	require.Contains(c, steps["m"]["error_message"], "p")
	require.Contains(c, steps["m"]["error_message"], "string")
}

func pgMaps(c *client) {
	root := c.pgflow("m: {kind: map, " + once + "}")
	for _, input := range []any{obj{}, nil} {
		status, answer := root.call("POST", "/flows/"+root.slug+"/runs", obj{"input": input})
		require.Equal(c, 400, status, "%v", answer)
	}
	root.run([]int{1, 2})
	got := root.units("m", 2)
	has(c.T, `[1,2]`, []any{got[0]["input"], got[1]["input"]})

	chain := c.pgflow("m: {kind: map}", "n: {kind: map, depends_on: [m]}", "o: {kind: map, depends_on: [n]}")
	empty := chain.run([]int{})
	run, steps := empty.split(empty.first)
	empty.matches(run, steps, "completed", "m completed", "n completed", "o completed")
	has(c.T, `{"o":[]}`, run["output"])
	chain.nothing()
	names := []string{}
	for _, e := range empty.events(5) {
		names = append(names, e.name)
	}
	require.Equal(c, []string{"run:started", "step:m:completed", "step:n:completed", "step:o:completed", "run:completed"}, names)
}
