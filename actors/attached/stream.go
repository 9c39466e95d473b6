package attached

import (
	"runtime"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// workerStream is one stream of a session.
type workerStream struct {
	stream       Stream
	welcome      *attach.Welcome // nil = it is sent
	wake         chan struct{}
	over         chan struct{} // closed when nothing is received any more
	heardAt      time.Time     // when its worker last said something
	stopWatch    func() bool   // ends what hangs up on a worker that says nothing
	stopGrace    func() bool   // ends what gives the session up when no other stream comes; nil = this one has not broken
	ackScheduled bool          // acknowledgements wait for jobs to go along with
}

func newWorkerStream(stream Stream) *workerStream {
	return &workerStream{stream: stream, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// watchSilence hangs up on a worker that says nothing for too long, whatever the writer waits for.
func (s *Sessions) watchSilence(ses *workerSession, c *workerStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := maxMissedHeartbeats*s.opts.Heartbeat - s.host.Now().Sub(c.heardAt)
	switch {
	case host.Closed(c.over):
	case left > 0:
		c.stopWatch = s.host.AfterFunc(left, func() { s.watchSilence(ses, c) })
	default:
		s.opts.Logger.Warn("an attached worker is silent", "worker", ses.worker)
		c.stream.HangUp()
	}
}

// stopReceiving is when nothing is received any more.
func (s *Sessions) stopReceiving(c *workerStream) {
	close(c.over)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stopWatch != nil {
		c.stopWatch()
	}
}

// takeToken takes what waits in a channel, and says whether there was something.
func takeToken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wakeWriter has the writer look.
func (c *workerStream) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// maxUnread is how many acknowledgements may wait for a worker to read them. It has no more results
// than credits.
const maxUnread = 10 * maxCredits

// maxMissedHeartbeats is how many heartbeats may be missing.
const maxMissedHeartbeats = 3

// writeMessages sends what there is to tell until the stream is over.
func (s *Sessions) writeMessages(ses *workerSession, c *workerStream) {
	beat, stop := s.host.Timer(s.opts.Heartbeat)
	defer func() { stop() }()
	c.wakeWriter() // for the welcome
	called := func() bool { return len(c.wake) > 0 || host.Closed(c.over) || host.Closed(beat) }
	for {
		s.host.Wait(called)
		select {
		case <-c.over:
		case <-c.wake:
			runtime.Gosched() // what is about to be told as well goes along
		case <-beat:
		}
		// Nothing depends on which it was of those that there were.
		if host.Closed(c.over) {
			return
		}
		takeToken(c.wake)
		quiet := host.Closed(beat)
		if quiet {
			beat, stop = s.host.Timer(s.opts.Heartbeat)
			s.passHeartbeat(ses)
		}
		if !s.sendAll(ses, c, quiet) {
			c.stream.HangUp()
			return
		}
		if s.hasFinished(ses, c) {
			c.stream.HangUp()
		}
	}
}

// sendAll tells all there is to tell, or gives a sign of life if there is nothing.
func (s *Sessions) sendAll(ses *workerSession, c *workerStream, beat bool) bool {
	for m := s.nextMessage(ses, c); m != nil; m = s.nextMessage(ses, c) {
		if c.stream.Send(m) != nil {
			return false
		}
		beat = false
	}
	return !beat || c.stream.Send(&attach.ToWorker{}) == nil
}

// passHeartbeat passes the sign of life of a worker on, beside what is sent to it, one at a time:
// it may wait for other members, or for the store.
func (s *Sessions) passHeartbeat(ses *workerSession) {
	if s.opts.Workers == nil || !ses.heartbeatRunning.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	load := len(ses.grants)
	s.mu.Unlock()
	s.done.Run(func() {
		defer ses.heartbeatRunning.Store(false)
		_ = s.opts.Workers.Heartbeat(s.ctx, ses.worker, load) // of one that somebody has deregistered nothing is listed
	})
}

// batchBytes is how much one message holds, unless one job alone is more.
const batchBytes = 1 << 20

// nextMessage is a message with what there is to tell; nil = nothing.
func (s *Sessions) nextMessage(ses *workerSession, c *workerStream) *attach.ToWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ses.stream != c {
		return nil
	}
	out := &ses.outbox
	m := &attach.ToWorker{Welcome: c.welcome, Acknowledged: out.acknowledged, Canceled: out.canceled}
	c.welcome, out.acknowledged, out.canceled = nil, nil, nil
	n := 0
	for bytes := 0; n < len(out.jobs) && bytes < batchBytes; n++ {
		g := out.jobs[n]
		if g.passage == nil { // it was withdrawn before it was sent
			g.withdrawUnsent(m)
			continue
		}
		g.sent = true
		m.Jobs = append(m.Jobs, g.job)
		bytes += len(g.job.GetInput()) + len(g.job.GetParams())
	}
	if out.jobs = out.jobs[n:]; len(out.jobs) == 0 {
		out.jobs = nil
		m.Leaving = s.isLeaving() && !out.told // who goes on elsewhere then has got all that is his
		out.told = out.told || m.Leaving
	}
	s.fillSession(ses) // in the place of what was withdrawn
	if m.Welcome == nil && len(m.GetJobs()) == 0 && len(m.GetAcknowledged()) == 0 && len(m.GetCanceled()) == 0 && !m.GetLeaving() {
		return nil
	}
	return m
}

// withdrawUnsent takes back a job that the worker has never seen: there is nothing to cancel.
func (g *jobGrant) withdrawUnsent(m *attach.ToWorker) {
	g.session.removeGrant(g)
	for i, n := range m.GetCanceled() {
		if n == g.number {
			m.Canceled = append(m.Canceled[:i], m.Canceled[i+1:]...)
			return
		}
	}
}

// hasFinished reports whether the member leaves and the worker has nothing left to do for it.
func (s *Sessions) hasFinished(ses *workerSession, c *workerStream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isLeaving() && ses.stream == c && len(ses.grants) == 0
}

// readMessages takes what the worker says until the stream is over.
func (s *Sessions) readMessages(ses *workerSession, c *workerStream, m *attach.FromWorker) {
	for {
		s.handleMessage(ses, c, m)
		var err error
		if m, err = c.stream.Receive(); err != nil {
			return
		}
	}
}

// handleMessage takes a message.
func (s *Sessions) handleMessage(ses *workerSession, c *workerStream, m *attach.FromWorker) {
	var then unlockedActions
	s.mu.Lock()
	if ses.stream != c {
		s.mu.Unlock()
		return // another stream has taken over
	}
	c.heardAt = s.host.Now()
	ses.clearDoubts()
	if m.GetLeaving() { // first: what it returns in the same message is not lost
		ses.leaving = true
		s.updateFree(ses)
	}
	for _, p := range m.GetProgress() {
		s.takeProgress(ses, p)
	}
	if len(ses.outbox.acknowledged)+len(m.GetResults()) > maxUnread {
		c.stream.HangUp() // it does not read what it is told
	}
	for _, r := range m.GetResults() {
		if g := ses.grants[r.GetNumber()]; g != nil && g.brought != nil {
			g.keepResult(r)
			continue
		}
		ses.takeResult(r, &then)
	}
	s.fillSession(ses)
	s.wakeIfNeeded(ses, c)
	s.mu.Unlock()
	s.runActions(then)
}

// ackDelay is how long an acknowledgement may wait for jobs to go along with: a worker that is busy
// is told of both in one message.
const ackDelay = 5 * time.Millisecond

// wakeIfNeeded has the worker told at once what it waits for. Acknowledgements alone, which only
// have it forget, may wait. The lock is held.
func (s *Sessions) wakeIfNeeded(ses *workerSession, c *workerStream) {
	switch {
	case len(ses.outbox.jobs) > 0 || len(ses.outbox.canceled) > 0 || ses.leaving || s.isLeaving() || c.welcome != nil:
		c.wakeWriter()
	case len(ses.outbox.acknowledged) > 0 && !c.ackScheduled:
		c.ackScheduled = true
		s.host.AfterFunc(ackDelay, func() {
			s.mu.Lock()
			c.ackScheduled = false
			s.mu.Unlock()
			c.wakeWriter()
		})
	}
}

// takeResult takes a result, so that the worker may forget it.
func (ses *workerSession) takeResult(r *attach.Result, then *unlockedActions) {
	ses.outbox.acknowledged = append(ses.outbox.acknowledged, r.GetNumber())
	if l, ok := ses.finishJob(r); ok {
		then.landings = append(then.landings, l)
	}
}

// finishJob ends a job. What the worker has said at it is kept first.
func (ses *workerSession) finishJob(r *attach.Result) (reportedJob, bool) {
	g := ses.grants[r.GetNumber()]
	if g == nil {
		return reportedJob{}, false // it was told before
	}
	p := ses.removeGrant(g)
	if p == nil {
		g.endLog()
		return reportedJob{}, false
	}
	l := reportedJob{Passage: p, report: ses.toReport(r)}
	if g.log != nil {
		ses.sessions.done.Run(func() {
			l.report.Log = g.log.Close()
			l.Land(l.report)
		})
		return reportedJob{}, false
	}
	return l, true
}

// toReport of a result. What a worker that leaves gives back is not lost.
func (ses *workerSession) toReport(r *attach.Result) flow.Report {
	report := flow.Report{Worker: ses.worker, URL: "attached", Metrics: r.GetMetrics()}
	switch r.GetOutcome() {
	case attach.Outcome_OUTCOME_COMPLETED:
		report.Output = r.GetOutput()
	case attach.Outcome_OUTCOME_RETURNED:
		report.Lost, report.Unbegun = true, ses.leaving || ses.sessions.isLeaving()
	case attach.Outcome_OUTCOME_CANCELED:
		report.Lost = true
	default:
		report.Error, report.Details, report.Fatal = r.GetError(), r.GetDetails(), r.GetFatal()
		if report.Error == "" {
			report.Error = "failed"
		}
	}
	return report
}
