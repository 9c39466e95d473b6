package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/internal/packets"
)

// line is how streams to members are opened.
type line struct {
	token     string
	transport *http.Transport
}

// protocol is the version of the protocol that is spoken.
const protocol = 1

// newLine speaks HTTP/2 alone, over TLS or without.
func newLine(cfg *Config) (*line, error) {
	transport, err := cfg.Trust.Transport()
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &line{token: cfg.Token, transport: transport}, nil
}

type stream = connect.BidiStreamForClient[attach.FromWorker, attach.ToWorker]

// open has a connection made for one stream, which ends with ctx. The next stream would wait in vain on one that has been forgotten between the two.
func (l *line) open(ctx context.Context, server string) *stream {
	transport := l.transport.Clone()
	transport.DialContext = func(dial context.Context, network, address string) (net.Conn, error) {
		conn, err := l.transport.DialContext(dial, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
	client := attach.NewWorkersClient(&http.Client{Transport: packets.Whole{Transport: transport}}, server, connect.WithAcceptCompression("gzip", nil, nil))
	s := client.Attach(ctx)
	if l.token != "" {
		s.RequestHeader().Set("Authorization", "Bearer "+l.token)
	}
	return s
}

// welcomeTime is how long a member may take to answer, minPatience how long it may at least.
const (
	welcomeTime = 10 * time.Second
	minPatience = 500 * time.Millisecond
)

// member is the one at the other end of a stream.
type member struct {
	address string
	welcome time.Time // when it said so; zero = it did not
	leaves  bool      // it said so; the writer reads it when it is called
	mu      sync.Mutex
}

// welcomed says whether the worker is attached, or was.
func (m *member) welcomed() bool { return !m.welcome.IsZero() }

// stayed says whether the worker has been attached for long enough to go on as after the first outage.
func (m *member) stayed() bool { return m.welcomed() && time.Since(m.welcome) >= minStay }

func (m *member) leaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaves
}

func (m *member) saidGoodbye() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaves = true
}

// silences is how many heartbeats of the member may be missing.
const silences = 3

// attach keeps one stream for as long as it holds.
func (a *attachment) attach(ctx context.Context, to *member, patience time.Duration) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s := a.line.open(ctx, to.address)
	defer s.CloseResponse()
	// A stream whose context has ended still waits for what the member says, until there is nothing more of the request to be read.
	defer context.AfterFunc(ctx, func() { _ = s.CloseRequest() })()
	silent := time.AfterFunc(patience, hangUp)
	defer silent.Stop()
	if err := s.Send(&attach.FromWorker{Hello: a.hello()}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	first, err := s.Receive()
	if err != nil {
		return err
	}
	w := first.GetWelcome()
	if w == nil || w.GetProtocol() != protocol {
		return fmt.Errorf("%s does not answer as a member does that speaks version %d of the protocol", to.address, protocol)
	}
	to.welcome = time.Now()
	a.connected.Store(true)
	defer a.connected.Store(false)
	every := a.welcomed(w)
	a.worker.cfg.Logger.Info("attached", "worker", a.worker.cfg.ID, "server", to.address, "resumed", w.GetResumed())
	var writer sync.WaitGroup
	writer.Go(func() {
		if a.write(ctx, s, every, to) != nil {
			hangUp()
		}
	})
	err = a.read(s, first, to, func() { silent.Reset(silences * every) })
	hangUp()
	writer.Wait()
	return err
}

// hello introduces the worker, with what it still has of its session.
func (a *attachment) hello() *attach.Hello {
	cfg := &a.worker.cfg
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsent = slices.Collect(maps.Values(a.finished))
	return &attach.Hello{Protocol: protocol, Worker: cfg.ID, Services: a.services, Labels: cfg.Labels, Credits: uint32(cfg.Concurrency),
		Session: a.session, Held: slices.Collect(maps.Keys(a.held)), Finished: slices.Collect(maps.Keys(a.finished)), Brought: a.brought()}
}

// maxBrought is how many jobs a worker may bring along.
const maxBrought = 10_000

