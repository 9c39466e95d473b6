package workers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/internal/logids"
	"github.com/troupe-engine/troupe/internal/testing/certtest"
	"github.com/troupe-engine/troupe/persistence"
)

func job(service string) flow.Job {
	return flow.Job{Task: "t1", Address: flow.Address{Node: "n", Visit: 1, Attempt: 1},
		Exec: &flow.Exec{Type: flow.ExecPush, Service: service}}
}

// says is a worker that always gives the same answer.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// serve starts workers named w1, w2, … that offer "s", and registers them in this order.
func serve(t testing.TB, r *workers.Registry, handlers ...http.HandlerFunc) []*httptest.Server {
	var servers []*httptest.Server
	for i, h := range handlers {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		servers = append(servers, s)
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: fmt.Sprintf("w%d", i+1),
			URL: s.URL, Services: []string{"s", "a/b c"}}))
	}
	return servers
}

func TestACallDescribesItsJob(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	var got *http.Request
	var body string
	s := serve(t, r, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r.Clone(context.Background()), string(b)
		_, _ = io.WriteString(w, `{"result":{"b":1,"a":12345678901234567890}}`)
	})
	j := job("a/b c")
	j.Input, j.Params = json.RawMessage(`[1]`), json.RawMessage(`{"p":2}`)
	require.Equal(t, flow.Report{Worker: "w1", URL: s[0].URL, Output: json.RawMessage(`{"b":1,"a":12345678901234567890}`)},
		r.Carry(t.Context(), j))
	require.Equal(t, "POST", got.Method)
	require.Equal(t, "/exec/a/b c", got.URL.Path)
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, []string{j.Key(), j.ID()}, []string{got.Header.Get("Idempotency-Key"), got.Header.Get("Troupe-Job")})
	require.Equal(t, trace.Parent("t1", nil, j.Address), got.Header.Get("traceparent"))
	require.Equal(t, `{"input":[1],"params":{"p":2},"key":"`+j.Key()+`"}`, body)
	headers := func(names ...string) (values []string) {
		for _, name := range names {
			values = append(values, got.Header.Get("Troupe-"+name))
		}
		return values
	}
	require.Equal(t, []string{"t1", "", "n", "1", "0", "1"}, headers("Task", "Flow", "Step", "Attempt", "Unit", "Units"))
	j.Scope, j.Node, j.Unit, j.Units, j.Attempt = "sub#1", "grüße\n1", 2, 3, 4
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "w1", URL: s[0].URL,
		Services: []string{"a/b c"}, Labels: []string{"a,b", "gpu"}}))
	j.Plan, j.Exec.Labels = &flow.Plan{FlowSlug: "f"}, []string{"gpu", "a,b"}
	r.Carry(t.Context(), j)
	require.Equal(t, []string{"t1", "f", "sub/gr%C3%BC%C3%9Fe%0A1", "4", "2", "3", "gpu,a%2Cb"},
		headers("Task", "Flow", "Step", "Attempt", "Unit", "Units", "Labels"))

	r.Carry(t.Context(), job("a/b c"))
	require.Equal(t, `{"input":null,"params":{},"key":"t1.1.0.Cm4"}`, body)
}

func TestAWorkerWithACertificateOfAPrivateAuthorityIsCalled(t *testing.T) {
	ca := certtest.New(t)
	own, mine := ca.Issue(t), ca.Issue(t)
	certificates, err := transport.LoadCertificates(transport.TLSFiles{Cert: mine.Cert, Key: mine.Key,
		CA: ca.File}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(says(200, `{"result":1}`))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	carry := func(o workers.Options) flow.Report {
		r := open(t, newStore(t), o)
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "w1", URL: s.URL, Services: []string{"s"}}))
		return r.Carry(t.Context(), job("s"))
	}
	require.Equal(t, "1", string(carry(workers.Options{TLS: certificates.Client}).Output), "it is believed, and is shown who calls")
	require.Equal(t, "all workers failed", carry(workers.Options{}).Error)
}

