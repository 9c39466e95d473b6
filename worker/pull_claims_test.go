package worker_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

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
		require.Equal(t, []wire.HeldJob{{Job: "1", Token: "tok-1"}}, <-e.prolonged)
	}
	e.cancel("1")
	require.ErrorContains(t, <-causes, "nobody waits for this job")
	stop()
	require.Empty(t, e.completed)
}

func TestAWorkerLearnsSoonThatAJobIsCanceled(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e)) // with a heartbeat every 20 ms
	canceled := make(chan struct{})
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		<-ctx.Done()
		close(canceled)
		return nil, ctx.Err()
	})
	run(t, w)
	e.cancel("1")
	begun := time.Now()
	e.queue <- job("1", "s") // its claim is renewed every 20 s
	<-canceled
	require.Less(t, time.Since(begun), 15*time.Second)
}

func TestAnOldAnswerDoesNotCancelTheSameJobThatCameAgain(t *testing.T) {
	e, asked, again := newEngine(t), make(chan struct{}), make(chan struct{})
	// answers for the first claim, which is lost meanwhile
	e.first("heartbeat", func(w http.ResponseWriter) {
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

func TestAJobThatComesAgainEndsWhatWasBegunOfIt(t *testing.T) {
	e := newEngine(t)
	cfg := config(e)
	cfg.Heartbeat = time.Hour
	w := worker.New(cfg)
	var calls atomic.Int32
	begun, canceled := make(chan int32, 2), make(chan int32, 2)
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		n := calls.Add(1)
		begun <- n
		if n == 1 {
			<-ctx.Done()
			canceled <- n
		}
		return n, nil
	})
	run(t, w)
	j := job("1", "s")
	j.LeaseMS = time.Hour.Milliseconds()
	e.queue <- j
	soon(t, begun)
	j.Token = "newer" // the claim expired while the two were disconnected
	e.queue <- j
	require.EqualValues(t, 1, soon(t, canceled))
	done := soon(t, e.completed)
	require.Equal(t, []string{"newer", "2"}, []string{done.Token, string(done.Output)})
}

func TestFailedRenewalsAreLoggedOnce(t *testing.T) {
	e := newEngine(t)
	e.first("heartbeat", slices.Repeat([]func(http.ResponseWriter){status(503)}, 10)...)
	cfg, said := config(e), &lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(said, nil))
	w := worker.New(cfg)
	leave := make(chan struct{})
	w.Handle("s", func(context.Context, worker.Job) (any, error) { <-leave; return nil, nil })
	stop := run(t, w)
	e.queue <- job("1", "s")
	for range 12 {
		soon(t, e.prolonged)
	}
	close(leave)
	soon(t, e.completed)
	stop()
	require.Equal(t, 1, strings.Count(said.String(), "extending claims failed"), said.String())
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
			require.ElementsMatch(t, []wire.HeldJob{{Job: "1", Token: "tok-1"},
				{Job: "2", Token: "tok-2"}, {Job: "3", Token: "tok-3"}}, claims)
			return
		}
	}
}

func TestOnlyLongJobsAreReportedAsRunning(t *testing.T) {
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
				require.Equal(t, wire.HeldJob{Job: "1", Token: "tok-1", StatusText: "running"}, <-e.notes)
			}
			close(leave)
			<-e.completed
			require.Empty(t, e.notes)
		})
	}
}

func TestOutputOfAHandlerIsSentWhileItRuns(t *testing.T) {
	e := newEngine(t)
	e.queue <- job("1", "s")
	w := worker.New(config(e))
	lines := make(chan string)
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
		for line := range lines {
			_, _ = io.WriteString(j.Log, line)
		}
		return nil, nil
	})
	run(t, w)
	told := func(s wire.PrintedLines) (texts []string) {
		for _, l := range s.Lines {
			texts = append(texts, l.Stream+" "+l.Text)
		}
		return texts
	}
	lines <- "one\n"
	claim := soon(t, e.logs)
	require.Equal(t, []string{"1", "tok-1", "log one"}, append([]string{claim.Job, claim.Token}, told(claim.PrintedLines)...))
	lines <- "two\nhalf"
	claim = soon(t, e.logs)
	require.Equal(t, []string{"log two"}, told(claim.PrintedLines))
	require.EqualValues(t, 1, claim.LinesFrom)
	close(lines)
	done := soon(t, e.completed)
	require.Equal(t, "log half", told(done.PrintedLines)[len(done.Lines)-1])
	require.True(t, done.Lines[len(done.Lines)-1].Part)
}
