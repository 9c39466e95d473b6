package blackbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestALongJobOfALiveWorkerIsDeliveredOnce imitates the first pull worker, which sends heartbeats
// for itself but not for its jobs.
func TestALongJobOfALiveWorkerIsDeliveredOnce(t *testing.T) {
	aloneAndTogether(t, aLongJobOfALiveWorkerIsDeliveredOnce)
}

func aLongJobOfALiveWorkerIsDeliveredOnce(t *testing.T, c *client) {
	const visibility = 4 * time.Second // a heartbeat may take long on a busy machine
	service, worker := unique("svc"), unique("async")
	c.post("/workers/register", obj{"id": worker, "url": "queue", "type": "async", "services": []string{service}})
	task := c.start(`{"start":"x","nodes":{"x":{"exec_type":"queue","service":"`+service+
		`","visibility_ms":4000,"post":{"output_key":"out"}}}}`, obj{})
	poll := func(worker string) any {
		status, v := c.call("POST", "/queue/poll", obj{"worker_id": worker, "services": []string{service}})
		if status == 204 {
			return nil
		}
		return v
	}
	var job obj
	require.Eventually(t, func() bool {
		if v := poll(worker); v != nil {
			job = v.(obj)
		}
		return job != nil
	}, time.Minute, 10*time.Millisecond)
	c.post("/queue/update_run", obj{"run_id": job["run_id"], "status": "running"})
	for end := time.Now().Add(2 * visibility); time.Now().Before(end); {
		c.post("/workers/heartbeat", obj{"id": worker, "url": "queue", "load": 0})
		require.Nil(t, poll("another"), "the job is delivered once")
	}
	c.post("/queue/complete", obj{"queue_id": job["id"], "run_id": job["run_id"], "result": 7, "error": nil})
	c.shared(c.ends(task, "completed"), `{"out":7}`)
	require.Len(t, c.runs(task), 1)

	task = c.start(`{"start":"x","nodes":{"x":{"exec_type":"queue","service":"`+service+`","visibility_ms":4000}}}`, obj{})
	require.Eventually(t, func() bool { return poll(worker) != nil }, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return poll("another") != nil }, time.Minute, 10*time.Millisecond, "a silent worker loses it")
	c.cancel(task)
}
