package blackbox

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/worker"
)

const eachOfParams = `{"start":"x","nodes":{"x":{"kind":"foreach","exec_type":"queue","service":"SERVICE","parallel_mode":"concurrent",
	"prep":{"input_key":"$params.list"},"post":{"output_key":"out"}}}}`

// TestLargeParamsTravelOnce checks that jobs over a list in the params cost no more than over any
// other list.
func TestLargeParamsTravelOnce(t *testing.T) { aloneAndTogether(t, largeParamsTravelOnce) }

func largeParamsTravelOnce(t *testing.T, c *client) {
	const items = 5_000
	params := obj{"list": make([]int, items), "text": "hello"}
	service := unique("svc")
	task := c.start(strings.ReplaceAll(eachOfParams, "SERVICE", service), params)
	c.untilStatus(task, "waiting_queue")

	jobs := c.claimMany(service, 100)
	require.Len(t, jobs, 100)
	for _, job := range jobs {
		require.NotContains(t, job, "params")
		require.NotContains(t, job, "flow_input")
		require.Equal(t, jobs[0]["params_key"], job["params_key"])
	}
	job := jobs[7]
	told := c.post("/queue/params", obj{"queue_id": job["id"], "token": job["token"]})
	require.Equal(t, "hello", told["params"].(obj)["text"])
	require.Len(t, told["flow_input"].(obj)["list"], items)
	c.refused(404, "queue entry not found", "POST", "/queue/params", obj{"queue_id": "q-nope"})
	wrong, _ := c.call("POST", "/queue/params", obj{"queue_id": job["id"], "token": "wrong"})
	require.Equal(t, 409, wrong)

	single := c.claim(service)
	require.NotContains(t, single, "params", "they are in input_json alone")
	require.Contains(t, single["input_json"], `"text":"hello"`)
	c.cancel(task)
}

// claimMany polls until it has n jobs. A poll returns those that are available.
func (c *client) claimMany(service string, n int) (jobs []obj) {
	c.Helper()
	for begun := time.Now(); len(jobs) < n && time.Since(begun) < deadline; {
		status, _, body := c.send("POST", "/queue/poll",
			obj{"worker_id": "w", "services": []string{service}, "max": n - len(jobs), "wait_ms": 10_000})
		require.Contains(c, []int{200, 204}, status)
		require.Less(c, len(body), (n-len(jobs))*1000, "a job is small")
		var answer struct{ Tasks []obj }
		if status == 200 {
			require.NoError(c, json.Unmarshal(body, &answer))
		}
		jobs = append(jobs, answer.Tasks...)
	}
	return jobs
}

func TestAWorkerSeesParamsThatDidNotComeAlong(t *testing.T) {
	aloneAndTogether(t, aWorkerSeesParamsThatDidNotComeAlong)
}

func aWorkerSeesParamsThatDidNotComeAlong(t *testing.T, c *client) {
	const items = 2_500
	service := unique("svc")
	var without atomic.Int64
	w := worker.New(worker.Config{Server: c.url(), Pull: true})
	w.Handle(service, func(_ context.Context, job worker.Job) (any, error) {
		if !strings.Contains(string(job.Params), `"hello"`) {
			without.Add(1)
		}
		return 1, nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	task := c.start(strings.ReplaceAll(eachOfParams, "SERVICE", service), obj{"list": make([]int, items), "text": "hello"})
	c.ends(task, "completed")
	require.Zero(t, without.Load())
	stop()
	require.NoError(t, <-ended)
}