// brought are the jobs with which the worker may come to another member, as many as fit into a message. The lock is held.
func (a *attachment) brought() (all []*attach.Brought) {
	bytes := 0
	for n, t := range a.tickets {
		if bytes += len(t.id) + len(t.proof) + around/64; len(all) == maxBrought || bytes > a.most/2 {
			break
		}
		all = append(all, &attach.Brought{Number: n, Id: t.id, Ticket: t.proof})
	}
	return all
}

// welcomed says how often to give signs of life. What is of a session that is over has gone to others.
func (a *attachment) welcomed(w *attach.Welcome) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !w.GetResumed() {
		for n, j := range a.held {
			j.cancel(errOver)
			delete(a.held, n)
		}
		clear(a.finished)
		clear(a.tickets)
		a.unsent, a.progress = nil, nil
		a.settle()
	}
	a.session, a.most, a.grace = w.GetSession(), int(w.GetMostBytes()), time.Duration(w.GetGraceMs())*time.Millisecond
	return max(time.Duration(w.GetHeartbeatMs())*time.Millisecond, minBeat)
}

var errLeft = errors.New("the member leaves")

// read takes what the member says until the stream is over.
func (a *attachment) read(s *stream, m *attach.ToWorker, from *member, alive func()) error {
	for {
		alive()
		a.cancel(m.GetCanceled())
		a.forget(m.GetAcknowledged())
		a.take(m.GetJobs())
		if m.GetLeaving() {
			a.worker.cfg.Logger.Info("the member leaves", "server", from.address)
			from.saidGoodbye()
			if a.brings() {
				return errLeft
			}
		}
		if m.GetWelcome() != nil || from.leaving() || a.leaves() {
			a.call() // there are results of before, or it may be over
		}
		var err error
		if m, err = s.Receive(); err != nil {
			return err
		}
	}
}

// write sends results, and signs of life, until ctx ends or there is nothing more to say.
func (a *attachment) write(ctx context.Context, s *stream, every time.Duration, to *member) error {
	beat := time.NewTicker(max(min(every/2, a.worker.cfg.NoteAfter), minBeat))
	defer beat.Stop()
	told := false
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
			runtime.Gosched() // what is about to end as well goes along
		case <-beat.C:
			a.tellProgress()
		}
		for m := a.next(&told, time.Since(last) >= every/2); m != nil; m = a.next(&told, false) {
			if err := s.Send(m); err != nil {
				return err
			}
			last = time.Now()
		}
		if a.nothingLeft(told, to) {
			return s.CloseRequest()
		}
	}
}

// batchBytes is how much one message holds, unless one result alone is more.
const batchBytes = 1 << 20

// next is a message with what there is to tell; nil = nothing, unless a sign of life is due.
func (a *attachment) next(told *bool, beat bool) *attach.FromWorker {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &attach.FromWorker{Leaving: a.leaving && !*told}
	*told = *told || a.leaving
	bytes := 0
	fits := func(size int) bool {
		alone := bytes == 0
		bytes += size + 1
		return alone || bytes < min(batchBytes, a.most/2)
	}
	n := 0
	for ; n < len(a.progress) && fits(saidBytes(a.progress[n].GetLines())); n++ {
		m.Progress = append(m.Progress, a.progress[n])
	}
	a.progress = rest(a.progress, n)
	for n = 0; n < len(a.unsent) && len(a.progress) == 0 && fits(resultBytes(a.unsent[n])); n++ {
		m.Results = append(m.Results, a.unsent[n])
	}
	a.unsent = rest(a.unsent, n)
	if len(m.GetProgress()) == 0 && len(m.GetResults()) == 0 && !m.GetLeaving() && !beat {
		return nil
	}
	return m
}

// rest of a list without the first n.
func rest[T any](list []T, n int) []T {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// nothingLeft says whether the stream may end: one of the two leaves, and the member has all results.
func (a *attachment) nothingLeft(told bool, m *member) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.held) > 0 || len(a.finished) > 0 || !told && !m.leaving() {
		return false
	}
	a.session = ""
	return true
}
