package attached

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Stream is a worker's stream as the member sees it.
type Stream = interface {
	Receive() (*attach.FromWorker, error)
	Send(*attach.ToWorker) error
	// HangUp makes a Receive that waits, and all later ones, fail.
	HangUp()
}

const (
	version = 1
	// maxSessions and maxCredits bound what may be attached to one member.
	maxSessions = 10_000
	maxCredits  = 10_000
	helloTime   = 10 * time.Second
)

// Serve is a worker's stream, from its hello to its end. The error says why a worker is refused.
func (s *Sessions) Serve(ctx context.Context, stream Stream) error {
	inTime := s.host.AfterFunc(helloTime, stream.HangUp)
	first, err := stream.Receive()
	inTime()
	if err != nil {
		return flow.Errorf(flow.Invalid, "a stream begins with a hello: %v", err)
	}
	hello := first.GetHello()
	if err := check(hello); err != nil {
		return err
	}
	ses, c, err := s.join(ctx, hello, stream)
	if err != nil {
		return err
	}
	c.heard = s.host.Now()
	s.watch(ses, c)
	writer := host.Group{Host: s.host}
	writer.Run(func() { s.write(ses, c) })
	s.read(ses, c, first)
	s.cease(c)
	s.part(ses, c)
	writer.Wait()
	return nil
}

func check(hello *attach.Hello) error {
	switch {
	case hello == nil:
		return flow.Errorf(flow.Invalid, "a stream begins with a hello")
	case hello.GetProtocol() != version:
		return flow.Errorf(flow.Invalid, "the worker speaks version %d of the protocol, this member version %d", hello.GetProtocol(), version)
	case hello.GetCredits() < 1 || hello.GetCredits() > maxCredits:
		return flow.Errorf(flow.Invalid, "credits must be 1 to %d, are %d", maxCredits, hello.GetCredits())
	case len(hello.GetServices()) == 0:
		return flow.Errorf(flow.Invalid, "a worker that offers no service gets no job: name its services")
	}
	return nil
}

// join goes on with the session that a hello names, if it is still there, or begins a new one.
func (s *Sessions) join(ctx context.Context, hello *attach.Hello, stream Stream) (*session, *connection, error) {
	c := newConnection(stream)
	if ses := s.resume(hello, c); ses != nil {
		return ses, c, nil
	}
	s.expect(hello)
	defer s.expectNoLonger(hello)
	s.count(hello.GetWorker())
	if err := s.register(ctx, hello); err != nil {
		s.uncount(hello.GetWorker())
		return nil, nil, err
	}
	ses, err := s.begin(hello, c)
	if err != nil {
		s.uncount(hello.GetWorker())
		return nil, nil, err
	}
	return ses, c, nil
}

// expect has jobs wait for a worker that is listed, or about to be, and has no session yet: whoever sees it in the list may start what it is to do.
func (s *Sessions) expect(hello *attach.Hello) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = append(s.expected, hello)
	s.look()
}

func (s *Sessions) expectNoLonger(hello *attach.Hello) {
	s.mu.Lock()
	s.expected = slices.DeleteFunc(s.expected, func(h *attach.Hello) bool { return h == hello })
	s.look()
	failed := s.hopeless()
	s.mu.Unlock()
	refuse(failed)
}

// expects says whether a worker that may get such jobs is about to have a session.
func (s *Sessions) expects(exec *flow.Exec) bool {
	return slices.ContainsFunc(s.expected, func(h *attach.Hello) bool {
		return slices.Contains(h.GetServices(), exec.Service) && hasAll(distinct(h.GetLabels()), exec.Labels)
	})
}

func (s *Sessions) register(ctx context.Context, hello *attach.Hello) error {
	if s.opts.Workers == nil {
		return nil
	}
	err := s.opts.Workers.Register(ctx, persistence.Worker{ID: hello.GetWorker(), URL: "attached", Type: "attached", Services: hello.GetServices(), Labels: hello.GetLabels()})
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.names[hello.GetWorker()]; k != nil {
		k.joined = s.opts.Workers.Signs(hello.GetWorker()).Joined
	}
	return err
}

// known is a worker by its name.
type known struct {
	sessions int   // here
	joined   int64 // when it registered with this member, by the store's time
}

func (s *Sessions) count(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.names[worker]
	if k == nil {
		k = &known{}
		s.names[worker] = k
	}
	k.sessions++
}

