package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

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

// A member keeps a job for a live worker, so the worker must not drop a result because of an answer
// of a device in between.
func TestAResultIsKeptAfterAnswersOfOtherServers(t *testing.T) {
	page := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Location", "/login")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "<html>")
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter){
		"moved": page(301), "to a login": page(302), "400": page(400), "401": page(401),
		"403": page(403), "404": page(404), "405": page(405), "502": page(502), "200": page(200),
		"denied for a moment": status(401), "nothing": func(http.ResponseWriter) {},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.first("reports", answer)
			w := worker.New(config(e))
			w.Handle("s", func(context.Context, worker.Job) (any, error) { return 1, nil })
			run(t, w)
			e.queue <- job("1", "s")
			for range 2 {
				require.Equal(t, `1`, string(soon(t, e.completed).Output))
			}
		})
	}
}

func TestAFailureIsKeptAfterAnswersOfOtherServers(t *testing.T) {
	e := newEngine(t)
	e.first("reports", status(413), status(413))
	w := worker.New(config(e))
	w.Handle("s", func(context.Context, worker.Job) (any, error) { return nil, errors.New("it broke") })
	run(t, w)
	e.queue <- job("1", "s")
	for range 3 {
		require.Equal(t, "it broke", soon(t, e.completed).Error)
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
	require.Contains(t, done.Error, "the result was rejected: the engine answered 413")
	require.True(t, done.Fatal)
}

// strange is an error of another package with details.
type strange struct{ details string }

func (strange) Error() string { return "it broke" }

func (s strange) Details() json.RawMessage { return json.RawMessage(s.details) }

func TestAnErrorIsReportedWithAnyDetails(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
		return nil, strange{map[string]string{"1": `{`, "2": strings.Repeat("9", 70_000), "3": `{"k":1}`}[j.ID]}
	})
	run(t, w)
	for id, want := range map[string]struct{ text, details string }{
		"1": {"it broke", `"{"`},
		"2": {"it broke (its details have 70000 bytes, more than the 65536 that are kept)", ""},
		"3": {"it broke", `{"k":1}`},
	} {
		e.queue <- job(id, "s")
		select {
		case done := <-e.completed:
			require.Equal(t, want.text, done.Error)
			require.Equal(t, want.details, string(done.Details))
		case <-time.After(20 * time.Second):
			require.Fail(t, "the error was never told: "+id)
		}
	}
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

func TestResultsThatComeTogetherAreReportedTogether(t *testing.T) {
	e := newEngine(t)
	held := make(chan struct{})
	hold := func(w http.ResponseWriter) { <-held; status(503)(w) }
	e.first("reports", hold, hold) // as many as are sent at once
	w := worker.New(config(e))
	var began atomic.Int32
	w.Handle("s", func(context.Context, worker.Job) (any, error) { began.Add(1); return nil, nil })
	run(t, w)
	for i := range 2 {
		e.queue <- job(fmt.Sprint(i), "s")
		require.Equal(t, 1, <-e.reports)
	}
	for i := range 20 {
		e.queue <- job(fmt.Sprint("more ", i), "s")
	}
	require.Eventually(t, func() bool { return began.Load() == 22 }, time.Minute, time.Millisecond)
	close(held)
	most := 0
	for seen := 0; seen < 22; {
		n := <-e.reports
		seen, most = seen+n, max(most, n)
	}
	require.Greater(t, most, 1)
}

func TestARefusedResultBlocksNoOther(t *testing.T) {
	e := newEngine(t)
	held := make(chan struct{})
	hold := func(w http.ResponseWriter) { <-held; status(503)(w) }
	// the waiting reports are refused together, and then one of them alone
	e.first("reports", hold, hold, status(413), status(413))
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
	last := map[string]wire.JobReport{}
	for len(last) < 7 || len(e.completed) > 0 {
		r := <-e.completed
		last[r.Job] = r
	}
	require.Len(t, last, 7)
}