func TestWorkerAnswers(t *testing.T) {
	const next = "all workers failed"
	for name, tt := range map[string]struct {
		status       int
		body         string
		output, want string
		fatal        bool
	}{
		"a result":                            {200, `{"result":[1]}`, `[1]`, "", false},
		"no result is null":                   {200, `{}`, ``, "", false},
		"an error keeps its text":             {200, `{"result":1,"error":"bad input"}`, ``, "bad input", false},
		"an error counts whatever the status": {503, `{"error":"bad input"}`, ``, "bad input", false},
		"an error may be fatal":               {200, `{"error":"never","fatal":true}`, ``, "never", true},
		"an error that is null is none":       {200, `{"result":1,"error":null}`, `1`, "", false},
		"a bad status without an error text": {500, `{"message":"oops"}`, ``,
			"the worker answered 500 Internal Server Error without an error text", false},
		"too large": {200, `{"result":"` + strings.Repeat("x",
			1000) + `"}`, ``, "the worker's answer is larger than 1000 bytes", false},
		"a page": {404, `404 page not found`, ``, next, false},
		"null":   {200, `null`, ``, next, false},
		"a list": {200, `[]`, ``, next, false},
		"an error of another type": {200, `{"error":{"code":1}}`, ``,
			"the worker answered 200 OK with what is no answer in JSON (json: cannot unmarshal " +
				"object into Go struct field .error of type string): {\"error\":{\"code\":1}}", false},
		"half an object": {200, `{"result":`, ``,
			"the worker answered 200 OK with what is no answer in JSON (unexpected end of JSON " +
				"input): {\"result\":", false},
		"a number that is none": {200, `{"result":NaN}`, ``,
			"the worker answered 200 OK with what is no answer in JSON (invalid character 'N' " +
				"looking for beginning of value): {\"result\":NaN}", false},
		"a redirect": {307, `{"result":1}`, ``, next, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, newStore(t), workers.Options{MaxAnswer: 1000})
			s := serve(t, r, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				says(tt.status, tt.body)(w, r)
			})
			want := flow.Report{Error: tt.want, Fatal: tt.fatal, Worker: "w1", URL: s[0].URL}
			if tt.output != "" {
				want.Output = json.RawMessage(tt.output)
			}
			if tt.want == next {
				want.Worker, want.URL = "", ""
			}
			require.Equal(t, want, r.Carry(t.Context(), job("s")))
		})
	}
}

func TestTheNextWorkerIsCalledIfOneDoesNotAnswer(t *testing.T) {
	r := open(t, newStore(t), workers.Options{CallTimeout: 200 * time.Millisecond})
	block := make(chan struct{})
	s := serve(t, r,
		says(200, `no json`),
		func(_ http.ResponseWriter, _ *http.Request) { <-block },
		says(200, `{}`),
		says(200, `{"result":4}`))
	defer close(block)
	s[2].Close()
	var rep flow.Report
	require.Eventually(t, func() bool { // w4 may be too slow, too
		rep = r.Carry(t.Context(), job("s"))
		return rep.Error == ""
	}, patience, time.Millisecond)
	require.Equal(t, "w4", rep.Worker)
	require.Equal(t, `4`, string(rep.Output))
}