// uncount forgets a worker when it has no other session, here or at a member where it has registered since. One that only the
// member leaves is awaited by the next one.
func (s *Sessions) uncount(worker string) {
	s.mu.Lock()
	k, away := s.names[worker], s.leaving()
	if k.sessions--; k.sessions == 0 {
		delete(s.names, worker)
	}
	left := k.sessions
	s.mu.Unlock()
	if left > 0 || away || s.opts.Workers == nil || s.ctx.Err() != nil || s.opts.Workers.Signs(worker).Joined > k.joined {
		return
	}
	if err := s.opts.Workers.Deregister(s.ctx, worker); err != nil && flow.ErrorKindOf(err) != flow.NotFound && s.ctx.Err() == nil {
		s.opts.Logger.Warn("a worker that has gone is still listed", "worker", worker, "error", err)
	}
}

func (s *Sessions) begin(hello *attach.Hello, c *connection) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.leaving():
		return nil, flow.Errorf(flow.Busy, "the member is about to end: attach to another one, or try again in a moment")
	case len(s.byID) >= maxSessions:
		return nil, flow.Errorf(flow.Limit, "%d workers are attached to this member; no more are taken: attach to another one", maxSessions)
	}
	ses := &session{all: s, id: uuid.NewString(), worker: hello.GetWorker(),
		credits: int(hello.GetCredits()), grants: map[uint64]*grant{}, stream: c, asks: make(chan struct{}, 1)}
	s.byID[ses.id] = ses
	s.enter(ses, distinct(hello.GetServices()), distinct(hello.GetLabels()))
	s.look()
	c.welcome = s.welcome(ses, ses.arrive(hello))
	s.fill(ses)
	s.opts.Logger.Info("a worker is attached", "worker", ses.worker, "services", ses.group.services, "labels", ses.group.labels, "credits", ses.credits, "brings", len(ses.grants))
	return ses, nil
}

func distinct(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// resume gives a session its new stream. One whose old stream has not been noticed to be broken hangs that up.
func (s *Sessions) resume(hello *attach.Hello, c *connection) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.byID[hello.GetSession()]
	if ses == nil || ses.worker != hello.GetWorker() || ses.leaving {
		return nil
	}
	ses.await(nil)
	if old := ses.stream; old != nil {
		old.stream.HangUp()
	}
	ses.stream, ses.credits = c, int(hello.GetCredits())
	ses.reconcile(hello)
	s.askSoon(ses)
	s.recount(ses)
	c.welcome = s.welcome(ses, true)
	s.fill(ses)
	s.opts.Logger.Info("a worker is back", "worker", ses.worker, "jobs", len(ses.grants))
	return ses
}

func (s *Sessions) welcome(ses *session, resumed bool) *attach.Welcome {
	return &attach.Welcome{Protocol: version, Session: ses.id, Resumed: resumed, HeartbeatMs: uint32(s.opts.Heartbeat.Milliseconds()),
		GraceMs: uint32(s.opts.Grace.Milliseconds()), MostBytes: uint64(s.opts.MaxMessage)}
}

// part is the end of a stream. The session waits for its worker, unless that has said goodbye.
func (s *Sessions) part(ses *session, c *connection) {
	s.mu.Lock()
	if ses.stream != c {
		s.mu.Unlock()
		return // the worker is back already
	}
	ses.stream = nil
	s.recount(ses)
	if s.waitsFor(ses) {
		c.grace = s.host.Later(s.opts.Grace, func() { s.giveUp(ses, c) })
		ses.await(c)
		s.opts.Logger.Info("the stream of a worker broke; its jobs wait for it", "worker", ses.worker, "jobs", len(ses.grants), "grace", s.opts.Grace)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.end(ses)
}

// waitsFor says whether a session waits for its worker when the stream has broken. One of a member that leaves does as long as the worker
// has jobs with which it may come to another one.
func (s *Sessions) waitsFor(ses *session) bool {
	switch {
	case s.opts.Grace == 0, ses.leaving, s.shut:
		return false
	}
	return !s.away || s.roams() && len(ses.grants) > 0
}

// giveUp ends a session whose worker has not come back in time.
func (s *Sessions) giveUp(ses *session, c *connection) {
	s.mu.Lock()
	if ses.broken != c || s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.endHeld(ses)
}

// end of a session: others carry out its jobs.
func (s *Sessions) end(ses *session) {
	s.mu.Lock()
	s.endHeld(ses)
}

// endHeld is end with the lock held, which it gives back.
func (s *Sessions) endHeld(ses *session) {
	if s.byID[ses.id] != ses || ses.stream != nil {
		s.mu.Unlock()
		return
	}
	delete(s.byID, ses.id)
	then := ses.lose()
	s.quit(ses)
	s.look()
	failed := s.hopeless()
	s.mu.Unlock()
	if n := len(then.landings); n > 0 {
		s.opts.Logger.Warn("a worker is gone; others get its jobs, unless it comes to another member with them", "worker", ses.worker, "jobs", n)
	}
	s.see(then)
	refuse(failed)
	s.uncount(ses.worker)
}
