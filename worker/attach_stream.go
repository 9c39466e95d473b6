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

// streamDialer is how streams to members are opened.
type streamDialer struct {
	token     string
	transport *http.Transport
}

// protocol is the version of the protocol that is spoken.
const protocol = 1

// newStreamDialer speaks HTTP/2 alone, over TLS or without.
func newStreamDialer(cfg *Config) (*streamDialer, error) {
	transport, err := cfg.Trust.Transport()
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &streamDialer{token: cfg.Token, transport: transport}, nil
}

type clientStream = connect.BidiStreamForClient[attach.FromWorker, attach.ToWorker]

// openStream has a connection made for one stream, which ends with ctx. The next stream would wait
// in vain on one that has been forgotten between the two.
func (l *streamDialer) openStream(ctx context.Context, server string) *clientStream {
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

// streamMember is the one at the other end of a stream.
type streamMember struct {
	address    string
	welcomedAt time.Time // when it said so; zero = it did not
	leaving    bool      // it said so; the writer reads it when it is called
	mu         sync.Mutex
}

// isWelcomed reports whether the worker is attached, or was.
func (m *streamMember) isWelcomed() bool { return !m.welcomedAt.IsZero() }

// hasLasted reports whether the worker has been attached for long enough to go on as after the
// first outage.
func (m *streamMember) hasLasted() bool {
	return m.isWelcomed() && time.Since(m.welcomedAt) >= minStreamTime
}

func (m *streamMember) isLeaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving
}

func (m *streamMember) markLeaving() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaving = true
}

// maxMissedHeartbeats is how many heartbeats of the member may be missing.
const maxMissedHeartbeats = 3

// runStream keeps one stream for as long as it holds.
func (a *attachedWorker) runStream(ctx context.Context, to *streamMember, patience time.Duration) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s := a.dialer.openStream(ctx, to.address)
	defer s.CloseResponse()
	// A stream whose context has ended still waits for what the member says, until there is nothing
	// more of the request to be read.
	defer context.AfterFunc(ctx, func() { _ = s.CloseRequest() })()
	silent := time.AfterFunc(patience, hangUp)
	defer silent.Stop()
	if err := s.Send(&attach.FromWorker{Hello: a.newHello()}); err != nil && !errors.Is(err, io.EOF) {
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
	to.welcomedAt = time.Now()
	a.connected.Store(true)
	defer a.connected.Store(false)
	every := a.acceptWelcome(w)
	a.worker.cfg.Logger.Info("attached", "worker", a.worker.cfg.ID, "server", to.address, "resumed", w.GetResumed())
	var writer sync.WaitGroup
	writer.Go(func() {
		if a.writeMessages(ctx, s, every, to) != nil {
			hangUp()
		}
	})
	err = a.readMessages(s, first, to, func() { silent.Reset(maxMissedHeartbeats * every) })
	hangUp()
	writer.Wait()
	return err
}

// newHello introduces the worker, with what it still has of its session.
func (a *attachedWorker) newHello() *attach.Hello {
	cfg := &a.worker.cfg
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsent = slices.Collect(maps.Values(a.finished))
	return &attach.Hello{Protocol: protocol, Worker: cfg.ID, Services: a.services, Labels: cfg.Labels, Credits: uint32(cfg.Concurrency),
		Session: a.session, Held: slices.Collect(maps.Keys(a.held)), Finished: slices.Collect(maps.Keys(a.finished)), Brought: a.broughtJobs()}
}

// maxBrought is how many jobs a worker may bring along.
const maxBrought = 10_000

// broughtJobs are the jobs with which the worker may come to another member, as many as fit into a
// message. The lock is held.
func (a *attachedWorker) broughtJobs() (all []*attach.Brought) {
	bytes := 0
	for n, t := range a.tickets {
		if bytes += len(t.id) + len(t.proof) + messageOverhead/64; len(all) == maxBrought || bytes > a.maxMessage/2 {
			break
		}
		all = append(all, &attach.Brought{Number: n, Id: t.id, Ticket: t.proof})
	}
	return all
}

// acceptWelcome says how often to give signs of life. What is of a session that is over has gone to
// others.
func (a *attachedWorker) acceptWelcome(w *attach.Welcome) time.Duration {
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
		a.closeIfDone()
	}
	a.session, a.maxMessage, a.grace = w.GetSession(), int(w.GetMostBytes()), time.Duration(w.GetGraceMs())*time.Millisecond
	return max(time.Duration(w.GetHeartbeatMs())*time.Millisecond, minBeat)
}

var errLeft = errors.New("the member leaves")

// readMessages takes what the member says until the stream is over.
func (a *attachedWorker) readMessages(s *clientStream, m *attach.ToWorker, from *streamMember, alive func()) error {
	for {
		alive()
		a.cancelJobs(m.GetCanceled())
		a.forgetResults(m.GetAcknowledged())
		a.takeJobs(m.GetJobs())
		if m.GetLeaving() {
			a.worker.cfg.Logger.Info("the member leaves", "server", from.address)
			from.markLeaving()
			if a.canMoveJobs() {
				return errLeft
			}
		}
		if m.GetWelcome() != nil || from.isLeaving() || a.isLeaving() {
			a.wakeWriter() // there are results of before, or it may be over
		}
		var err error
		if m, err = s.Receive(); err != nil {
			return err
		}
	}
}

// writeMessages sends results, and signs of life, until ctx ends or there is nothing more to say.
func (a *attachedWorker) writeMessages(ctx context.Context, s *clientStream, every time.Duration, to *streamMember) error {
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
			a.collectProgress()
		}
		for m := a.nextMessage(&told, time.Since(last) >= every/2); m != nil; m = a.nextMessage(&told, false) {
			if err := s.Send(m); err != nil {
				return err
			}
			last = time.Now()
		}
		if a.canCloseStream(told, to) {
			return s.CloseRequest()
		}
	}
}

// batchBytes is how much one message holds, unless one result alone is more.
const batchBytes = 1 << 20

// nextMessage is a message with what there is to tell; nil = nothing, unless a sign of life is due.
func (a *attachedWorker) nextMessage(told *bool, beat bool) *attach.FromWorker {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &attach.FromWorker{Leaving: a.leaving && !*told}
	*told = *told || a.leaving
	bytes := 0
	fits := func(size int) bool {
		alone := bytes == 0
		bytes += size + 1
		return alone || bytes < min(batchBytes, a.maxMessage/2)
	}
	n := 0
	for ; n < len(a.progress) && fits(linesBytes(a.progress[n].GetLines())); n++ {
		m.Progress = append(m.Progress, a.progress[n])
	}
	a.progress = dropFirst(a.progress, n)
	for n = 0; n < len(a.unsent) && len(a.progress) == 0 && fits(resultBytes(a.unsent[n])); n++ {
		m.Results = append(m.Results, a.unsent[n])
	}
	a.unsent = dropFirst(a.unsent, n)
	if len(m.GetProgress()) == 0 && len(m.GetResults()) == 0 && !m.GetLeaving() && !beat {
		return nil
	}
	return m
}

// dropFirst of a list without the first n.
func dropFirst[T any](list []T, n int) []T {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// canCloseStream reports whether the stream may end: one of the two leaves, and the member has all
// results.
func (a *attachedWorker) canCloseStream(told bool, m *streamMember) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.held) > 0 || len(a.finished) > 0 || !told && !m.isLeaving() {
		return false
	}
	a.session = ""
	return true
}