func TestAStandbyWorkerGetsNoJobsThatALiveOneOffers(t *testing.T) {
	var c clock
	r := open(t, newStore(t), workers.Options{Now: c.Load, Standby: []string{"w1"}})
	serve(t, r, says(200, `{"result":1}`))
	require.Equal(t, "w1", r.Carry(t.Context(), job("s")).Worker)
	require.False(t, r.Outranked("w1", "s"))

	serve := httptest.NewServer(says(200, `{"result":2}`))
	t.Cleanup(serve.Close)
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "own", URL: serve.URL, Services: []string{"s"}}))
	require.Equal(t, "own", r.Carry(t.Context(), job("s")).Worker)
	require.Equal(t, "w1", r.Carry(t.Context(), job("a/b c")).Worker, "that is another service")
	require.NoError(t, r.Deregister(t.Context(), "own"))
	require.Equal(t, "w1", r.Carry(t.Context(), job("s")).Worker)

	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "puller", URL: "queue", Type: "async", Services: []string{"s"}}))
	require.True(t, r.Outranked("w1", "s"), "however it gets its jobs")
	require.False(t, r.Outranked("puller", "s"))
	require.Equal(t, "no worker for service s", r.Carry(t.Context(), job("s")).Error)
	c.pass(15*time.Second + time.Millisecond)
	require.NoError(t, r.Heartbeat(t.Context(), "w1", 0))
	require.Equal(t, "w1", r.Carry(t.Context(), job("s")).Worker, "the other one is gone")
}

func TestCandidatesForAJob(t *testing.T) {
	var c clock
	r := open(t, newStore(t), workers.Options{Now: c.Load})
	require.Equal(t, flow.Report{Error: "no worker for service s"}, r.Carry(t.Context(), job("s")))

	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "puller", URL: "queue", Type: "async", Services: []string{"s"}}))
	require.Equal(t, "no worker for service s", r.Carry(t.Context(), job("s")).Error)

	serve(t, r, says(200, `{"result":1}`))
	require.Equal(t, "w1", r.Carry(t.Context(), job("s")).Worker)
	require.Equal(t, "no worker for service other", r.Carry(t.Context(), job("other")).Error)

	c.pass(15 * time.Second)
	require.Equal(t, "w1", r.Carry(t.Context(), job("s")).Worker)
	c.pass(time.Millisecond)
	require.Equal(t, "no worker for service s", r.Carry(t.Context(), job("s")).Error)
	require.NoError(t, r.Heartbeat(t.Context(), "w1", 0))
	require.Equal(t, "w1", r.Carry(t.Context(), job("s")).Worker)

	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "w1", URL: "http://127.0.0.1:1", Services: []string{"other"}}))
	require.Equal(t, "no worker for service s", r.Carry(t.Context(), job("s")).Error)
	require.Equal(t, "all workers failed", r.Carry(t.Context(), job("other")).Error)
}

// knownBefore returns a store with push workers, one per service, that have long been silent.
func knownBefore(t *testing.T, urls map[string]string) persistence.Store {
	store := newStore(t)
	for id, url := range urls {
		require.NoError(t, store.PutWorker(t.Context(), persistence.Worker{ID: id, URL: url, Type: "http", Services: []string{id}}))
	}
	return store
}

func TestSilenceDuringADowntimeIsTolerated(t *testing.T) {
	here := httptest.NewServer(says(200, `{"result":1}`))
	t.Cleanup(here.Close)
	calls := 0
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { calls++ }))
	t.Cleanup(stranger.Close)
	late, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, late.Close())
	store := knownBefore(t, map[string]string{"here": here.URL, "stranger": stranger.URL, "late": "http://" + late.Addr().String()})

	r := open(t, store, workers.Options{OfflineTTL: time.Hour})
	require.Equal(t, "no worker for service unknown", r.Carry(t.Context(), job("unknown")).Error)
	require.Equal(t, "here", r.Carry(t.Context(), job("here")).Worker)
	require.Equal(t, "no worker for service stranger", r.Carry(t.Context(), job("stranger")).Error)
	require.Equal(t, 1, calls, "who was reached is not asked again")
	time.AfterFunc(100*time.Millisecond, func() {
		if l, err := net.Listen("tcp", late.Addr().String()); err == nil {
			s := &httptest.Server{Listener: l, Config: &http.Server{Handler: says(200, `{"result":1}`)}}
			s.Start()
			t.Cleanup(s.Close)
		}
	})
	require.Equal(t, "late", r.Carry(t.Context(), job("late")).Worker)
}

