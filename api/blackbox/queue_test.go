package blackbox

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func queueNode(service string) string {
	return fmt.Sprintf(`{"start":"x","nodes":{"x":{"exec_type":"queue","service":%q,"params":{"a":1},
		"prep":{"input_key":"$params.in"},"post":{"output_key":"out"}}}}`, service)
}

func queueWaits(c *client) {
	service := unique("svc")
	task := c.start(queueNode(service), obj{"in": obj{"k": 5}})
	waiting := c.untilStatus(task, "waiting_queue")
	require.Equal(c, "x", waiting["current_node_key"])
	row := c.runs(task)[0]
	require.Equal(c, []any{"queued", 0.0, "queue", "queue", 1.0, "null"}, []any{row["status"], row["finished_at"], row["worker_id"],
		row["worker_url"], row["attempt_no"], row["exec_output_json"]})
	require.Nil(c, c.pollQueue([]string{}...), "who asks for no service gets no job, as clients of this dialect expect")
	require.Nil(c, c.pollQueue(unique("other")))
	q := c.claim("other", service)
	require.True(c, strings.HasPrefix(q["id"].(string), "q-"), q["id"])
	require.Equal(c, []any{task, "x", service, "claimed", "by-hand"},
		[]any{q["task_id"], q["node_key"], q["service"], q["status"], q["worker_id"]})
	require.Equal(c, 60.0, q["timeout_at"].(float64)-q["started_at"].(float64))
	require.Greater(c, q["created_at"], 1.7e9)
	require.JSONEq(c, fmt.Sprintf(`{"input":{"k":5},"params":{"a":1,"in":{"k":5}},"run_id":%q}`, row["id"]), q["input_json"].(string))
	require.Equal(c, obj{"k": 5.0}, q["input"])
	require.NotEmpty(c, q["token"])
	require.Nil(c, c.pollQueue(service))
	require.Equal(c, "waiting_queue", c.read(task)["status"])
	c.refused(400, "bad request: the body must be a JSON object", "POST", "/queue/poll", "no json")
	c.refused(400, "bad request: worker_id has a value of the wrong type", "POST", "/queue/poll", obj{"worker_id": 5})
	c.refused(400, "bad request: services has a value of the wrong type", "POST", "/queue/poll", obj{"worker_id": "w", "services": "s"})
	const missing = `services is missing: say what jobs may be for, as in {"worker_id": "w1", "services": ["resize"]}`
	for _, body := range []obj{{}, {"worker_id": "w"}, {"worker_id": "w", "service": []string{"s"}}} {
		c.refused(400, missing, "POST", "/queue/poll", body)
	}
}

func queueCompletes(c *client) {
	service := unique("svc")
	task := c.start(queueNode(service), obj{})
	c.untilStatus(task, "waiting_queue")
	guessed := "q-" + strings.TrimPrefix(c.runs(task)[0]["id"].(string), "run-")
	c.refused(409, "no worker has claimed the job: a worker must poll it before it can complete it",
		"POST", "/queue/complete", obj{"queue_id": guessed, "result": "mine", "log": "mine too"})
	c.refused(404, "no log path", "GET", "/tasks/logs?run_id="+c.runs(task)[0]["id"].(string), nil)
	q := c.claim(service)
	require.Equal(c, guessed, q["id"])
	require.Equal(c, obj{"ok": "1"}, c.post("/queue/update_run", obj{"run_id": q["run_id"], "status": "running"}))
	require.Equal(c, []any{"running"}, values(c.runs(task), "status"))
	c.post("/queue/update_run", obj{"run_id": "run-nope", "status": "running"})
	c.refused(400, "run_id required", "POST", "/queue/update_run", obj{"status": "running"})
	heartbeat := c.post("/queue/heartbeat", obj{"queue_id": q["id"], "worker_id": "by-hand"})
	require.Equal(c, obj{"ok": "1", "canceled": []any{}}, heartbeat)

	wrong, _ := c.call("POST", "/queue/complete", obj{"queue_id": q["id"], "result": 0, "token": "wrong"})
	require.GreaterOrEqual(c, wrong, 400, "a wrong token is refused")
	body := obj{"queue_id": q["id"], "run_id": q["run_id"], "result": obj{"b": 1}, "error": nil, "log_path": "/etc/passwd"}
	require.Equal(c, obj{"ok": "1"}, c.post("/queue/complete", body))
	done := c.ends(task, "completed")
	c.shared(done, `{"out":{"b":1}}`)
	rows := c.runs(task)
	require.Len(c, rows, 1)
	require.Equal(c, []any{"ok", `{"b":1}`, ""}, []any{rows[0]["status"], rows[0]["exec_output_json"], rows[0]["log_path"]})
	require.Greater(c, rows[0]["finished_at"], 1.7e9)
	c.refused(404, "no log path", "GET", "/tasks/logs?run_id="+q["run_id"].(string), nil)

	body["result"] = "another"
	require.Equal(c, obj{"ok": "1"}, c.post("/queue/complete", body))
	require.Equal(c, done, c.read(task))
	require.Equal(c, rows, c.runs(task))
	status, v := c.call("POST", "/queue/complete", obj{"queue_id": "q-nope", "result": 1})
	require.Equal(c, 404, status)
	require.NotEmpty(c, v.(obj)["error"])
}

