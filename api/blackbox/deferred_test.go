package blackbox

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// batch is an external system with jobs. It gives a list of answers, one per request; the last one
// repeats.
type batch struct {
	*httptest.Server
	mu      sync.Mutex
	asked   int
	answers []func(http.ResponseWriter)
	first   chan struct{} // closed at the first request
}

func newBatch(t *testing.T, answers ...func(http.ResponseWriter)) *batch {
	b := &batch{answers: answers, first: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { b.answer(w) }))
	t.Cleanup(b.Close)
	return b
}

func (b *batch) answer(w http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked++; b.asked == 1 {
		close(b.first)
	}
	b.answers[0](w)
	if len(b.answers) > 1 {
		b.answers = b.answers[1:]
	}
}

// become replaces all later answers.
func (b *batch) become(answer func(http.ResponseWriter)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = []func(http.ResponseWriter){answer}
}

func (b *batch) times() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

func says(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { fmt.Fprint(w, text) }
}

func unavailable(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }

// deferring returns a flow with a script that records each run in a file, and defers to a job of a
// batch with additional fields.
func deferring(url, file, fields string) obj {
	entry := fmt.Sprintf(`{"deferred": [{"service_type": "custom_http", "job_id": "j1", "url": "%s"%s}], "data": 7}`, url, fields)
	script := obj{"cmd": "sh", "args": []any{"-c", `echo ran >> "$0"; printf %s "$1"`, file, entry}, "output_mode": "json"}
	return obj{"start": "a", "nodes": obj{"a": obj{"exec_type": "local_script", "deferred": true,
		"script": script, "post": obj{"output_key": "out"}}}}
}

// runs returns how often the script of such a flow ran.
func runs(t *testing.T, file string) int {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Count(string(text), "ran")
}

func TestAnExternalJobIsPolledUntilItsEnd(t *testing.T) {
	aloneAndTogether(t, func(t *testing.T, c *client) {
		b := newBatch(t, unavailable, says("<html>"), says(`{"status": "running"}`), says(`{"status": "success"}`))
		file := filepath.Join(t.TempDir(), "ran")
		task := c.start(deferring(b.URL, file, ""), obj{})
		c.shared(c.ends(task, "completed"), `{"out": 7}`)
		require.Equal(t, []int{4, 1}, []int{b.times(), runs(t, file)})
	})
}

func TestAFailedExternalJobFailsItsTask(t *testing.T) {
	aloneAndTogether(t, func(t *testing.T, c *client) {
		b := newBatch(t, says(`{"status": "broken"}`))
		file := filepath.Join(t.TempDir(), "ran")
		definition := deferring(b.URL, file, `, "failure_value": "broken"`)
		definition["nodes"].(obj)["a"].(obj)["on_error"] = "fail"
		task := c.start(definition, obj{})
		c.ends(task, "failed")
		require.Contains(t, fmt.Sprint(c.runs(task)), "Job failed with status: broken")
	})
}

func TestACanceledTaskStopsWaitingForItsExternalJob(t *testing.T) {
	aloneAndTogether(t, func(t *testing.T, c *client) {
		b := newBatch(t, says(`{"status": "running"}`))
		task := c.start(deferring(b.URL, filepath.Join(t.TempDir(), "ran"), ""), obj{})
		<-b.first
		c.cancel(task)
		c.ends(task, "canceled")
	})
}

func TestAnExternalJobIsPolledAfterItsMembersWereKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range []storeKind{sqliteStore, clusterStore} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBatch(t, says(`{"status": "running"}`))
			file := filepath.Join(t.TempDir(), "ran")
			p := startProcess(t, kind)
			c := newClient(t, p.server)
			task := c.start(deferring(b.URL, file, ""), obj{})
			<-b.first
			p.restart(t)
			b.become(says(`{"status": "success"}`))
			c.shared(c.ends(task, "completed"), `{"out": 7}`)
			require.Equal(t, 1, runs(t, file), "it is not begun again")
		})
	}
}