func TestSilenceIsToleratedForALimitedTime(t *testing.T) {
	const ttl = 600 * time.Millisecond
	here := httptest.NewServer(says(200, `{"result":1}`))
	t.Cleanup(here.Close)
	store := knownBefore(t, map[string]string{"here": here.URL, "gone": "http://127.0.0.1:1"})
	opening := time.Now()
	r := open(t, store, workers.Options{OfflineTTL: ttl})
	require.Equal(t, "no worker for service gone", r.Carry(t.Context(), job("gone")).Error)
	require.Greater(t, time.Since(opening), ttl/2)
	require.Equal(t, "no worker for service here", r.Carry(t.Context(), job("here")).Error, "by now it should have been heard")
}

func TestTheOrderOfCandidates(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	ok := says(200, `{"result":1}`)
	serve(t, r, ok, ok, ok)
	for id, load := range map[string]int{"w1": 5, "w2": 2, "w3": 2} {
		require.NoError(t, r.Heartbeat(t.Context(), id, load))
	}
	require.Equal(t, "w1", r.Carry(t.Context(), job("s")).Worker)
	byLoad := job("s")
	byLoad.Exec.ByLoad = true
	require.Equal(t, "w2", r.Carry(t.Context(), byLoad).Worker)
}

func TestCallsInFlightCountAsLoad(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	arrived, leave := make(chan struct{}), make(chan struct{})
	wait := func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-leave
		_, _ = io.WriteString(w, `{}`)
	}
	serve(t, r, wait, wait, wait)
	j := job("s")
	j.Exec.ByLoad = true
	asked := make(chan string)
	for range 3 {
		go func() { asked <- r.Carry(context.Background(), j).Worker }()
		<-arrived
	}
	close(leave)
	require.ElementsMatch(t, []string{"w1", "w2", "w3"}, []string{<-asked, <-asked, <-asked})
}

func TestMaxAttemptsLimitsTheWorkersTried(t *testing.T) {
	for name, tt := range map[string]struct {
		attempts, want int
	}{"none asks everybody": {0, 4}, "a negative count too": {-1, 4}, "two": {2, 2}, "more than there are": {9, 4}} {
		t.Run(name, func(t *testing.T) {
			r := open(t, newStore(t), workers.Options{})
			var asked atomic.Int32
			h := func(http.ResponseWriter, *http.Request) { asked.Add(1) }
			serve(t, r, h, h, h, h)
			j := job("s")
			j.Exec.MaxAttempts, j.Exec.TryDelayMS = tt.attempts, 20
			begun := time.Now()
			require.Equal(t, "all workers failed", r.Carry(t.Context(), j).Error)
			require.Equal(t, tt.want, int(asked.Load()))
			require.GreaterOrEqual(t, time.Since(begun), time.Duration(tt.want-1)*20*time.Millisecond)
		})
	}
}

func TestAWithdrawnJobIsNotOfferedToOthers(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	serve(t, r, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done() // the worker notices it
		close(left)
	}, func(http.ResponseWriter, *http.Request) { t.Error("asked") })
	require.Equal(t, flow.Report{Error: "context canceled"}, r.Carry(ctx, job("s")))
	<-left
}

func TestAJobMayTakeLongerThanTheCallTimeout(t *testing.T) {
	r := open(t, newStore(t), workers.Options{CallTimeout: 20 * time.Millisecond})
	serve(t, r, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(100 * time.Millisecond):
			_, _ = io.WriteString(w, `{"result":1}`)
		case <-r.Context().Done():
		}
	})
	require.Equal(t, "all workers failed", r.Carry(t.Context(), job("s")).Error)
	j := job("s")
	// the second value is more than a Duration holds
	for _, ms := range []int64{patience.Milliseconds(), 10_000_000_000_000} {
		j.TimeoutMS = ms
		require.Empty(t, r.Carry(t.Context(), j).Error)
	}
}