func queueFails(c *client) {
	service := unique("svc")
	task := c.start(queueNode(service), obj{})
	c.post("/queue/complete", obj{"queue_id": c.claim(service)["id"], "error": "no paper"})
	c.ends(task, "failed")
	row := c.runs(task)[0]
	require.Equal(c, []any{"error", "no paper"}, []any{row["status"], row["error_text"]})
	task = c.start(queueNode(service), obj{})
	c.post("/queue/complete", obj{"queue_id": c.claim(service)["id"], "result": 1, "error": nil})
	c.shared(c.ends(task, "completed"), `{"out":1}`)
}

// TestQueueSuperset checks the extensions of the dialect for newer pollers.
func TestQueueSuperset(t *testing.T) { aloneAndTogether(t, queueSuperset) }

func queueSuperset(t *testing.T, c *client) {
	service := unique("svc")
	flow, _ := c.flow(queueNode(service))
	list := func(body obj) []obj {
		c.Helper()
		body["worker_id"], body["services"], body["wait_ms"] = "w", []string{service}, 0
		status, v := c.call("POST", "/queue/poll", body)
		if status == 204 {
			return nil
		}
		require.Equal(c, 200, status, v)
		return objects(c, v.(obj)["tasks"])
	}
	for _, sent := range []obj{{"max": 3}, {"max": 0}, {"flow": ""}, {"labels": []string{}}, {"labels": []string{"gpu"}}} {
		require.Empty(t, list(sent))
	}
	tasks := []string{c.task(flow, obj{"in": 1}), c.task(flow, obj{"in": 2}), c.task(flow, obj{"in": 3})}
	for _, task := range tasks {
		c.untilStatus(task, "waiting_queue")
	}
	alone := len(*c.members.Load()) == 1
	// gather polls until it has n jobs, because news of them may still be on its way from their
	// members. On a single member all are available immediately.
	gather := func(n, limit int) (all []obj) {
		require.Eventually(t, func() bool {
			got := list(obj{"max": limit - len(all)})
			all = append(all, got...)
			return alone || len(all) >= n
		}, deadline, 10*time.Millisecond)
		return all
	}
	first := gather(2, 2)
	require.Len(t, first, 2)
	last := gather(1, 2)
	require.Len(t, last, 1)
	inputs := []any{first[0]["input"], first[1]["input"], last[0]["input"]}
	require.ElementsMatch(t, []any{1.0, 2.0, 3.0}, inputs)
	if alone { // otherwise news of the oldest may still be on its way from its member
		require.Equal(t, 3.0, inputs[2])
	}
	c.cancel(last[0]["run_id"].(string))
	beat := c.post("/queue/heartbeat", obj{"queue_ids": []any{last[0]["id"]}, "worker_id": "w"})
	require.Equal(t, []any{last[0]["id"]}, beat["canceled"])

	created := make(chan any, 1)
	time.AfterFunc(100*time.Millisecond, func() {
		answer, err := postJSON(c.url()+"/api/tasks", obj{"FlowID": flow})
		created <- cmp.Or[any](answer["id"], err)
	})
	status, v := c.call("POST", "/queue/poll", obj{"worker_id": "w", "services": []string{service}, "wait_ms": 60_000})
	require.Equal(t, 200, status)
	q := v.(obj)
	c.post("/queue/complete", obj{"queue_id": q["id"], "result": 1, "token": q["token"], "log": "what it printed"})
	c.ends(q["task_id"].(string), "completed")
	late := <-created
	require.Equal(t, late, q["task_id"])
	row := c.runs(late.(string))[0]
	require.NotEmpty(t, row["log_path"])
	require.Equal(t, obj{"content": "what it printed"}, c.get("/tasks/logs?run_id="+row["id"].(string)))
}

