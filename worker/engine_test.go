package worker_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is as much of one as workers see. Its queue holds what a test puts there.
type engine struct {
	*httptest.Server
	single bool // it knows the single form of polls only

	registered chan wire.RegisterWorker
	beats      chan wire.WorkerHeartbeat
	polls      chan wire.QueuePoll
	queue      chan wire.QueueJob
	prolonged  chan wire.QueueHeartbeat
	notes      chan wire.QueueUpdateRun
	completed  chan wire.QueueComplete
	released   chan wire.QueueRelease
	left       chan wire.DeregisterWorker

	mu       sync.Mutex
	canceled []string
	answers  map[string][]func(http.ResponseWriter) // to give first, by path
}

func newEngine(t testing.TB) *engine {
	e := &engine{
		registered: make(chan wire.RegisterWorker, 1000), beats: make(chan wire.WorkerHeartbeat, 1000),
		polls: make(chan wire.QueuePoll, 1000), queue: make(chan wire.QueueJob, 1000),
		prolonged: make(chan wire.QueueHeartbeat, 1000), notes: make(chan wire.QueueUpdateRun, 1000),
		completed: make(chan wire.QueueComplete, 1000), released: make(chan wire.QueueRelease, 1000), left: make(chan wire.DeregisterWorker, 1000),
		answers: map[string][]func(http.ResponseWriter){},
	}
	mux := http.NewServeMux()
	handle(e, mux, "/api/workers/register", e.registered)
	handle(e, mux, "/api/workers/heartbeat", e.beats)
	handle(e, mux, "/api/queue/update_run", e.notes)
	handle(e, mux, "/api/queue/complete", e.completed)
	handle(e, mux, "/api/queue/release", e.released)
	handle(e, mux, "/api/workers/deregister", e.left)
	mux.HandleFunc("/api/queue/heartbeat", e.heartbeat)
	mux.HandleFunc("/api/queue/poll", e.poll)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	return e
}

// first makes the engine give other answers to a path before it works.
func (e *engine) first(path string, answers ...func(http.ResponseWriter)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers[path] = append(e.answers[path], answers...)
}

func (e *engine) other(w http.ResponseWriter, r *http.Request) bool {
	e.mu.Lock()
	list := e.answers[r.URL.Path]
	if len(list) > 0 {
		e.answers[r.URL.Path] = list[1:]
	}
	e.mu.Unlock()
	if len(list) == 0 {
		return false
	}
	list[0](w)
	return true
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"error":"no"}`)
	}
}

// handle hands what arrives at a path to a channel.
func handle[T any](e *engine, mux *http.ServeMux, path string, to chan T) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		var body T
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if !e.other(w, r) {
			_, _ = io.WriteString(w, `{"ok":"1"}`)
		}
		to <- body
	})
}

func (e *engine) heartbeat(w http.ResponseWriter, r *http.Request) {
	var body wire.QueueHeartbeat
	_ = json.NewDecoder(r.Body).Decode(&body)
	e.mu.Lock()
	answer := wire.QueueHeartbeatAnswer{OK: "1", Canceled: []string{}}
	for _, id := range body.IDs() {
		if slices.Contains(e.canceled, id) {
			answer.Canceled = append(answer.Canceled, id)
		}
	}
	e.mu.Unlock()
	_ = json.NewEncoder(w).Encode(answer)
	e.prolonged <- body
}

func (e *engine) cancel(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.canceled = append(e.canceled, id)
}

func (e *engine) poll(w http.ResponseWriter, r *http.Request) {
	var body wire.QueuePoll
	_ = json.NewDecoder(r.Body).Decode(&body)
	e.polls <- body
	if e.other(w, r) {
		return
	}
	wait := time.Duration(body.WaitMS) * time.Millisecond
	if e.single {
		body.Max, wait = 1, 0
	}
	jobs := []wire.QueueJob{}
	select {
	case j := <-e.queue:
		jobs = append(jobs, j)
	case <-time.After(wait):
	case <-r.Context().Done():
		return
	}
	for len(jobs) < body.Max && len(e.queue) > 0 && len(jobs) > 0 {
		jobs = append(jobs, <-e.queue)
	}
	switch {
	case len(jobs) == 0:
		w.WriteHeader(http.StatusNoContent)
	case !e.single:
		_ = json.NewEncoder(w).Encode(listed(jobs))
	default:
		_ = json.NewEncoder(w).Encode(jobs[0])
	}
}

// job as the engine's queue has it.
func job(id, service string) wire.QueueJob {
	return wire.QueueJob{ID: "q-" + id, TaskID: "t", Service: service, Status: "claimed", RunID: "run-" + id, Token: "tok-" + id,
		Input: json.RawMessage(`{"n":1}`), Params: json.RawMessage(`{"p":2}`), VisibilityMS: 60_000}
}

// run starts a worker and stops it at the end of the test, or when the returned function is called.
func run(t *testing.T, w *worker.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// config of a worker that is quick and quiet.
func config(e *engine) worker.Config {
	return worker.Config{Server: e.URL, ID: "w1", Heartbeat: 20 * time.Millisecond, Wait: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler)}
}

// listed is the list form of a poll's answer.
func listed(jobs []wire.QueueJob) wire.QueueTasks {
	var list wire.QueueTasks
	for _, j := range jobs {
		list.Tasks = append(list.Tasks, wire.QueueTask{ID: j.ID, Service: j.Service, Input: j.Input, Params: j.Params, Token: j.Token, VisibilityMS: j.VisibilityMS,
			RunID: j.TaskID, FlowSlug: "f", StepSlug: "sub/x", TaskIndex: 2, TaskCount: 3, Attempt: 4})
	}
	return list
}