func TestAnAddressThatIsNotAllowedIsNotCalled(t *testing.T) {
	store := newStore(t)
	// It was allowed when it registered; the operator has changed the configuration since.
	require.NoError(t, store.PutWorker(t.Context(),
		persistence.Worker{ID: "w", URL: "http://169.254.169.254:80", Type: "http",
			Services: []string{"s"}, LastHeartbeat: time.Now().UnixMilli()}))
	var refused refusals
	r := open(t, store, workers.Options{Logger: refused.logger()})
	require.Equal(t, "all workers failed", r.Carry(t.Context(), job("s")).Error)
	require.Contains(t, refused.String(), "connect to 169.254.169.254:80: workers are not allowed there")
}

func BenchmarkCarry(b *testing.B) {
	r := open(b, newStore(b), workers.Options{})
	serve(b, r, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"result":{"ok":true}}`)
	})
	j := job("s")
	j.Input = json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if rep := r.Carry(b.Context(), j); rep.Error != "" {
				b.Fatal(rep.Error)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func TestAJobGoesToWorkersWithAllItsLabels(t *testing.T) {
	r := open(t, newStore(t), workers.Options{})
	servers := serve(t, r, says(200, `{"result":1}`), says(200, `{"result":1}`), says(200, `{"result":1}`))
	for i, labels := range [][]string{nil, {"gpu"}, {"x", "gpu", "eu", "gpu"}} {
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: fmt.Sprintf("w%d", i+1),
			URL: servers[i].URL, Services: []string{"s"}, Labels: labels}))
	}
	for want, labels := range map[string][]string{"w1": nil, "w2": {"gpu"}, "w3": {"gpu", "eu"}} {
		j := job("s")
		j.Exec.Labels = labels
		require.Equal(t, want, r.Carry(t.Context(), j).Worker)
	}
	j := job("s")
	j.Exec.Labels = []string{"gpu", "us"}
	require.Equal(t, flow.Report{Error: "no worker for service s with the labels gpu, us"}, r.Carry(t.Context(), j))
}

func TestAWorkerThatDoesNotAnswerIsLoggedOnceUntilItDoes(t *testing.T) {
	var log bytes.Buffer
	r := open(t, newStore(t), workers.Options{Logger: slog.New(logids.Handler(slog.NewTextHandler(&log, nil)))})
	var answer atomic.Value
	answer.Store("no JSON")
	serve(t, r, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer.Load().(string)) })
	for i, a := range []string{"no JSON", "no JSON", "{}", "[]"} {
		answer.Store(a)
		r.Carry(t.Context(), job("s"))
		require.Equal(t, []int{1, 1, 1, 2}[i], strings.Count(log.String(), "worker did not respond"))
	}
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "status 200 OK without a JSON object")
	require.Contains(t, log.String(), "worker=w1")
	require.Regexp(t, "task=t1 node=n unit=0 attempt=1 trace_id=[0-9a-f]{32} span_id=[0-9a-f]{16}", log.String())
}

func TestAnAttachedWorkerIsListedWhileItSendsHeartbeats(t *testing.T) {
	store, now := newStore(t), int64(1_000_000)
	r := open(t, store, workers.Options{OfflineTTL: 15 * time.Second, Now: func() int64 { return now }})
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "w", URL: "attached",
		Type: "attached", Services: []string{"s"}, Labels: []string{"gpu"}}))
	require.True(t, r.Listed(&flow.Exec{Service: "s", Labels: []string{"gpu"}}))
	require.False(t, r.Listed(&flow.Exec{Service: "s", Labels: []string{"fpga"}}))
	require.False(t, r.Listed(&flow.Exec{Service: "other"}))
	now += 16_000
	require.False(t, r.Listed(&flow.Exec{Service: "s"}))
}
