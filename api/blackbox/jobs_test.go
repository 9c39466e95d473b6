package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jobChecks are checks of how jobs reach workers, and of the content of jobs.
var jobChecks = []check{
	{"a job with labels goes to the push worker that has them all", labeledPush},
	{"a job with labels that nobody has fails and says so", labelsNobodyHas},
	{"a queued job with labels waits for a worker that has them all", labeledPoll},
	{"workers tell their labels", labeledWorkers},
	{"a job tells which unit of which step it is", jobTellsItsPlace},
	{"services and labels that lost a part are refused", lostNames},
	{"no more jobs than its limit are under way of a key that flows share", limitOfAKey},
}

func TestJobsSQLite(t *testing.T)   { t.Parallel(); runChecks(t, sqliteStore, jobChecks) }
func TestJobsPostgres(t *testing.T) { t.Parallel(); runChecks(t, postgresStore, jobChecks) }
func TestJobsCluster(t *testing.T)  { t.Parallel(); runChecks(t, clusterStore, jobChecks) }

// labeled registers a push worker again, with labels.
func (c *client) labeled(w *pushWorker, service string, labels ...string) {
	c.Helper()
	c.post("/workers/register", obj{"id": w.id, "url": w.URL, "services": []string{service}, "labels": labels})
}

func answers(v any) service { return func(any, obj) (any, string) { return v, "" } }

func labeledPush(c *client) {
	svc := unique("svc")
	c.push(map[string]service{svc: answers("none")})
	some := c.push(map[string]service{svc: answers("some")})
	all := c.push(map[string]service{svc: answers("all")})
	c.labeled(some, svc, "gpu")
	c.labeled(all, svc, "eu", "big", "gpu")
	for range 3 {
		c.shared(c.ends(c.start(httpNode(svc, `,"labels":["gpu","eu"]`), obj{}), "completed"), `{"out":"all"}`)
	}
	require.Zero(c, some.calls.Load())
	c.shared(c.ends(c.start(httpNode(svc, ""), obj{}), "completed"), `{"out":"none"}`)
}

func labelsNobodyHas(c *client) {
	svc := unique("svc")
	w := c.push(map[string]service{svc: answers("done")})
	c.labeled(w, svc, "gpu")
	task := c.start(httpNode(svc, `,"labels":["gpu","eu"],"max_retries":1000,"wait_ms":50`), obj{})
	c.until(task, "tried", func(obj) bool { return len(c.runs(task)) > 0 && c.runs(task)[0]["status"] == "error" })
	require.Equal(c, "no worker with the labels gpu, eu", c.runs(task)[0]["error_text"])
	v1 := &client{T: c.T, server: c.server}
	require.Eventually(c, func() bool {
		waits := objects(c, v1.get("/v1/tasks/" + task + "/waiting")["waits"])
		return len(waits) == 1 && strings.Contains(waits[0]["text"].(string),
			"failed (no worker for service "+svc+" with the labels gpu, eu)")
	}, deadline, time.Millisecond)
	c.labeled(w, svc, "gpu", "eu")
	c.shared(c.ends(task, "completed"), `{"out":"done"}`)
}

func labeledPoll(c *client) {
	svc := unique("svc")
	task := c.start(`{"start":"x","nodes":{"x":{"exec_type":"queue","service":"`+svc+
		`","labels":["gpu","eu"],"post":{"output_key":"out"}}}}`, obj{})
	c.untilStatus(task, "waiting_queue")
	waits := objects(c, (&client{T: c.T, server: c.server}).get("/v1/tasks/" + task + "/waiting")["waits"])
	require.Equal(c, "a worker must poll for service "+svc+" with the labels gpu, eu", waits[0]["text"])
	poll := func(wait int, labels ...string) int {
		status, _ := c.call("POST", "/queue/poll", obj{"worker_id": "w", "services": []string{svc}, "labels": labels, "wait_ms": wait})
		return status
	}
	require.Equal(c, 204, poll(0))
	require.Equal(c, 204, poll(0, "gpu"))
	require.Equal(c, 200, poll(60_000, "eu", "gpu", "big"))
}

func labeledWorkers(c *client) {
	svc, id := unique("svc"), unique("w")
	c.post("/workers/register", obj{"id": id, "url": "queue", "type": "async",
		"services": []string{svc}, "labels": []string{"gpu", "eu", "gpu"}})
	require.Equal(c, []any{[]any{"eu", "gpu"}}, values(c.list("/workers/list?service="+svc), "labels"))
	require.Equal(c, []any{"eu", "gpu"}, c.get("/workers/allocate?service=" + url.QueryEscape(svc))["labels"])
	for _, w := range objects(c, (&client{T: c.T, server: c.server}).get("/v1/workers")["items"]) {
		if w["id"] == id {
			require.Equal(c, []any{"eu", "gpu"}, w["labels"])
			return
		}
	}
	require.Fail(c, "it is not listed")
}

func jobTellsItsPlace(c *client) {
	svc := unique("svc")
	headers := make(chan http.Header, 2)
	w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		_, _ = io.WriteString(w, `{"result":1}`)
	}))
	c.Cleanup(w.Close)
	c.post("/workers/register", obj{"id": unique("w"), "url": w.URL, "services": []string{svc}})
	d := c.dag(`
nodes:
  pushed: {service: `+svc+`, each: {count: 2}}
  polled: {service: "@polled", route: queue, labels: [gpu, eu], each: {count: 3}, depends_on: [pushed]}`, obj{})
	pushed := map[string]string{}
	for range 2 {
		h := <-headers
		require.Equal(c, []string{d.id, strings.TrimSuffix(d.prefix, "-"), "pushed", "2", "1"},
			[]string{h.Get("Troupe-Task"), h.Get("Troupe-Flow"), h.Get("Troupe-Step"), h.Get("Troupe-Units"), h.Get("Troupe-Attempt")})
		pushed[h.Get("Troupe-Unit")] = h.Get("Idempotency-Key")
	}
	require.Len(c, pushed, 2)
	list := c.post("/queue/poll", obj{"worker_id": "w", "services": []string{d.prefix + "polled"},
		"labels": []string{"eu", "gpu", "ssd"}, "max": 1,
		"wait_ms": 60_000})["tasks"]
	task := list.([]any)[0].(obj)
	require.Equal(c, []any{"polled", 0.0, 3.0, 1.0}, []any{task["step_slug"], task["task_index"], task["task_count"], task["attempt"]})
	require.ElementsMatch(c, []any{"gpu", "eu"}, task["labels"])
}

// lostNames checks that the routes refuse names of which a part was lost on the way.
func lostNames(c *client) {
	for _, lost := range []string{`\ud800`, `a\udfff`, "\ufffd"} {
		for _, ask := range []struct{ path, body string }{
			{"/workers/register", `{"id":"lost","url":"http://127.0.0.1:1","services":["` + lost + `"]}`},
			{"/workers/register", `{"id":"lost","url":"http://127.0.0.1:1","services":["s"],"labels":["` + lost + `"]}`},
			{"/queue/poll", `{"worker_id":"lost","services":["` + lost + `"]}`},
			{"/queue/poll", `{"worker_id":"lost","services":["s"],"labels":["` + lost + `"],"max":1}`},
		} {
			status, v := c.call("POST", ask.path, json.RawMessage(ask.body))
			require.Equal(c, 400, status, "%s: %v", ask.body, v)
			require.Contains(c, fmt.Sprint(v), "U+FFFD, which stands for text that was lost", ask.body)
		}
	}
}
