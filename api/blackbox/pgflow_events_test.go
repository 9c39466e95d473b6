package blackbox

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func uuidOf(require.TestingT) string { return uuid.NewString() }

// told is an event as subscribers receive it.
type told struct {
	id, name string
	data     obj
}

// subscription is a stream of a run's events.
type subscription struct {
	*client
	lines *bufio.Scanner
}

// subscribe opens a stream after an event id ("" = none) and returns the status of the answer.
func (c *client) subscribe(run, last string) (s *subscription, status int) {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), "GET", c.url()+"/api/runs/"+run+"/events", nil)
	require.NoError(c, err)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := httpClient.Do(req)
	require.NoError(c, err)
	c.Cleanup(func() { _ = resp.Body.Close() })
	return &subscription{c, bufio.NewScanner(resp.Body)}, resp.StatusCode
}

// next returns the next event; ok is false at the end of the stream.
func (s *subscription) next() (e told, ok bool) {
	for s.lines.Scan() {
		name, text, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = text
		case "event":
			e.name = text
		case "data":
			require.NoError(s, json.Unmarshal([]byte(text), &e.data))
			return e, true
		}
	}
	return e, false
}

// rest reads to the end of the stream.
func (s *subscription) rest() []told {
	list := []told{}
	for e, ok := s.next(); ok; e, ok = s.next() {
		list = append(list, e)
	}
	return list
}

func namesOf(events []told) []string {
	list := []string{}
	for _, e := range events {
		list = append(list, e.name)
	}
	return list
}

// events returns the first n events of a run.
func (r *pgRun) events(n int) []told {
	r.Helper()
	s, status := r.subscribe(r.id, "0")
	require.Equal(r, 200, status)
	list := []told{}
	for len(list) < n {
		e, ok := s.next()
		require.True(r, ok, "the stream ended after %v", namesOf(list))
		list = append(list, e)
	}
	return list
}

func pgEvents(c *client) {
	f := c.pgflow(nodeA, nodeB, "s: {"+onlyP+", depends_on: [a]}", "g: {kind: map, depends_on: [a], "+once+"}")
	id := uuidOf(c)
	stream, status := c.subscribe(id, "")
	require.Equal(c, 200, status)
	c.call("POST", "/flows/"+f.slug+"/runs", obj{"input": obj{"n": 1}, "run_id": id})
	r := &pgRun{pgFlow: f, id: id}
	f.work("a", []int{})
	f.work("b", 6)
	all := stream.rest()
	require.Equal(c, []string{"run:started", "step:a:started", "step:a:completed", "step:b:started", "step:s:skipped", "step:g:completed",
		"step:b:completed", "run:completed"}, namesOf(all))
	kinds := []string{}
	for _, e := range all { // the event's name includes the step, its kind does not
		kinds = append(kinds, e.data["event_type"].(string))
		require.Equal(c, id, e.data["run_id"])
	}
	require.Equal(c, []string{"run:started", "step:started", "step:completed", "step:started", "step:skipped", "step:completed",
		"step:completed", "run:completed"}, kinds)
	has(c.T, `{"n":1}`, all[0].data["input"])
	require.Equal(c, []any{f.slug, 4.0, "started"}, []any{all[0].data["flow_slug"], all[0].data["remaining_steps"], all[0].data["status"]})
	require.Equal(c, []any{"a", 1.0, 0.0}, []any{all[1].data["step_slug"], all[1].data["remaining_tasks"], all[1].data["remaining_deps"]})
	require.Equal(c, "condition_unmet", all[4].data["skip_reason"])
	has(c.T, `{"b":6,"g":[]}`, all[7].data["output"])

	for i, e := range all { // a subscriber that returns gets only the later events
		later, status := c.subscribe(id, e.id)
		if i == len(all)-1 {
			require.Equal(c, 204, status)
			break
		}
		require.Equal(c, all[i+1:], later.rest())
	}
	snapshot, _ := c.subscribe(id, "")
	first, _ := snapshot.next()
	require.Equal(c, []any{"snapshot", "completed"}, []any{first.name, first.data["run"].(obj)["status"]})
	require.Empty(c, snapshot.rest())
	status, _ = c.call("GET", "/runs/nobody/events", nil)
	require.Equal(c, 404, status)
	require.Len(c, r.events(8), 8)
	pgEventsOfSteering(c)
}