// TestClaimsAreGivenBack checks that a poller that stops returns its jobs immediately.
func TestClaimsAreGivenBack(t *testing.T) { aloneAndTogether(t, claimsAreGivenBack) }

func claimsAreGivenBack(t *testing.T, c *client) {
	service := unique("svc")
	flow, _ := c.flow(queueNode(service))
	tasks := []string{c.task(flow, obj{}), c.task(flow, obj{}), c.task(flow, obj{})}
	for _, task := range tasks {
		c.untilStatus(task, "waiting_queue")
	}
	claims := []obj{}
	for range tasks {
		claims = append(claims, c.claim(service))
	}
	require.Nil(t, c.pollQueue(service))
	released := c.post("/queue/release", obj{"queue_id": claims[0]["id"], "token": claims[0]["token"]})
	require.Equal(t, obj{"ok": "1"}, released)
	again := c.claim(service)
	require.Equal(t, claims[0]["id"], again["id"])

	// of a claim that has ended
	old := []obj{{"queue_id": claims[0]["id"], "token": claims[0]["token"]}}
	for _, q := range claims[1:] {
		old = append(old, obj{"queue_id": q["id"], "token": q["token"]})
	}
	require.Equal(t, obj{"ok": "1"}, c.post("/queue/release", obj{"claims": old}))
	others := []any{c.claim(service)["id"], c.claim(service)["id"]}
	require.ElementsMatch(t, []any{claims[1]["id"], claims[2]["id"]}, others)
	require.Nil(t, c.pollQueue(service), "a claim is given back by its own token only")

	c.post("/queue/complete", obj{"queue_id": again["id"], "result": 1, "token": again["token"]})
	c.ends(again["task_id"].(string), "completed")
	require.Equal(t, obj{"ok": "1"}, c.post("/queue/release", obj{"queue_id": again["id"], "token": again["token"]}))
	c.refused(404, "queue entry not found", "POST", "/queue/release", obj{"queue_id": "q-nope", "token": "t"})
	c.refused(400, "queue_id required", "POST", "/queue/release", obj{})
	c.refused(400, "token required: it is in the answer of the poll", "POST", "/queue/release", obj{"queue_id": again["id"]})
	c.refused(400, "bad request", "POST", "/queue/release", obj{"claims": "all"})
	c.refused(405, "method not allowed", "GET", "/queue/release", nil)
}

// TestJobsAreKnownByTheirV1Names checks that /v1 uses the same ids without a prefix.
func TestJobsAreKnownByTheirV1Names(t *testing.T) { aloneAndTogether(t, jobsAreKnownByTheirV1Names) }

func jobsAreKnownByTheirV1Names(t *testing.T, c *client) {
	service := unique("svc")
	task := c.start(queueNode(service), obj{})
	q := c.claim(service)
	id := strings.TrimPrefix(q["id"].(string), "q-")
	c.post("/queue/update_run", obj{"run_id": id, "status": "running"})
	require.Equal(t, []any{"running"}, values(c.runs(task), "status"))
	beat := c.post("/queue/heartbeat", obj{"queue_id": id, "token": q["token"]})
	require.Empty(t, beat["canceled"])
	c.post("/queue/complete", obj{"queue_id": id, "result": 1, "token": q["token"]})
	c.ends(task, "completed")
	beat = c.post("/queue/heartbeat", obj{"queue_ids": []any{id, q["id"]}})
	require.Equal(t, []any{id, q["id"]}, beat["canceled"], "ids are told as they were asked for")
}
