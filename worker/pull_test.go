package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

func TestLargeParamsAreAskedForWithTheTokenOfTheClaim(t *testing.T) {
	e := newEngine(t)
	j := job("j1", "echo")
	j.Params, j.ParamsKey = nil, "k"
	j.Token = "of & the claim"
	e.queue <- j
	w := worker.New(config(e))
	got := make(chan json.RawMessage, 1)
	w.Handle("echo", func(_ context.Context, j worker.Job) (any, error) {
		got <- j.Params
		return nil, nil
	})
	run(t, w)
	require.Equal(t, "of & the claim", <-e.paramsFor)
	require.JSONEq(t, `{"p":3}`, string(<-got))
}

func TestLargeParamsAreFetchedDespiteAnswersOfOtherServers(t *testing.T) {
	e := newEngine(t)
	for _, text := range []string{"", "{}", `{"params":null}`, "<html>"} {
		e.first("params", func(w http.ResponseWriter) { _, _ = io.WriteString(w, text) })
	}
	j := job("j1", "echo")
	j.Params, j.ParamsKey = nil, "k"
	e.queue <- j
	w := worker.New(config(e))
	got := make(chan json.RawMessage, 1)
	w.Handle("echo", func(_ context.Context, j worker.Job) (any, error) {
		got <- j.Params
		return nil, nil
	})
	run(t, w)
	require.JSONEq(t, `{"p":3}`, string(soon(t, got)))
}