// pgEventsOfSteering subscribes to a run that has begun.
func pgEventsOfSteering(c *client) {
	f := c.pgflow(nodeA, "g: {kind: map, on_exhausted: skip, "+once+"}")
	r := f.run([]int{1})
	got := f.poll("a", "g")
	stream, _ := c.subscribe(r.id, "")
	snapshot, _ := stream.next()
	require.Equal(c, "snapshot", snapshot.name)
	r.do("/pause", nil)
	r.do("/resume", nil)
	r.do("/tasks/append", obj{"step": "g", "item": 2})
	f.fail(got["g"], "no")
	f.fail(got["a"], "neither")
	all := stream.rest()
	require.Equal(c, []string{"run:paused", "run:resumed", "task:appended", "step:g:skipped", "step:a:failed", "run:failed"}, namesOf(all))
	for i, kind := range []string{"run:paused", "run:resumed", "task:appended", "step:skipped", "step:failed", "run:failed"} {
		require.Equal(c, kind, all[i].data["event_type"])
	}
	require.Equal(c, []any{1.0}, all[2].data["task_indexes"])
	require.Equal(c, "handler_failed", all[3].data["skip_reason"])
	require.Contains(c, all[3].data["error_message"], `"no"`)
	require.Equal(c, []any{"task_error", "neither"}, []any{all[4].data["failure_reason"], all[4].data["error_message"]})
	require.Contains(c, all[5].data["error_message"], "neither")
}

func pgWaits(c *client) {
	f := c.pgflow(nodeA)
	wait := func(r *pgRun, query string) chan int {
		answer := make(chan int, 1)
		go func() {
			resp, err := httpClient.Get(f.url() + "/api/runs/" + r.id + "/wait?" + query)
			if err != nil {
				answer <- 0
				return
			}
			_ = resp.Body.Close()
			answer <- resp.StatusCode
		}()
		return answer
	}
	good, bad, slow := f.run(obj{}), f.run(obj{}), f.run(obj{})
	waiting := []chan int{wait(good, "status=completed"),
		wait(bad, "status=completed&timeout_ms=3600000"), wait(slow, "status=completed&timeout_ms=300"),
		wait(good, "step=a&status=completed"), wait(slow, "step=a&status=started"),
		wait(bad, "step=a&status=skipped"), wait(bad, "status=failed")}
	for _, task := range f.all(3) {
		switch task["run_id"] {
		case good.id:
			f.done(task, 1)
		case bad.id:
			f.fail(task, "no")
		}
	}
	for i, want := range []int{200, 409, 408, 200, 200, 409, 200} {
		require.Equal(c, want, <-waiting[i], "%d", i)
	}
	for query, want := range map[string]int{"status=nope": 400, "step=nobody&status=completed": 404} {
		require.Equal(c, want, <-wait(slow, query), query)
	}
	answer := c.get("/runs/" + good.id + "/wait?status=completed")
	require.Equal(c, "completed", answer["run"].(obj)["status"])
}

// pgKill kills the server between poll and complete.
func pgKill(shared *client) {
	p := startProcess(shared.T, shared.kind)
	c := newClient(shared.T, p.server)
	f := c.pgflow(nodeA, nodeB)
	r := f.run(obj{})
	held := f.one("a")
	p.restart(shared.T)
	f.nothing()
	run, steps := r.states()
	require.Equal(c, []any{2.0, "started", 1.0}, []any{run["remaining_steps"], steps["a"]["status"], steps["a"]["remaining_tasks"]})
	require.Equal(c, true, f.done(held, 5)["changed"])
	require.Equal(c, false, f.done(held, 6)["changed"])
	f.work("b", 7)
	r.ended("completed", `{"b":7}`)
	require.Equal(c, []any{1.0}, values(r.tasks("a"), "attempts_count"))
	run, _ = r.states()
	require.Equal(c, 0.0, run["remaining_steps"])
}
