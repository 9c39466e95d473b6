package blackbox

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func workerListed(c *client) {
	svc := unique("svc")
	for _, body := range []obj{
		{"id": unique("w"), "url": "http://127.0.0.1:1", "services": []string{svc}, "type": "http", "load": 7},
		{"ID": unique("w"), "URL": "http://127.0.0.1:1", "Services": []string{svc}, "lastHeartbeat": 0},
	} {
		id := body["id"]
		if id == nil {
			id = body["ID"]
		}
		c.post("/workers/register", body)
		rows := c.list("/workers/list?service=" + svc)
		row := rows[len(rows)-1]
		require.Greater(c, row["last_heartbeat"], 1.7e9)
		delete(row, "last_heartbeat")
		require.Equal(c, obj{"id": id, "url": "http://127.0.0.1:1", "services": []any{svc}, "load": 0.0,
			"status": "online", "type": "http"}, row)
	}
	require.Len(c, c.list("/workers/list?service="+svc), 2)
}

func (c *client) worker(service string) string {
	c.Helper()
	id := unique("w")
	c.post("/workers/register", obj{"id": id, "url": "http://127.0.0.1:1", "services": []string{service}})
	return id
}

// loads waits until all members know the load of workers, which they exchange with their answers.
// Meanwhile beat sends heartbeats, because on a busy machine the exchange may take longer than a
// silent worker is listed.
func (c *client) loads(path string, beat func(), want ...any) {
	c.Helper()
	beat()
	begun := time.Now()
	// one for each member; requests go to them in turn
	for beaten, knowing := begun, 0; knowing < 3; time.Sleep(10 * time.Millisecond) {
		if knowing++; !slices.Equal(want, values(c.list(path), "load")) {
			knowing = 0
		}
		if time.Since(beaten) > 5*time.Second {
			beat()
			beaten = time.Now()
		}
		require.Less(c, time.Since(begun), deadline, "not all members know that the loads are %v", want)
	}
}

func leastLoaded(c *client) {
	svc := unique("svc")
	busy, idle := c.worker(svc), c.worker(svc)
	c.loads("/workers/list?service="+svc, func() {
		c.post("/workers/heartbeat", obj{"id": busy, "url": "http://127.0.0.1:1", "load": 4})
		c.post("/workers/heartbeat", obj{"id": idle, "url": "http://127.0.0.1:1", "load": 1})
	}, 4.0, 1.0)
	require.Equal(c, idle, c.get("/workers/allocate?service=" + svc)["id"])
	c.refused(500, "no worker", "GET", "/workers/allocate?service=zzz", nil)
}

// silentWorker starts with a worker that sent its last heartbeat 13 seconds ago.
func silentWorker(shared *client) {
	svc, began := unique("svc"), time.Now()
	c := newClient(shared.T, startServer(shared.T, shared.kind, silentSince{13 * time.Second, "quiet", svc}))
	if listed := c.list("/workers/list?service=" + svc); time.Since(began) < 2*time.Second {
		require.Len(c, listed, 1)
	}
	end := time.Now().Add(deadline)
	for len(c.list("/workers/list?service="+svc)) > 0 {
		require.True(c, time.Now().Before(end), "the worker is still listed")
		time.Sleep(50 * time.Millisecond)
	}
	require.Len(c, c.list("/workers/list?ttl=3600&service="+svc), 1)
	require.Len(c, c.list("/workers/list?ttl=-1&service="+svc), 1)
	task := c.start(httpNode(svc, ""), obj{})
	c.ends(task, "failed")
	require.Equal(c, "no worker", c.runs(task)[0]["error_text"])
	c.post("/workers/heartbeat", obj{"id": "quiet", "load": 2})
	require.Equal(c, []any{2.0}, values(c.list("/workers/list?ttl=60&service="+svc), "load"))
	require.Equal(c, []any{"online"}, values(c.list("/workers/list?service="+svc), "status"))
}

func shortNames(c *client) {
	svc := unique("svc")
	id := unique("w")
	require.Equal(c, obj{"ok": "1"}, c.post("/register", obj{"id": id, "url": "queue", "services": []string{svc}, "type": "async"}))
	c.loads("/list?service="+svc, func() {
		require.Equal(c, obj{"ok": "1"}, c.post("/heartbeat", obj{"id": id, "url": "queue", "load": 3}))
	}, 3.0)
	rows := c.list("/list?service=" + svc)
	require.Equal(c, []any{3.0, "async", "queue"}, []any{rows[0]["load"], rows[0]["type"], rows[0]["url"]})
	require.Equal(c, id, c.get("/allocate?service=" + svc)["id"])
}

