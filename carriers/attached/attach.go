package attached

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Stream is a worker's stream from the member's side.
type Stream = interface {
	Receive() (*attach.FromWorker, error)
	Send(*attach.ToWorker) error
	// HangUp makes all current and later calls of Receive fail.
	HangUp()
}

const (
	protocolVersion = 1
	// maxSessions and maxCredits bound the sessions of one member, and the credits of one session.
	maxSessions  = 10_000
	maxCredits   = 10_000
	helloTimeout = 10 * time.Second
)

// Serve serves a worker's stream from the hello to the end. The error is the reason why the worker
// was refused.
func (s *Sessions) Serve(ctx context.Context, stream Stream) error {
	inTime := s.host.AfterFunc(helloTimeout, stream.HangUp)
	first, err := stream.Receive()
	inTime()
	if err != nil {
		return flow.Errorf(flow.Invalid, "a stream begins with a hello: %v", err)
	}
	hello := first.GetHello()
	if err := checkHello(hello); err != nil {
		return err
	}
	ses, c, err := s.joinSession(ctx, hello, stream)
	if err != nil {
		return err
	}
	c.heardAt = s.host.Now()
	s.watchSilence(ses, c)
	writer := host.Group{Host: s.host}
	writer.Run(func() { s.writeMessages(ses, c) })
	s.readMessages(ses, c, first)
	s.stopReceiving(c)
	s.detachStream(ses, c)
	writer.Wait()
	return nil
}

func checkHello(hello *attach.Hello) error {
	switch {
	case hello == nil:
		return flow.Errorf(flow.Invalid, "a stream begins with a hello")
	case hello.GetProtocol() != protocolVersion:
		return flow.Errorf(flow.Invalid, "the worker speaks version %d of the protocol, this "+
			"member version %d", hello.GetProtocol(), protocolVersion)
	case hello.GetCredits() < 1 || hello.GetCredits() > maxCredits:
		return flow.Errorf(flow.Invalid, "credits must be 1 to %d, are %d", maxCredits, hello.GetCredits())
	case slices.ContainsFunc(hello.GetServices(), func(name string) bool { return strings.HasPrefix(name, flow.FunctionService("")) }):
		return flow.Errorf(flow.Invalid, "services that begin with %q belong to functions that are flows: name these in flows",
			flow.FunctionService(""))
	case len(hello.GetServices())+len(hello.GetFlows()) == 0:
		return flow.Errorf(flow.Invalid, "a worker that offers no service gets no job: name its services")
	}
	return nil
}

// joinSession resumes the session in a hello, if it still exists. Otherwise it starts a new
// session.
func (s *Sessions) joinSession(ctx context.Context, hello *attach.Hello, stream Stream) (*workerSession, *workerStream, error) {
	c := newWorkerStream(stream)
	if ses := s.resumeSession(hello, c); ses != nil {
		return ses, c, nil
	}
	s.expectWorker(hello)
	defer s.stopExpecting(hello)
	s.countSession(hello.GetWorker())
	if err := s.registerWorker(ctx, hello); err != nil {
		s.uncountSession(hello.GetWorker())
		return nil, nil, err
	}
	ses, err := s.startSession(hello, c)
	if err != nil {
		s.uncountSession(hello.GetWorker())
		return nil, nil, err
	}
	return ses, c, nil
}

// expectWorker makes jobs wait for a worker that is about to get a session. Clients may already see
// the worker in the list and start tasks for it.
func (s *Sessions) expectWorker(hello *attach.Hello) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = append(s.expected, hello)
	s.updateMayServe()
}

func (s *Sessions) stopExpecting(hello *attach.Hello) {
	s.mu.Lock()
	s.expected = slices.DeleteFunc(s.expected, func(h *attach.Hello) bool { return h == hello })
	s.updateMayServe()
	failed := s.removeUnservable()
	s.mu.Unlock()
	refuseJobs(failed)
}

// isExpected reports whether a worker for such jobs is about to get a session.
func (s *Sessions) isExpected(exec *flow.Exec) bool {
	return slices.ContainsFunc(s.expected, func(h *attach.Hello) bool {
		return slices.Contains(offeredServices(h), exec.Service) && hasAll(sortedUnique(h.GetLabels()), exec.Labels)
	})
}

func (s *Sessions) registerWorker(ctx context.Context, hello *attach.Hello) error {
	if s.opts.Workers == nil {
		return nil
	}
	err := s.opts.Workers.Register(ctx, persistence.Worker{ID: hello.GetWorker(), URL: "attached",
		Type: "attached", Services: offeredServices(hello), Labels: hello.GetLabels()})
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.workers[hello.GetWorker()]; k != nil {
		k.joined = s.opts.Workers.Signs(hello.GetWorker()).Joined
	}
	return err
}

// knownWorker is a worker with sessions here.
type knownWorker struct {
	sessions int   // number of sessions of the worker on this member
	joined   int64 // registration time at this member, by the store's time
}

func (s *Sessions) countSession(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.workers[worker]
	if k == nil {
		k = &knownWorker{}
		s.workers[worker] = k
	}
	k.sessions++
}

