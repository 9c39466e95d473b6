package errands

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/worker"
)

// outsideVariable passes the address of Outside to programs.
const outsideVariable = "TROUPE_ERRANDS_OUTSIDE"

// Outside is an external system in which attempts start jobs named after them. Starting an existing
// job returns that job.
type Outside struct {
	Address string // HOST:PORT
	server  *http.Server

	mu   sync.Mutex
	jobs map[string]*outsideJob
}

type outsideJob struct {
	// started by a program, which runs once per attempt; otherwise by a worker, which may be called
	// again
	program     bool
	begun       time.Time
	again       []time.Time // times of repeated starts
	endReported bool        // whether a caller knows the end of the job
	takes       time.Duration
	succeeds    bool
}

// newOutside starts the system on a host's address.
func newOutside(host string) (*Outside, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	o := &Outside{Address: l.Addr().String(), jobs: map[string]*outsideJob{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs", o.handleBegin)
	mux.HandleFunc("GET /jobs", o.handleStatus)
	o.server = &http.Server{Handler: mux}
	go func() { _ = o.server.Serve(l) }() // serves until the server is closed
	return o, nil
}

func (o *Outside) handleBegin(w http.ResponseWriter, r *http.Request) {
	id := r.FormValue("id")
	_, at, err := flow.ParseJobID(id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if j := o.jobs[id]; j != nil {
		j.again = append(j.again, time.Now())
		w.WriteHeader(http.StatusOK)
		return
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	n := h.Sum32()
	o.jobs[id] = &outsideJob{program: r.FormValue("by") == "program", begun: time.Now(),
		takes:    time.Duration(100+n%2500) * time.Millisecond,
		succeeds: at.Attempt > 1 || n%4 > 0}
	w.WriteHeader(http.StatusCreated)
}

func (o *Outside) handleStatus(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	j := o.jobs[r.FormValue("id")]
	if j == nil {
		http.Error(w, "there is no such job", http.StatusNotFound)
		return
	}
	status := "running"
	if time.Since(j.begun) >= j.takes {
		status, j.endReported = "failed", true
		if j.succeeds {
			status = "success"
		}
	}
	// a disconnected caller repeats the request
	_ = json.NewEncoder(w).Encode(map[string]string{"status": status})
}

// checkJobs compares the external jobs with the journals. A program starts one job, and no job
// starts again once an attempt waits for it. Awaited jobs exist, and attempts continue only after
// the end of their jobs. The results are the numbers of jobs and of repeated starts.
func (o *Outside) checkJobs(t *testing.T, f Figures) (jobs, adopted int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, j := range o.jobs {
		a := f.attempts[id]
		if !assert.NotNil(t, a, "a job outside was begun for %s, which no journal has", id) {
			continue
		}
		adopted += len(j.again)
		assert.False(t, j.program && len(j.again) > 0, "the program of %s began its job %d times", id, 1+len(j.again))
		for _, at := range j.again {
			assert.True(t, a.deferred == 0 || at.UnixMilli() <= a.deferred+clockSkewMS,
				"the job of %s was begun again at %v, when its attempt waited for it", id, at)
		}
		assert.False(t, a.deferred > 0 && a.ok && !j.endReported, "%s went well before anybody heard of the end of its job", id)
	}
	for id, a := range f.attempts {
		assert.False(t, a.deferred > 0 && !a.inContainer && o.jobs[id] == nil, "%s waited for a job that was never begun", id)
	}
	return len(o.jobs), adopted
}

// beginOutside carries out jobs of the services begin and begin-later.
func beginOutside(ctx context.Context, address string, job worker.Job) (any, error) {
	var n float64
	if err := json.Unmarshal(job.Input, &n); err != nil {
		return nil, worker.Fatal(fmt.Errorf("input: %w", err))
	}
	at := "http://" + address + "/jobs?id=" + url.QueryEscape(job.ID)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("beginning a job outside was answered %s", resp.Status)
	}
	return map[string]any{"data": 2 * n, "deferred": []any{map[string]any{
		"service_type": "custom_http", "job_id": job.ID, "url": at, "failure_value": "failed"}}}, nil
}
