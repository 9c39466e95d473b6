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

// streamDialer opens streams to members.
type streamDialer struct {
	token     string
	transport *http.Transport
}

// protocol is the version of the stream protocol.
const protocol = 1

// newStreamDialer returns a dialer that uses only HTTP/2, with or without TLS.
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

// openStream opens a stream on a separate connection, which ends with ctx. If a network device had
// silently dropped a shared connection, the next stream would block, too.
func (l *streamDialer) openStream(ctx context.Context, server string) *clientStream {
	transport := l.transport.Clone()
	transport.DialContext = func(dial context.Context, network, address string) (net.Conn, error) {
		conn, err := l.transport.DialContext(dial, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
	client := attach.NewWorkersClient(&http.Client{Transport: packets.Whole{Transport: transport}},
		server, connect.WithAcceptCompression("gzip", nil, nil))
	s := client.Attach(ctx)
	if l.token != "" {
		s.RequestHeader().Set("Authorization", "Bearer "+l.token)
	}
	return s
}

// welcomeTime is the longest wait for a member's welcome, and minPatience the shortest.
const (
	welcomeTime = 10 * time.Second
	minPatience = 500 * time.Millisecond
)

// streamMember is the member at the other end of a stream.
type streamMember struct {
	address    string
	welcomedAt time.Time // time of the member's welcome; zero before
	leaving    bool      // the member announced that it leaves
	mu         sync.Mutex
}

// isWelcomed reports whether the member has welcomed the worker.
func (m *streamMember) isWelcomed() bool { return !m.welcomedAt.IsZero() }

// hasLasted reports whether the stream has lasted long enough to reset the backoff.
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

// maxMissedHeartbeats is the number of the member's heartbeats that may be missing before the
// stream counts as broken.
const maxMissedHeartbeats = 3

// runStream runs one stream until the stream ends. patience is the time limit for the welcome.
func (a *attachedWorker) runStream(ctx context.Context, to *streamMember, patience time.Duration) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s := a.dialer.openStream(ctx, to.address)
	defer s.CloseResponse()
	// After ctx has ended, a stream still waits for the member's messages until its request is
	// closed.
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

// newHello returns the first message of a stream. It contains everything that the worker still has
// of its session.
func (a *attachedWorker) newHello() *attach.Hello {
	cfg := &a.worker.cfg
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsent, a.records = slices.Collect(maps.Values(a.finished)), a.records[:0]
	for _, j := range a.held {
		if j.function != nil && j.function.record != nil {
			a.records = append(a.records, j.function.record)
		}
	}
	return &attach.Hello{Protocol: protocol, Worker: cfg.ID, Services: a.services, Flows: a.flows, Labels: cfg.Labels,
		Credits: uint32(cfg.Concurrency), Session: a.session, Held: slices.Collect(maps.Keys(a.held)),
		Finished: slices.Collect(maps.Keys(a.finished)), Brought: a.broughtJobs()}
}

// maxBrought is the maximum number of jobs that a worker may move to another member.
const maxBrought = 10_000

// broughtJobs returns the jobs that the worker moves to another member, up to the size of one
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

// acceptWelcome handles the welcome and returns the heartbeat interval. If the session was not
// resumed, other workers have got its jobs, so they are dropped.
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
		a.unsent, a.progress, a.records = nil, nil, nil
		a.closeIfDone()
	}
	a.session, a.maxMessage, a.grace = w.GetSession(), int(w.GetMostBytes()), time.Duration(w.GetGraceMs())*time.Millisecond
	return max(time.Duration(w.GetHeartbeatMs())*time.Millisecond, minBeat)
}

var errLeft = errors.New("member leaving")

// readMessages handles the member's messages until the stream ends.
func (a *attachedWorker) readMessages(s *clientStream, m *attach.ToWorker, from *streamMember, alive func()) error {
	for {
		alive()
		a.cancelJobs(m.GetCanceled())
		a.forgetResults(m.GetAcknowledged())
		a.takeJobs(m.GetJobs())
		a.takeSteps(m.GetSteps())
		a.takeAnswers(m.GetAnswers())
		if m.GetLeaving() {
			a.worker.cfg.Logger.Info("member leaving", "server", from.address)
			from.markLeaving()
			if a.canMoveJobs() {
				return errLeft
			}
		}
		if m.GetWelcome() != nil || from.isLeaving() || a.isLeaving() {
			a.wakeWriter() // there are earlier results, or the stream may be done
		}
		var err error
		if m, err = s.Receive(); err != nil {
			return err
		}
	}
}

// writeMessages sends results and heartbeats until ctx ends or there is nothing more to send.
func (a *attachedWorker) writeMessages(ctx context.Context, s *clientStream, every time.Duration, to *streamMember) error {
	beat := time.NewTicker(max(min(every/2, a.worker.cfg.NoteAfter), minBeat))
	defer beat.Stop()
	told := false
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
			runtime.Gosched() // lets results of jobs that are about to end join the message
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

// batchBytes is the maximum size of one message, unless a single result is larger.
const batchBytes = 1 << 20

// nextMessage returns the next message, or nil if there is nothing to send and no heartbeat is due.
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
	for n = 0; n < len(a.records) && len(a.progress) == 0 && fits(recordBytes(a.records[n])); n++ {
		m.Records = append(m.Records, a.records[n])
	}
	a.records = dropFirst(a.records, n)
	for n = 0; n < len(a.unsent) && len(a.progress) == 0 && fits(resultBytes(a.unsent[n])); n++ {
		m.Results = append(m.Results, a.unsent[n])
	}
	a.unsent = dropFirst(a.unsent, n)
	if len(m.GetProgress()) == 0 && len(m.GetRecords()) == 0 && len(m.GetResults()) == 0 && !m.GetLeaving() && !beat {
		return nil
	}
	return m
}

// dropFirst returns the list without its first n elements.
func dropFirst[T any](list []T, n int) []T {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// canCloseStream reports whether the stream may end. The worker or the member must be leaving, and
// the member must have all results.
func (a *attachedWorker) canCloseStream(told bool, m *streamMember) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.held) > 0 || len(a.finished) > 0 || !told && !m.isLeaving() {
		return false
	}
	a.session = ""
	return true
}
