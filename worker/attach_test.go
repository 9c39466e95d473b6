package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/worker"
)

type clientStream = connect.BidiStream[attach.FromWorker, attach.ToWorker]

// streamMember is a fake member: a function that serves a stream.
type streamMember func(hello *attach.Hello, s *clientStream) error

// Attach implements the service.
func (m streamMember) Attach(_ context.Context, s *clientStream) error {
	first, err := s.Receive()
	if err != nil {
		return err
	}
	return m(first.GetHello(), s)
}

// serve starts the member and returns its address.
func (m streamMember) serve(t *testing.T) (address string) {
	_, serve := attach.NewWorkersHandler(m)
	server := httptest.NewUnstartedServer(serve)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// attachTo runs a worker that attaches to a member until the test, or leave, ends it. ended
// receives the result of Run.
func attachTo(t *testing.T, m streamMember, h worker.Handler) (leave func(), ended <-chan error) {
	return attachAt(t, m.serve(t), h)
}

func attachAt(t *testing.T, address string, h worker.Handler) (leave func(), ended <-chan error) {
	w := worker.New(worker.Config{Server: address, ID: "w", Attach: true, Concurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	w.Handle("s", h)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- w.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		stop()
		for range done {
		}
	})
	return stop, done
}

func welcome(session string) *attach.ToWorker {
	return &attach.ToWorker{Welcome: &attach.Welcome{Protocol: 1, Session: session, HeartbeatMs: 3_600_000, MostBytes: 1 << 20}}
}

func jobNumber(n uint64, id string) []*attach.Job {
	return []*attach.Job{{Number: n, Id: id, Service: "s"}}
}

func TestOutputOfAnEndedSessionIsNotSentForAnotherJob(t *testing.T) {
	begun, broken, told := make(chan struct{}), make(chan struct{}), make(chan string, 100)
	breakOff := sync.OnceFunc(func() { close(broken) })
	attachTo(t, func(hello *attach.Hello, s *clientStream) error {
		m := welcome("of " + hello.GetSession())
		switch {
		case hello.GetSession() == "":
			m.Jobs = jobNumber(1, "old")
			_ = s.Send(m)
			<-begun
			return nil
		case len(hello.GetHeld()) > 0:
			breakOff()
			return errors.New("not yet: come again when the job has ended")
		}
		m.Jobs = jobNumber(1, "new") // in a session that does not know the other one
		_ = s.Send(m)
		for {
			got, err := s.Receive()
			if err != nil {
				return err
			}
			for _, p := range got.GetProgress() {
				for _, l := range p.GetLines() {
					told <- fmt.Sprint(p.GetNumber(), " ", l.GetText())
				}
			}
		}
	}, func(_ context.Context, j worker.Job) (any, error) {
		if j.ID == "old" {
			close(begun)
			<-broken
		}
		fmt.Fprintln(j.Log, j.ID)
		return nil, nil
	})
	require.Equal(t, "1 new", soon(t, told))
}

func TestAJobThatCrossesWithLeavingIsReturned(t *testing.T) {
	began, results := make(chan string, 2), make(chan *attach.Result, 10)
	leave, ended := attachTo(t, func(_ *attach.Hello, s *clientStream) error {
		m := welcome("a")
		m.Jobs = jobNumber(1, "before")
		_ = s.Send(m)
		for {
			got, err := s.Receive()
			if err != nil {
				return nil
			}
			if got.GetLeaving() {
				_ = s.Send(&attach.ToWorker{Jobs: jobNumber(2, "crossing")})
				// then there is room for another job
				_ = s.Send(&attach.ToWorker{Canceled: []uint64{1}})
			}
			for _, r := range got.GetResults() {
				results <- r
				_ = s.Send(&attach.ToWorker{Acknowledged: []uint64{r.GetNumber()}})
			}
		}
	}, func(ctx context.Context, j worker.Job) (any, error) {
		began <- j.ID
		if j.ID == "before" {
			<-ctx.Done()
		}
		return nil, nil
	})
	require.Equal(t, "before", soon(t, began))
	leave()
	of := map[uint64]attach.Outcome{}
	for range 2 {
		r := soon(t, results)
		of[r.GetNumber()] = r.GetOutcome()
	}
	require.Equal(t, map[uint64]attach.Outcome{1: attach.Outcome_OUTCOME_CANCELED, 2: attach.Outcome_OUTCOME_RETURNED}, of)
	require.NoError(t, soon(t, ended))
	require.Empty(t, began)
}

func TestAWorkerLeavesASilentMember(t *testing.T) {
	came := make(chan struct{}, 100)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	attachTo(t, func(_ *attach.Hello, s *clientStream) error {
		came <- struct{}{}
		m := welcome("s")
		m.Welcome.HeartbeatMs = 20
		_ = s.Send(m)
		<-over
		return nil
	}, nil)
	soon(t, came)
	soon(t, came)
}

// A connection that a device in between has dropped stays open, but no data arrives: a new stream
// on it is as silent.
func TestAWorkerComesBackOverANewConnection(t *testing.T) {
	came, over := make(chan struct{}, 100), make(chan struct{})
	between, address := relayTo(t, streamMember(func(_ *attach.Hello, s *clientStream) error {
		m := welcome("s")
		m.Welcome.HeartbeatMs = 100
		_ = s.Send(m)
		_, _ = s.Receive() // the worker has received it
		came <- struct{}{}
		<-over
		return nil
	}).serve(t))
	t.Cleanup(func() { close(over) })
	attachAt(t, address, nil)
	soon(t, came)
	between.forget()
	soon(t, came)
}

func TestStreamsThatBreakAtOnceAreLoggedOnce(t *testing.T) { breaking(t, 6, 0) }

// The time until the welcome does not count as time that the stream has lasted.
func TestStreamsThatBreakAtOnceAreLoggedOnceEvenIfSlow(t *testing.T) {
	t.Parallel()
	breaking(t, 3, 1100*time.Millisecond)
}

// breaking makes streams break right after the welcome, which takes the given time.
func breaking(t *testing.T, streams int, slow time.Duration) {
	came, said := make(chan struct{}, 100), &lines{}
	address := streamMember(func(_ *attach.Hello, s *clientStream) error {
		time.Sleep(slow)
		_ = s.Send(welcome("s"))
		came <- struct{}{}
		return errors.New("no")
	}).serve(t)
	w := worker.New(worker.Config{Server: address, ID: "w", Attach: true, Logger: slog.New(slog.NewTextHandler(said, nil))})
	w.Handle("s", nil)
	stop := run(t, w)
	for range streams {
		soon(t, came)
	}
	stop()
	require.Equal(t, 1, strings.Count(said.String(), "retrying"), said.String())
}
