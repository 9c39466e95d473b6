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

// engine is a fake engine for workers. Tests fill its queue.
type engine struct {
	*httptest.Server

	registered chan registered
	beats      chan wire.Heartbeat // heartbeats without claims
	polls      chan wire.PollRequest
	queue      chan wire.ClaimedJob
	prolonged  chan []wire.HeldJob
	notes      chan wire.HeldJob
	logs       chan wire.HeldJob // with output of a job
	completed  chan wire.JobReport
	reports    chan int              // number of reports in one request
	next       chan *wire.JobRequest // request for jobs that came with them
	released   chan wire.ReleaseClaims
	left       chan string
	paramsFor  chan string // tokens of requests for params

	mu       sync.Mutex
	canceled []string
	answers  map[string][]func(http.ResponseWriter) // answers to give first, by route
}

// registered is the registration of a worker with an id.
type registered struct {
	id string
	wire.WorkerRegistration
}

func newEngine(t testing.TB) *engine {
	e := &engine{
		registered: make(chan registered, 1000), beats: make(chan wire.Heartbeat, 1000),
		polls: make(chan wire.PollRequest, 1000), queue: make(chan wire.ClaimedJob, 1000),
		prolonged: make(chan []wire.HeldJob, 1000), notes: make(chan wire.HeldJob, 1000), logs: make(chan wire.HeldJob, 1000),
		completed: make(chan wire.JobReport, 1000), reports: make(chan int, 1000),
		next: make(chan *wire.JobRequest, 1000), released: make(chan wire.ReleaseClaims, 1000),
		left: make(chan string, 1000), paramsFor: make(chan string, 1000),
		answers: map[string][]func(http.ResponseWriter){},
	}
	mux := http.NewServeMux()
	handle(e, mux, "PUT", "", "register", `{"offline_after_ms":15000}`,
		func(id string, r wire.WorkerRegistration) { e.registered <- registered{id, r} })
	handle(e, mux, "POST", "/release", "release", "", func(_ string, r wire.ReleaseClaims) { e.released <- r })
	mux.HandleFunc("DELETE /v1/workers/{worker}", func(w http.ResponseWriter, r *http.Request) {
		if !e.other(w, "forget") {
			w.WriteHeader(http.StatusNoContent)
		}
		e.left <- r.PathValue("worker")
	})
	mux.HandleFunc("POST /v1/workers/{worker}/heartbeat", e.heartbeat)
	mux.HandleFunc("POST /v1/workers/{worker}/poll", e.poll)
	mux.HandleFunc("POST /v1/workers/{worker}/reports", e.report)
	mux.HandleFunc("GET /v1/jobs/{job}/params", func(w http.ResponseWriter, r *http.Request) {
		e.paramsFor <- r.URL.Query().Get("token")
		if e.other(w, "params") {
			return
		}
		_, _ = io.WriteString(w, `{"params":{"p":3},"run_input":null}`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	return e
}

// first makes the engine give these answers on a route before its own.
func (e *engine) first(route string, answers ...func(http.ResponseWriter)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers[route] = append(e.answers[route], answers...)
}

func (e *engine) other(w http.ResponseWriter, route string) bool {
	e.mu.Lock()
	list := e.answers[route]
	if len(list) > 0 {
		e.answers[route] = list[1:]
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
		_, _ = io.WriteString(w, `{"detail":"no"}`)
	}
}

// handle passes the body of each request on a route to hear. Without an answer the status is 204.
func handle[T any](e *engine, mux *http.ServeMux, method, path, route, answer string, hear func(worker string, body T)) {
	mux.HandleFunc(method+" /v1/workers/{worker}"+path, func(w http.ResponseWriter, r *http.Request) {
		var body T
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		switch {
		case e.other(w, route):
		case answer == "":
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = io.WriteString(w, answer)
		}
		hear(r.PathValue("worker"), body)
	})
}

func (e *engine) heartbeat(w http.ResponseWriter, r *http.Request) {
	var body wire.Heartbeat
	_ = json.NewDecoder(r.Body).Decode(&body)
	noted := len(body.Claims) == 1 && body.Claims[0].StatusText != ""
	route := "heartbeat"
	if noted {
		route = "note"
	}
	if !e.other(w, route) {
		_ = json.NewEncoder(w).Encode(e.acceptHeartbeat(body))
	}
	switch {
	case len(body.Claims) == 1 && len(body.Claims[0].Lines) > 0:
		e.logs <- body.Claims[0]
	case noted:
		e.notes <- body.Claims[0]
	case len(body.Claims) > 0:
		e.prolonged <- body.Claims
	default:
		e.beats <- body
	}
}

func (e *engine) acceptHeartbeat(body wire.Heartbeat) wire.HeartbeatResult {
	e.mu.Lock()
	defer e.mu.Unlock()
	answer := wire.HeartbeatResult{Registered: true, Canceled: []string{}}
	for _, c := range body.Claims {
		if slices.Contains(e.canceled, c.Job) {
			answer.Canceled = append(answer.Canceled, c.Job)
		}
	}
	return answer
}

func (e *engine) cancel(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.canceled = append(e.canceled, id)
}

func (e *engine) poll(w http.ResponseWriter, r *http.Request) {
	var body wire.PollRequest
	_ = json.NewDecoder(r.Body).Decode(&body)
	e.polls <- body
	if e.other(w, "poll") {
		return
	}
	jobs := []wire.ClaimedJob{}
	select {
	case j := <-e.queue:
		jobs = append(jobs, j)
	case <-time.After(time.Duration(body.WaitMS) * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	for len(jobs) < body.Max && len(e.queue) > 0 && len(jobs) > 0 {
		jobs = append(jobs, <-e.queue)
	}
	_ = json.NewEncoder(w).Encode(wire.ClaimedJobs{Jobs: jobs})
}

// report answers each report; "report" is the route of a single one.
func (e *engine) report(w http.ResponseWriter, r *http.Request) {
	var body wire.JobReports
	_ = json.NewDecoder(r.Body).Decode(&body)
	e.reports <- len(body.Reports)
	e.next <- body.Next
	if !e.other(w, "reports") {
		answer := wire.JobReportResults{Items: make([]wire.JobReportResult, len(body.Reports))}
		for i := range answer.Items {
			one := httptest.NewRecorder()
			if e.other(one, "report") {
				answer.Items[i].Problem = &wire.Problem{Status: one.Code, Detail: "no"}
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
	for _, report := range body.Reports {
		e.completed <- report
	}
}

// job returns a job of the engine's queue.
func job(id, service string) wire.ClaimedJob {
	return wire.ClaimedJob{ID: id, Task: "t", Flow: "f", Step: "sub/x",
		Place: wire.Place{Unit: 2, Attempt: 4}, Units: 3, Service: service, Token: "tok-" + id,
		Input: json.RawMessage(`{"n":1}`), Params: json.RawMessage(`{"p":2}`), LeaseMS: 60_000}
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

// config returns the config of a worker with short intervals and no log.
func config(e *engine) worker.Config {
	return worker.Config{Server: e.URL, ID: "w1", Heartbeat: 20 * time.Millisecond, Wait: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler)}
}
