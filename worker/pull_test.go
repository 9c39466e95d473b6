package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
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

func TestAPullWorkerRegistersAndGivesSignsOfLife(t *testing.T) {
	e := newEngine(t)
	e.first("register", status(503), func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") })
	w := worker.New(config(e))
	w.Handle("b", nil)
	w.Handle("a", nil)
	run(t, w)
	want := registered{"w1", wire.Registration{Services: []string{"a", "b"}}}
	for range 3 { // until the engine takes it
		require.Equal(t, want, <-e.registered)
	}
	require.Equal(t, wire.Heartbeat{}, <-e.beats)

	e.first("heartbeat", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"registered":false,"canceled":[]}`) }) // the engine has forgotten it
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
		want    wire.Report
	}{
		"its result is JSON": {func(context.Context, worker.Job) (any, error) { return map[string]int{"a": 1}, nil },
			wire.Report{Output: json.RawMessage(`{"a":1}`)}},
		"raw JSON stays": {func(context.Context, worker.Job) (any, error) { return json.RawMessage(`12345678901234567890`), nil },
			wire.Report{Output: json.RawMessage(`12345678901234567890`)}},
		"no result is null": {func(context.Context, worker.Job) (any, error) { return nil, nil },
			wire.Report{Output: json.RawMessage(`null`)}},
		"an error": {func(context.Context, worker.Job) (any, error) { return nil, errors.New("no luck") },
			wire.Report{Error: "no luck"}},
		"an error without a text": {func(context.Context, worker.Job) (any, error) { return nil, errors.New("") },
			wire.Report{Error: "failed"}},
		"a fatal error": {func(context.Context, worker.Job) (any, error) {
			return nil, fmt.Errorf("it is: %w", worker.Fatal(errors.New("never")))
		}, wire.Report{Error: "it is: never", Fatal: true}},
		"a panic": {func(context.Context, worker.Job) (any, error) { panic("boom") },
			wire.Report{Error: "handler panicked: boom"}},
		"a result that is no JSON": {func(context.Context, worker.Job) (any, error) { return json.RawMessage(`{`), nil },
			wire.Report{Error: "the handler's result cannot be sent: it is not valid JSON", Fatal: true}},
		"a log": {func(_ context.Context, j worker.Job) (any, error) {
			fmt.Fprint(j.Log, "said ", j.ID, " ", j.Service, " ", string(j.Input), " ", string(j.Params))
			return true, nil
		}, wire.Report{Output: json.RawMessage(`true`), Log: `said j s {"n":1} {"p":2}`}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			w := worker.New(config(e))
			w.Handle("s", tt.handler)
			run(t, w)
			e.queue <- job("j", "s")
			tt.want.Job, tt.want.Token = "j", "tok-j"
			require.Equal(t, tt.want, <-e.completed)
			require.Equal(t, wire.Poll{Services: []string{"s"}, Max: 64, WaitMS: 5000}, <-e.polls)
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

func TestAClaimIsProlongedUntilTheJobIsCanceled(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	causes := make(chan error, 1)
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	stop := run(t, w)
	j := job("1", "s")
	j.LeaseMS = 90
	e.queue <- j
	for range 3 {
		require.Equal(t, []wire.HeldClaim{{Job: "1", Token: "tok-1"}}, <-e.prolonged)
	}
	e.cancel("1")
	require.ErrorContains(t, <-causes, "nobody waits for this job")
	stop()
	require.Empty(t, e.completed)
}

func TestAWorkerHearsSoonThatAJobIsCanceled(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e)) // which gives a sign of life every 20 ms
	canceled := make(chan struct{})
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		<-ctx.Done()
		close(canceled)
		return nil, ctx.Err()
	})
	run(t, w)
	e.cancel("1")
	begun := time.Now()
	e.queue <- job("1", "s") // whose claim is prolonged every 20 s
	<-canceled
	require.Less(t, time.Since(begun), 15*time.Second)
}

func TestAnOldAnswerDoesNotCancelTheSameJobThatCameAgain(t *testing.T) {
	e, asked, again := newEngine(t), make(chan struct{}), make(chan struct{})
	e.first("heartbeat", func(w http.ResponseWriter) { // about the first claim, which is lost meanwhile
		close(asked)
		<-again
		_, _ = io.WriteString(w, `{"registered":true,"canceled":["1"]}`)
	})
	cfg := config(e)
	cfg.Heartbeat = time.Hour // of the worker, not of its claims
	w := worker.New(cfg)
	var calls atomic.Int32
	begun, canceled := make(chan int32, 2), make(chan int32, 2)
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		n := calls.Add(1)
		begun <- n
		<-ctx.Done()
		canceled <- n
		return nil, ctx.Err()
	})
	run(t, w)
	j := job("1", "s")
	j.LeaseMS = 9_000 // a heartbeat may take 3 s
	e.queue <- j
	soon(t, begun)
	soon(t, asked)
	j.Token = "newer"
	e.queue <- j
	soon(t, begun)
	close(again)
	require.EqualValues(t, 1, soon(t, canceled))
	require.Equal(t, "tok-1", soon(t, e.prolonged)[0].Token)
	require.Equal(t, "newer", soon(t, e.prolonged)[0].Token)
	require.Empty(t, canceled)
	e.cancel("1")
	require.EqualValues(t, 2, soon(t, canceled))
}

func TestNotesDoNotKeepClaimsFromBeingProlonged(t *testing.T) {
	e := newEngine(t)
	cfg := config(e)
	cfg.NoteAfter = time.Nanosecond
	noted := make(chan struct{})
	hang := func(http.ResponseWriter) { <-noted }
	e.first("note", hang)
	w := worker.New(cfg)
	leave := make(chan struct{})
	w.Handle("s", func(context.Context, worker.Job) (any, error) { <-leave; return nil, nil })
	run(t, w)
	defer close(leave)
	defer close(noted)
	e.queue <- job("1", "s")
	for range 3 {
		<-e.prolonged
	}
}

func TestClaimsAreProlongedTogether(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	leave := make(chan struct{})
	w.Handle("s", func(context.Context, worker.Job) (any, error) { <-leave; return nil, nil })
	for _, id := range []string{"1", "2", "3"} {
		j := job(id, "s")
		j.LeaseMS = 150
		e.queue <- j
	}
	run(t, w)
	defer close(leave)
	for {
		if claims := <-e.prolonged; len(claims) == 3 {
			require.ElementsMatch(t, []wire.HeldClaim{{Job: "1", Token: "tok-1"}, {Job: "2", Token: "tok-2"}, {Job: "3", Token: "tok-3"}}, claims)
			return
		}
	}
}

func TestOnlyLongJobsAreSaidToBeRunning(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		long  bool
	}{"an hour is not reached": {time.Hour, false}, "what is reached": {50 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			cfg := config(e)
			cfg.NoteAfter = tt.after
			w := worker.New(cfg)
			leave := make(chan struct{})
			w.Handle("s", func(context.Context, worker.Job) (any, error) { <-leave; return nil, nil })
			run(t, w)
			e.queue <- job("1", "s")
			if tt.long {
				require.Equal(t, wire.HeldClaim{Job: "1", Token: "tok-1", Note: "running"}, <-e.notes)
			}
			close(leave)
			<-e.completed
			require.Empty(t, e.notes)
		})
	}
}

func TestAResultIsDeliveredInTheEnd(t *testing.T) {
	e := newEngine(t)
	hangUp := func(w http.ResponseWriter) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}
	e.first("reports", status(503), hangUp, status(429))
	e.first("report", status(503), status(429))
	w := worker.New(config(e))
	var calls atomic.Int32
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return calls.Add(1), nil })
	run(t, w)
	e.queue <- job("1", "s")
	for range 6 {
		done := <-e.completed
		require.Equal(t, "1", done.Job)
		require.Equal(t, `1`, string(done.Output))
	}
}

func TestARefusedResultFailsTheJob(t *testing.T) {
	for _, route := range []string{"report", "reports"} {
		t.Run(route, func(t *testing.T) { refusedResult(t, route) })
	}
}

func refusedResult(t *testing.T, route string) {
	e := newEngine(t)
	e.first(route, status(413))
	w := worker.New(config(e))
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return strings.Repeat("x", 100), nil })
	run(t, w)
	e.queue <- job("1", "s")
	require.Empty(t, (<-e.completed).Error)
	done := <-e.completed
	require.Contains(t, done.Error, "the result was refused: the engine answered 413")
	require.True(t, done.Fatal)
}

func TestALostClaimsResultIsDropped(t *testing.T) {
	e := newEngine(t)
	e.first("report", status(409))
	w := worker.New(config(e))
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return 1, nil })
	run(t, w)
	e.queue <- job("1", "s")
	e.queue <- job("2", "s")
	require.ElementsMatch(t, []string{"1", "2"}, []string{(<-e.completed).Job, (<-e.completed).Job})
	require.Empty(t, e.completed)
}

func TestJobsAtWorkMayFinish(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	begun, leave := make(chan struct{}), make(chan struct{})
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		close(begun)
		<-leave
		return "done", ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	e.queue <- job("1", "s")
	<-begun
	cancel()
	close(leave)
	require.NoError(t, <-ended)
	require.Equal(t, `"done"`, string((<-e.completed).Output))
	require.Empty(t, e.completed)
}

func TestJobsThatHaveNotBegunAreGivenBack(t *testing.T) {
	e := newEngine(t)
	e.first("poll", func(w http.ResponseWriter) { // more than were asked for
		_ = json.NewEncoder(w).Encode(wire.ClaimedJobs{Jobs: []wire.ClaimedJob{job("1", "s"), job("2", "s"), job("3", "s")}})
	})
	cfg := config(e)
	cfg.Concurrency = 1
	w := worker.New(cfg)
	begun, leave := make(chan string, 3), make(chan struct{})
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
		begun <- j.ID
		<-leave
		return nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	first := <-begun
	cancel()
	released := (<-e.released).Claims // while the first job is at work
	close(leave)
	require.NoError(t, <-ended)
	require.Equal(t, first, (<-e.completed).Job)
	require.Len(t, released, 2)
	for _, c := range released {
		require.NotEqual(t, first, c.Job)
		require.Equal(t, "tok-"+c.Job, c.Token)
	}
	require.Empty(t, begun)
	require.Empty(t, e.completed)
}

func TestJobsThatDoNotFinishAreGivenBackWhenTheyHaveStopped(t *testing.T) {
	e := newEngine(t)
	cfg := config(e)
	cfg.Grace = 20 * time.Millisecond
	w := worker.New(cfg)
	begun, leave := make(chan struct{}, 2), make(chan struct{})
	t.Cleanup(func() { close(leave) })
	w.Handle("heeds", func(ctx context.Context, _ worker.Job) (any, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	w.Handle("does not", func(context.Context, worker.Job) (any, error) {
		begun <- struct{}{}
		<-leave
		return nil, nil
	})
	stop := run(t, w)
	e.queue <- job("1", "heeds")
	e.queue <- job("2", "does not")
	<-begun
	<-begun
	stop()
	require.Empty(t, e.completed)
	require.Equal(t, []wire.HeldClaim{{Job: "1", Token: "tok-1"}}, (<-e.released).Claims)
	require.Empty(t, e.released, "a job may be at work once only")
}

func TestAWorkerSaysGoodbye(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	w.Handle("s", nil)
	stop := run(t, w)
	<-e.registered
	<-e.beats
	stop()
	require.Equal(t, "w1", <-e.left)
	require.Empty(t, e.left)
}

func TestResultsThatComeTogetherAreReportedTogether(t *testing.T) {
	e := newEngine(t)
	held := make(chan struct{})
	hold := func(w http.ResponseWriter) { <-held; status(503)(w) }
	e.first("reports", hold, hold) // as many as are sent at once
	w := worker.New(config(e))
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return nil, nil })
	run(t, w)
	for i := range 2 {
		e.queue <- job(fmt.Sprint(i), "s")
		require.Equal(t, 1, <-e.reports)
	}
	for i := range 20 {
		e.queue <- job(fmt.Sprint("more ", i), "s")
	}
	close(held)
	most := 0
	for seen := 0; seen < 22; {
		n := <-e.reports
		seen, most = seen+n, max(most, n)
	}
	require.Greater(t, most, 1)
}

func TestOneResultThatIsNotTakenKeepsNoOther(t *testing.T) {
	e := newEngine(t)
	held := make(chan struct{})
	hold := func(w http.ResponseWriter) { <-held; status(503)(w) }
	e.first("reports", hold, hold, status(413), status(413)) // what waits then is refused together, and then one of it alone
	w := worker.New(config(e))
	var began atomic.Int32
	w.Handle("s", func(context.Context, worker.Job) (any, error) { began.Add(1); return "fine", nil })
	run(t, w)
	for i := range 2 {
		e.queue <- job(fmt.Sprint(i), "s")
		<-e.reports
	}
	for i := range 5 {
		e.queue <- job(fmt.Sprint("more ", i), "s")
	}
	require.Eventually(t, func() bool { return began.Load() == 7 }, time.Minute, time.Millisecond)
	close(held)
	last := map[string]wire.Report{}
	for len(last) < 7 || len(e.completed) > 0 {
		r := <-e.completed
		last[r.Job] = r
	}
	require.Len(t, last, 7)
}