func TestAPullWorkerRegistersAndGivesSignsOfLife(t *testing.T) {
	e := newEngine(t)
	e.first("register", status(503), func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") })
	w := worker.New(config(e))
	w.Handle("b", nil)
	w.Handle("a", nil)
	run(t, w)
	want := registered{"w1", wire.WorkerRegistration{Services: []string{"a", "b"}}}
	for range 3 { // until the engine accepts it
		require.Equal(t, want, <-e.registered)
	}
	require.Equal(t, wire.Heartbeat{}, <-e.beats)

	// the engine has lost its registration
	e.first("heartbeat", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"registered":false,"canceled":[]}`) })
	require.Equal(t, want, <-e.registered)
	<-e.beats
}

func TestAWorkerTellsItsLabels(t *testing.T) {
	for _, push := range []bool{false, true} {
		e := newEngine(t)
		cfg := config(e)
		cfg.Push, cfg.Pull, cfg.URL = push, true, "http://127.0.0.1:0"
		cfg.Labels = []string{"gpu", "eu"}
		w := worker.New(cfg)
		w.Handle("s", nil)
		run(t, w)
		require.Equal(t, cfg.Labels, (<-e.registered).Labels)
		require.Equal(t, cfg.Labels, (<-e.polls).Labels)
	}
}

func TestTheEnginesAddress(t *testing.T) {
	for _, suffix := range []string{"", "/", "/api", "/api/", "/v1"} {
		t.Run("ends in "+suffix, func(t *testing.T) {
			e := newEngine(t)
			t.Setenv("REGISTRY_URL", e.URL+suffix)
			w := worker.New(worker.Config{Logger: config(e).Logger})
			w.Handle("s", nil)
			run(t, w)
			<-e.registered
			<-e.polls
		})
	}
}

func TestAPulledJobIsCarriedOutAndCompleted(t *testing.T) {
	for name, tt := range map[string]struct {
		handler worker.Handler
		want    wire.JobReport
	}{
		"its result is JSON": {func(context.Context, worker.Job) (any, error) { return map[string]int{"a": 1}, nil },
			wire.JobReport{Output: json.RawMessage(`{"a":1}`)}},
		"raw JSON stays": {func(context.Context, worker.Job) (any, error) { return json.RawMessage(`12345678901234567890`), nil },
			wire.JobReport{Output: json.RawMessage(`12345678901234567890`)}},
		"no result is null": {func(context.Context, worker.Job) (any, error) { return nil, nil },
			wire.JobReport{Output: json.RawMessage(`null`)}},
		"an error": {func(context.Context, worker.Job) (any, error) { return nil, errors.New("no luck") },
			wire.JobReport{Error: "no luck"}},
		"an error without a text": {func(context.Context, worker.Job) (any, error) { return nil, errors.New("") },
			wire.JobReport{Error: "failed"}},
		"a fatal error": {func(context.Context, worker.Job) (any, error) {
			return nil, fmt.Errorf("it is: %w", worker.Fatal(errors.New("never")))
		}, wire.JobReport{Error: "it is: never", Fatal: true}},
		"a panic": {func(context.Context, worker.Job) (any, error) { panic("boom") },
			wire.JobReport{Error: "handler panicked: boom"}},
		"a result that is no JSON": {func(context.Context, worker.Job) (any, error) { return json.RawMessage(`{`), nil },
			wire.JobReport{Error: "the handler's result cannot be sent: it is not valid JSON", Fatal: true}},
		"a log": {func(_ context.Context, j worker.Job) (any, error) {
			fmt.Fprint(j.Log, "said ", j.ID, " ", j.Service, " ", string(j.Input), " ", string(j.Params))
			return true, nil
		}, wire.JobReport{Output: json.RawMessage(`true`),
			PrintedLines: wire.PrintedLines{Lines: []wire.LogLine{{Stream: "log", Text: `said j s {"n":1} {"p":2}`,
				Part: true}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			w := worker.New(config(e))
			w.Handle("s", tt.handler)
			run(t, w)
			e.queue <- job("j", "s")
			tt.want.Job, tt.want.Token = "j", "tok-j"
			done := <-e.completed
			for i := range done.Lines {
				done.Lines[i].At = wire.Time{}
			}
			require.Equal(t, tt.want, done)
			require.Equal(t, wire.PollRequest{JobRequest: wire.JobRequest{Services: []string{"s"}, Max: 32}, WaitMS: 5000}, <-e.polls)
		})
	}
}

func TestAJobTellsWhereItComesFrom(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	got := make(chan worker.Job, 1)
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
		j.Log = nil
		got <- j
		return nil, nil
	})
	run(t, w)
	e.queue <- job("1", "s")
	require.Equal(t, worker.Job{ID: "1", Service: "s", Input: json.RawMessage(`{"n":1}`), Params: json.RawMessage(`{"p":2}`),
		Task: "t", Flow: "f", Step: "sub/x", Unit: 2, Units: 3, Attempt: 4}, <-got)
	<-e.completed
}

func TestOnlyOfferedServicesAreCarriedOut(t *testing.T) {
	e := newEngine(t)
	cfg := config(e)
	cfg.Services = []string{"b"}
	w := worker.New(cfg)
	echo := func(_ context.Context, j worker.Job) (any, error) { return j.Service, nil }
	w.Handle("a", echo)
	w.Handle("b", echo)
	run(t, w)
	require.Equal(t, []string{"b"}, (<-e.registered).Services)
	e.queue <- job("1", "a")
	require.Equal(t, "unknown service: a", (<-e.completed).Error)
	e.queue <- job("2", "b")
	require.Empty(t, (<-e.completed).Error)

	require.Error(t, worker.New(config(e)).Run(t.Context()))
	cfg.Services = []string{"c"}
	require.ErrorContains(t, worker.New(cfg).Run(t.Context()), `"c" has no handler`)
	for _, name := range []string{"", "a\x00b", "\xff"} {
		w := worker.New(config(e))
		w.Handle(name, echo)
		require.ErrorContains(t, w.Run(t.Context()), "service "+strconv.Quote(name)+": a name is UTF-8 text")
		cfg := config(e)
		cfg.Labels = []string{"gpu", name}
		w = worker.New(cfg)
		w.Handle("a", echo)
		require.ErrorContains(t, w.Run(t.Context()), "label "+strconv.Quote(name)+": a name is UTF-8 text")
	}
}

func TestAServerWithoutAnAddressIsRefusedAtOnce(t *testing.T) {
	for _, server := range []string{"bogus", "localhost:8070", "ftp://localhost", "http://"} {
		w := worker.New(worker.Config{Server: server})
		w.Handle("a", func(context.Context, worker.Job) (any, error) { return nil, nil })
		require.ErrorContains(t, w.Run(t.Context()), "want http://host:port", server)
	}
}

func TestNoMoreThanConcurrencyJobsAreAtWork(t *testing.T) {
	e := newEngine(t)
	cfg := config(e)
	cfg.Concurrency = 2
	var now, most atomic.Int32
	w := worker.New(cfg)
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil, nil
	})
	for i := range 20 {
		e.queue <- job(fmt.Sprint(i), "s")
	}
	stop := run(t, w)
	for range 20 {
		<-e.completed
	}
	stop()
	require.Equal(t, int32(2), most.Load())
	for len(e.polls) > 0 {
		require.LessOrEqual(t, (<-e.polls).Max, 2)
	}
}

func TestAWorkerWithManySlotsHasTwoPollsUnderWay(t *testing.T) {
	e := newEngine(t)
	cfg := config(e)
	cfg.Concurrency = 20
	w := worker.New(cfg)
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return nil, nil })
	run(t, w)
	require.Equal(t, []int{10, 10}, []int{(<-e.polls).Max, (<-e.polls).Max}, "they share the slots")
	for i := range 4 {
		e.queue <- job(fmt.Sprint(i), "s")
		<-e.completed
		<-e.polls
	}
}

func TestAnOutageIsLoggedOnce(t *testing.T) {
	e := newEngine(t)
	e.first("poll", status(503), status(503), status(503), status(503))
	cfg, said := config(e), &lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(said, nil))
	w := worker.New(cfg)
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return nil, nil })
	stop := run(t, w)
	for range 4 + 2 { // both polls wait
		<-e.polls
	}
	e.queue <- job("1", "s")
	<-e.completed
	stop()
	require.Equal(t, 1, strings.Count(said.String(), "fetching jobs failed"), said.String())
}

// lines collects the output of a logger.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}
