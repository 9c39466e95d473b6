package blackbox

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// defers returns a shell line that records its run and defers to external jobs.
func defers(jobs ...string) string {
	return "echo ran >> ran; " + gives(`{"deferred":[`+strings.Join(jobs, ",")+`]}`)
}

// outside returns an external job with its status at a URL, and more fields.
func outside(url, more string) string {
	return fmt.Sprintf(`{"service_type":"custom_http","job_id":%q,"url":%q%s}`, unique("job"), url, more)
}

func orkDeferred(c *client) {
	b := newBatch(c.T, says(`{"status":"running"}`))
	r := c.ork(sh("a", defers(outside("mock://success", ""), outside(b.URL, ""))),
		sh("b", "printf ORK_OUTPUT:; cat", "depends_on: [a]")).start(nil)
	<-b.first
	require.Equal(c, map[string]string{"a": "running", "b": "pending"}, r.statuses())
	b.become(says(`{"status":"success"}`))
	r.ends("success")
	require.Len(c, r.task("b")["output"].(obj)["a"].(obj)["deferred"], 2, "what was handed over is the output")
	require.Equal(c, "ran\n", r.written("ran"))

	r = c.ork(sh("a", defers(outside("mock://success", ""), outside("mock://failed", ""))),
		sh("b", "ls", "depends_on: [a]")).start(nil).ends("failed")
	require.Equal(c, map[string]string{"a": "failed", "b": "skipped"}, r.statuses())
	require.Equal(c, "Mock job failed", r.task("a")["error"])
}

func orkDeferredTyped(c *client) {
	r := c.ork(sh("a", defers(outside("mock://success", ""), outside("mock://success", "")),
		"output_type: {deferred: [str]}")).start(nil).ends("success")
	require.Len(c, r.task("a")["output"].(obj)["deferred"], 2)
}

func orkDeferredOdd(c *client) {
	r := c.ork(sh("none", gives(`{"deferred":[]}`)),
		sh("unnamed", gives(
			`{"deferred":[{"service_type":"custom_http","job_id":"x","url":"mock://success"},{"job_id":"odd"}]}`)),
		sh("unknown", gives(`{"deferred":[{"service_type":"abacus","job_id":"x"}]}`)),
		sh("plain", gives(`{"deferred":["a","b"]}`))).start(nil).ends("failed")
	require.Equal(c, map[string]string{"none": "success", "unnamed": "failed", "unknown": "failed", "plain": "success"}, r.statuses())
	require.Equal(c, obj{"deferred": []any{}}, r.task("none")["output"])
	require.Contains(c, r.task("unnamed")["error"], "service_type")
	require.Contains(c, r.task("unknown")["error"], `no tracker for service type "abacus"`)
}

func orkDeferredAsks(c *client) {
	b := newBatch(c.T, unavailable, says("<html>"), says(`{"state":"running"}`), says(`{"state":"completed"}`))
	r := c.ork(sh("a", defers(outside(b.URL, `,"completion_field":"state","completion_value":"completed"`)))).start(nil).ends("success")
	require.Equal(c, 4, b.times())
	require.Equal(c, "ran\n", r.written("ran"))

	b = newBatch(c.T, says(`{"status":"broken"}`))
	r = c.ork(sh("a", defers(outside(b.URL, `,"failure_value":"broken"`)))).start(nil).ends("failed")
	require.Equal(c, "Job failed with status: broken", r.task("a")["error"])
}

func orkDeferredTimeout(c *client) {
	b := newBatch(c.T, says(`{"status":"running"}`))
	r := c.ork(sh("a", defers(outside(b.URL, "")), "timeout: 5", "retries: 1")).start(nil).ends("failed")
	a := r.task("a")
	require.Equal(c, []any{"execution timeout", 2.0}, []any{a["error"], a["attempt"]})
	require.Equal(c, "ran\nran\n", r.written("ran"))
}

func orkDeferredKill(shared *client) {
	b := newBatch(shared.T, says(`{"status":"running"}`))
	p := startProcess(shared.T, shared.kind)
	c := newClient(shared.T, p.server)
	r := c.ork(sh("a", defers(outside(b.URL, "")))).start(nil)
	<-b.first
	p.restart(shared.T)
	require.Equal(c, "running", r.task("a")["status"])
	b.become(says(`{"status":"success"}`))
	r.ends("success")
	require.Equal(c, "ran\n", r.written("ran"), "it is not run again")
	require.Equal(c, 1.0, r.task("a")["attempt"])
}

// endless is a service with external jobs that run until they are canceled.
var endless = &endlessTracker{polled: map[string]int{}, canceled: map[string]int{}}

const endlessService = "endless"

type endlessTracker struct {
	mu               sync.Mutex
	polled, canceled map[string]int // by external id
}

func (t *endlessTracker) Poll(_ context.Context, x flow.External) (flow.ExternalStatus, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.polled[x.ID]++
	return flow.ExternalStatus{}, nil
}

func (t *endlessTracker) Cancel(_ context.Context, x flow.External) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.canceled[x.ID]++
	return nil
}

// calls returns how often an external job was polled and canceled.
func (t *endlessTracker) calls(id string) (polled, canceled int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.polled[id], t.canceled[id]
}

func orkDeferredCancel(c *client) {
	job := unique("job")
	r := c.ork(sh("a", defers(fmt.Sprintf(`{"service_type":%q,"job_id":%q}`, endlessService, job))),
		sh("b", "ls", "depends_on: [a]")).start(nil)
	r.until("it is asked about", func() bool { polled, _ := endless.calls(job); return polled > 0 })
	require.Equal(c, "running", r.task("a")["status"])
	status, answer := r.ask("/cancel", obj{"force": true})
	require.Equal(c, 200, status, "%v", answer)
	require.Equal(c, map[string]string{"a": "cancelled", "b": "cancelled"}, r.statuses())
	r.until("it is called off", func() bool { _, canceled := endless.calls(job); return canceled > 0 })
	// The end of another polled run shows that no more calls for the first one follow.
	c.ork(sh("a", defers(outside("mock://success", "")))).start(nil).ends("success")
	_, canceled := endless.calls(job)
	require.Equal(c, 1, canceled)
}