// uncountSession deregisters a worker without another session here, unless it has registered at
// another member since. If this member is leaving, the worker stays listed, because the next member
// waits for it.
func (s *Sessions) uncountSession(worker string) {
	s.mu.Lock()
	k, away := s.workers[worker], s.isLeaving()
	if k.sessions--; k.sessions == 0 {
		delete(s.workers, worker)
	}
	left := k.sessions
	s.mu.Unlock()
	if left > 0 || away || s.opts.Workers == nil || s.ctx.Err() != nil || s.opts.Workers.Signs(worker).Joined > k.joined {
		return
	}
	if err := s.opts.Workers.Deregister(s.ctx, worker); err != nil && flow.ErrorKindOf(err) != flow.NotFound && s.ctx.Err() == nil {
		s.opts.Logger.Warn("removing a worker from the list failed", "worker", worker, "error", err)
	}
}

func (s *Sessions) startSession(hello *attach.Hello, c *workerStream) (*workerSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isLeaving():
		return nil, flow.Errorf(flow.Busy, "the member is about to end: attach to another one, or try again in a moment")
	case len(s.byID) >= maxSessions:
		return nil, flow.Errorf(flow.Limit, "%d workers are attached to this member; no more are taken: attach to another one", maxSessions)
	}
	ses := &workerSession{sessions: s, id: uuid.NewString(), worker: hello.GetWorker(),
		credits: int(hello.GetCredits()), grants: map[uint64]*jobGrant{}, stream: c, bringSignal: make(chan struct{}, 1)}
	s.byID[ses.id] = ses
	s.addToGroup(ses, offeredServices(hello), sortedUnique(hello.GetLabels()))
	s.releaseHeld(ses.group.services)
	s.updateMayServe()
	c.welcome = s.newWelcome(ses, ses.acceptBrought(hello))
	s.fillSession(ses)
	s.opts.Logger.Info("worker attached", "worker", ses.worker, "services", ses.group.services,
		"labels", ses.group.labels, "slots", ses.credits, "jobs", len(ses.grants))
	return ses, nil
}

func sortedUnique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// resumeSession gives a session a new stream. It hangs up the old stream if that is still open.
func (s *Sessions) resumeSession(hello *attach.Hello, c *workerStream) *workerSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.byID[hello.GetSession()]
	if ses == nil || ses.worker != hello.GetWorker() || ses.leaving {
		return nil
	}
	ses.awaitStream(nil)
	if old := ses.stream; old != nil {
		old.stream.HangUp()
	}
	ses.stream, ses.credits = c, int(hello.GetCredits())
	ses.reconcileJobs(hello)
	s.scheduleBring(ses)
	s.updateFree(ses)
	c.welcome = s.newWelcome(ses, true)
	s.fillSession(ses)
	s.opts.Logger.Info("worker reconnected", "worker", ses.worker, "jobs", len(ses.grants))
	return ses
}

func (s *Sessions) newWelcome(ses *workerSession, resumed bool) *attach.Welcome {
	return &attach.Welcome{Protocol: protocolVersion, Session: ses.id, Resumed: resumed,
		HeartbeatMs: uint32(s.opts.Heartbeat.Milliseconds()),
		GraceMs:     uint32(s.opts.Grace.Milliseconds()), MostBytes: uint64(s.opts.MaxMessage)}
}

// detachStream handles the end of a stream. The session waits for its worker, unless the worker has
// announced that it leaves.
func (s *Sessions) detachStream(ses *workerSession, c *workerStream) {
	s.mu.Lock()
	if ses.stream != c {
		s.mu.Unlock()
		return // the worker is back already
	}
	ses.stream = nil
	s.updateFree(ses)
	if s.waitsForWorker(ses) {
		c.stopGrace = s.host.Later(s.opts.Grace, func() { s.endAfterGrace(ses, c) })
		ses.awaitStream(c)
		s.opts.Logger.Info("stream of a worker interrupted; its jobs wait for it to reconnect", "worker",
			ses.worker, "jobs", len(ses.grants), "grace", s.opts.Grace)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.endSession(ses)
}

// waitsForWorker reports whether a session waits for its worker after its stream broke. On a
// leaving member, it waits only while the worker has jobs to take to another member.
func (s *Sessions) waitsForWorker(ses *workerSession) bool {
	switch {
	case s.opts.Grace == 0, ses.leaving, s.shut:
		return false
	}
	return !s.away || s.allowsRoaming() && len(ses.grants) > 0
}

// endAfterGrace ends a session whose worker did not return within the grace period.
func (s *Sessions) endAfterGrace(ses *workerSession, c *workerStream) {
	s.mu.Lock()
	if ses.brokenStream != c || s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.endSessionLocked(ses)
}

// endSession ends a session, and lets other workers get its jobs.
func (s *Sessions) endSession(ses *workerSession) {
	s.mu.Lock()
	s.endSessionLocked(ses)
}

// endSessionLocked ends a session. The caller holds the lock, which it releases.
func (s *Sessions) endSessionLocked(ses *workerSession) {
	if s.byID[ses.id] != ses || ses.stream != nil {
		s.mu.Unlock()
		return
	}
	delete(s.byID, ses.id)
	then := ses.releaseAll()
	s.removeFromGroup(ses)
	s.updateMayServe()
	failed := s.removeUnservable()
	s.mu.Unlock()
	if n := len(then.landings); n > 0 {
		s.opts.Logger.Warn("worker is gone; its jobs go to other workers unless it reconnects to another member", "worker", ses.worker, "jobs", n)
	}
	s.runActions(then)
	refuseJobs(failed)
	s.uncountSession(ses.worker)
}