// httpNode returns a flow with one push step; more holds further fields of its node.
func httpNode(service, more string) string {
	return fmt.Sprintf(
		`{"start":"x","nodes":{"x":{"service":%q,"prep":{"input_key":"$params.val"},"post":{"output_key":"out"}%s}}}`,
		service, more)
}

func retries(c *client) {
	svc := unique("svc")
	var calls atomic.Int64
	c.push(map[string]service{svc: func(any, obj) (any, string) {
		if n := calls.Add(1); n < 3 {
			return nil, fmt.Sprintf("not the %d. time", n)
		}
		return "fine", ""
	}})
	task := c.start(httpNode(svc, `,"max_retries":2,"wait_ms":10`), obj{})
	c.shared(c.ends(task, "completed"), `{"out":"fine"}`)
	rows := c.runs(task)
	require.Equal(c, []any{1.0, 2.0, 3.0}, values(rows, "attempt_no"))
	require.Equal(c, []any{"error", "error", "ok"}, values(rows, "status"))
	require.Equal(c, []any{"not the 1. time", "not the 2. time", ""}, values(rows, "error_text"))
}

func deadWorkers(c *client) {
	nobody := unique("svc")
	task := c.start(httpNode(nobody, ""), obj{})
	c.ends(task, "failed")
	row := c.runs(task)[0]
	require.Equal(c, []any{"error", "no worker", ""}, []any{row["status"], row["error_text"], row["worker_id"]})

	svc := unique("svc")
	// a free port would not do, because the live worker below may get it
	const nowhere = "http://127.0.0.1:1"
	c.post("/workers/register", obj{"id": unique("dead"), "url": nowhere, "services": []string{svc}})
	task = c.start(httpNode(svc, ""), obj{})
	c.ends(task, "failed")
	require.Equal(c, "all workers failed", c.runs(task)[0]["error_text"])

	live := c.push(map[string]service{svc: func(in any, _ obj) (any, string) { return in, "" }})
	task = c.start(httpNode(svc, ""), obj{"val": 1})
	c.shared(c.ends(task, "completed"), `{"out":1}`)
	row = c.runs(task)[0]
	require.Equal(c, []any{live.id, live.URL}, []any{row["worker_id"], row["worker_url"]})
}

// TestAWorkerDeregisters checks that the worker is removed immediately, and that other workers get
// its jobs.
func TestAWorkerDeregisters(t *testing.T) { aloneAndTogether(t, aWorkerSaysGoodbye) }

func aWorkerSaysGoodbye(t *testing.T, c *client) {
	svc := unique("svc")
	echo := func(in any, _ obj) (any, string) { return in, "" }
	leaving := c.push(map[string]service{svc: echo})
	staying := c.push(map[string]service{svc: echo})
	require.Equal(t, obj{"ok": "1"}, c.post("/workers/deregister", obj{"id": leaving.id}))
	require.Equal(t, []any{staying.id}, values(c.list("/workers/list?service="+svc), "id"))
	task := c.start(httpNode(svc, ""), obj{"val": 1})
	c.shared(c.ends(task, "completed"), `{"out":1}`)
	require.Equal(t, []any{staying.id}, values(c.runs(task), "worker_id"))
	require.Zero(t, leaving.calls.Load())

	status, _ := c.call("POST", "/workers/deregister", obj{"id": leaving.id})
	require.Equal(t, 404, status)
	status, _ = c.call("POST", "/workers/heartbeat", obj{"id": leaving.id, "load": 0})
	require.Equal(t, 404, status, "it would have to register again")
}

func longStep(c *client) {
	svc := unique("svc")
	w := c.push(map[string]service{svc: func(any, obj) (any, string) {
		time.Sleep(5 * time.Second) // longer than a waiting task stays in memory
		return "done", ""
	}})
	task := c.start(httpNode(svc, ""), obj{})
	c.shared(c.ends(task, "completed"), `{"out":"done"}`)
	require.EqualValues(c, 1, w.calls.Load())
	require.Len(c, c.runs(task), 1)
}
