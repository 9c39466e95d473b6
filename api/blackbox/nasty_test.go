package blackbox

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNastyInput sends invalid input everywhere. Every answer must be one that a client can act on.
func TestNastyInput(t *testing.T) {
	t.Parallel()
	for _, kind := range []storeKind{sqliteStore, postgresStore} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, startServer(t, kind))
			flow, _ := c.flow(waitForever)
			task := c.task(flow, obj{})
			svc := unique("svc")
			queued := c.start(queueNode(svc), obj{})
			q := c.claim(svc)
			for _, nasty := range []any{"a\x00b", "\xff\xfe", "💥\u2028", fmt.Sprintf("%0300d", 1),
				"../../etc/passwd", "'; DROP TABLE tasks; --", "%00", " ", "_rt", 1e308,
				obj{"a": "\x00"}, []any{nil}} {
				for _, s := range []struct {
					path string
					body obj
				}{
					{"/flows", obj{"Name": nasty, "Description": nasty}},
					{"/flows/version", obj{"FlowID": nasty, "Version": nasty, "DefinitionJSON": nasty, "Status": nasty}},
					{"/flows/version", obj{"FlowID": flow, "DefinitionJSON": waitForever, "Status": nasty}},
					{"/flows/version", obj{"FlowID": flow, "DefinitionYAML": nasty}},
					{"/tasks", obj{"FlowID": nasty, "ParamsJSON": nasty}},
					{"/tasks", obj{"FlowID": flow, "ParamsJSON": obj{"p": nasty}}},
					{"/tasks", obj{"FlowVersionID": nasty}},
					{"/tasks/signal", obj{"task_id": task, "key": nasty, "value": nasty}},
					{"/tasks/signal", obj{"task_id": nasty, "key": nasty, "value": nasty}},
					{"/tasks/signal", obj{"task_id": nasty, "key": "k"}},
					{"/workers/register", obj{"id": nasty, "url": nasty, "services": nasty, "type": nasty}},
					{"/workers/register", obj{"id": nasty, "url": "queue", "services": []any{nasty}, "type": "async"}},
					{"/workers/heartbeat", obj{"id": nasty, "load": nasty}},
					{"/queue/poll", obj{"worker_id": nasty, "services": []any{nasty}}},
					{"/queue/poll", obj{"worker_id": nasty, "services": nasty, "max": nasty, "wait_ms": nasty}},
					{"/queue/heartbeat", obj{"queue_id": q["id"], "worker_id": nasty, "token": nasty}},
					{"/queue/update_run", obj{"run_id": q["run_id"], "status": nasty}},
					{"/queue/update_run", obj{"run_id": nasty, "status": nasty}},
					{"/queue/complete", obj{"queue_id": nasty, "result": nasty, "log": nasty}},
					{"/../v1/tasks", obj{"flow": nasty, "version": nasty}},
				} {
					status, v := c.call("POST", s.path, s.body)
					assert.Less(t, status, 500, "%s %v: %v", s.path, s.body, v)
				}
			}
			for _, path := range []string{"/tasks/get?id=%00", "/tasks/runs?task_id=%00",
				"/tasks/logs?run_id=run-%00", "/tasks?status=%00&flow_version_id=%ff%00",
				"/flows/version?flow_id=%00", "/flows/version/get?id=%ff",
				"/workers/list?service=%00", "/tasks?page=99999999999999&page_size=99999999999999"} {
				status, v := c.call("GET", path, nil)
				assert.Less(t, status, 500, "%s: %v", path, v)
			}
			illegible(c)
			status, v := c.call("POST", "/queue/complete",
				obj{"queue_id": q["id"], "result": obj{"\x00": "a\x00b"}, "log": "a\x00b\xff", "error": nil})
			require.Equal(t, 200, status, "%v", v)
			c.ends(queued, "completed")
			require.Equal(t, "ok", c.runs(queued)[0]["status"])
			c.get("/tasks/logs?run_id=" + q["run_id"].(string))
			c.signal(task, "go", "\x00")
			c.ends(task, "completed")
		})
	}
}

// illegible checks that invalid text is rejected before a store is asked, which might reject it
// differently.
func illegible(c *client) {
	v1 := &client{T: c.T, server: c.server}
	for _, path := range []string{"/v1/tasks/%00", "/v1/tasks/a%ff/runs", "/v1/flows/%00",
		"/v1/tasks?label=%00:1", "/v1/tasks?flow=%ff", "/v1/tasks/%00/stream"} {
		status, v := v1.call("GET", path, nil)
		require.Equal(c, 400, status, "%s: %v", path, v)
		require.Contains(c, v.(obj)["message"], "UTF-8")
		require.NotEmpty(c, v.(obj)["field"])
	}
	status, v := c.call("POST", "/tasks/cancel?id=%00", nil)
	require.Equal(c, 400, status, "%v", v)
	flow, _ := c.flow(waitForever)
	status, v = c.call("POST", "/flows/version", obj{"FlowID": flow, "Version": 1 << 40, "DefinitionJSON": waitForever})
	require.Equal(c, 400, status, "%v", v)
	status, v = c.call("POST", "/tasks", obj{"FlowID": flow, "Version": 1 << 40})
	require.Equal(c, 404, status, "%v", v)
}
