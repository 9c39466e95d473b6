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
	welcome      *attach.Welcome // nil after it was sent
	wake         chan struct{}
	over         chan struct{} // closed when no more messages are received
	heardAt      time.Time     // time of the worker's last message
	stopWatch    func() bool   // stops the check for a silent worker
	stopGrace    func() bool   // stops the grace period; nil if the stream is not broken
	ackScheduled bool          // acknowledgements wait to be sent together with jobs
}

func newWorkerStream(stream Stream) *workerStream {
	return &workerStream{stream: stream, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// watchSilence hangs up on a worker that is silent for too long, even while the writer is blocked.
func (s *Sessions) watchSilence(ses *workerSession, c *workerStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := maxMissedHeartbeats*s.opts.Heartbeat - s.host.Now().Sub(c.heardAt)
	switch {
	case host.Closed(c.over):
	case left > 0:
		c.stopWatch = s.host.AfterFunc(left, func() { s.watchSilence(ses, c) })
	default:
		s.opts.Logger.Warn("attached worker stopped responding", "worker", ses.worker)
		c.stream.HangUp()
	}
}

// stopReceiving marks a stream as ended for receiving.
func (s *Sessions) stopReceiving(c *workerStream) {
	close(c.over)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stopWatch != nil {
		c.stopWatch()
	}
}

// takeToken takes a token from a channel, and reports whether there was one.
func takeToken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wakeWriter wakes the writer of the stream.
func (c *workerStream) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default: // the writer is about to run anyway
	}
}

// maxUnread is how many acknowledgements may wait for a worker to read them. Correct workers stay
// below, because they have no more results than credits.
const maxUnread = 10 * maxCredits

// maxMissedHeartbeats is the number of missing heartbeats after which a worker counts as gone.
const maxMissedHeartbeats = 3

// writeMessages sends messages to the worker until the stream has ended.
func (s *Sessions) writeMessages(ses *workerSession, c *workerStream) {
	beat, stop := s.host.Timer(s.opts.Heartbeat)
	defer func() { stop() }()
	c.wakeWriter() // sends the welcome
	called := func() bool { return len(c.wake) > 0 || host.Closed(c.over) || host.Closed(beat) }
	for {
		s.host.Wait(called)
		select {
		case <-c.over:
		case <-c.wake:
			runtime.Gosched() // collects messages that are about to be added
		case <-beat:
		}
		// The result must not depend on the random choice of select.
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

// sendAll sends all pending messages. Without any, it sends a heartbeat if beat is true.
func (s *Sessions) sendAll(ses *workerSession, c *workerStream, beat bool) bool {
	for m := s.nextMessage(ses, c); m != nil; m = s.nextMessage(ses, c) {
		if c.stream.Send(m) != nil {
			return false
		}
		beat = false
	}
	return !beat || c.stream.Send(&attach.ToWorker{}) == nil
}

// passHeartbeat passes on a worker's heartbeat, one at a time. It runs beside the writer, because
// it may wait for other members or the store.
func (s *Sessions) passHeartbeat(ses *workerSession) {
	if s.opts.Workers == nil || !ses.heartbeatRunning.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	load := len(ses.grants)
	s.mu.Unlock()
	s.done.Run(func() {
		defer ses.heartbeatRunning.Store(false)
		_ = s.opts.Workers.Heartbeat(s.ctx, ses.worker, load) // a deregistered worker is not listed
	})
}

// batchBytes is the maximum size of one message, unless a single job is larger.
const batchBytes = 1 << 20

// nextMessage returns the next message for the worker; nil if there is none.
func (s *Sessions) nextMessage(ses *workerSession, c *workerStream) *attach.ToWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ses.stream != c {
		return nil
	}
	out := &ses.outbox
	m := &attach.ToWorker{Welcome: c.welcome, Acknowledged: out.acknowledged, Canceled: out.canceled}
	c.welcome, out.acknowledged, out.canceled = nil, nil, nil
	n, bytes := 0, 0
	for ; n < len(out.jobs) && bytes < batchBytes; n++ {
		g := out.jobs[n]
		if g.passage == nil { // the job was withdrawn before it was sent
			g.withdrawUnsent(m)
			continue
		}
		g.sent = true
		m.Jobs = append(m.Jobs, g.job)
		bytes += g.bytes()
	}
	if out.jobs = out.jobs[n:]; len(out.jobs) == 0 {
		out.jobs = nil
		m.Leaving = s.isLeaving() && !out.told // a worker that moves then already has all its jobs
		out.told = out.told || m.Leaving
		out.addFunctions(m, bytes) // after the jobs of the functions
	}
	s.fillSession(ses) // replaces withdrawn jobs
	if m.Welcome == nil && len(m.GetJobs()) == 0 && len(m.GetAcknowledged()) == 0 && len(m.GetCanceled()) == 0 && !m.GetLeaving() &&
		len(m.GetAnswers()) == 0 && len(m.GetSteps()) == 0 {
		return nil
	}
	return m
}

// bytes returns the approximate size of a job in a message.
func (g *jobGrant) bytes() int {
	size := len(g.job.GetInput()) + len(g.job.GetParams())
	for _, s := range g.job.GetFunction().GetSteps() {
		size += stepBytes(s)
	}
	return size
}

// withdrawUnsent withdraws a job that was never sent to the worker, so there is nothing to cancel.
func (g *jobGrant) withdrawUnsent(m *attach.ToWorker) {
	g.session.removeGrant(g)
	for i, n := range m.GetCanceled() {
		if n == g.number {
			m.Canceled = append(m.Canceled[:i], m.Canceled[i+1:]...)
			return
		}
	}
}

// hasFinished reports whether the member is leaving and the worker has no more jobs.
func (s *Sessions) hasFinished(ses *workerSession, c *workerStream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isLeaving() && ses.stream == c && len(ses.grants) == 0
}

// readMessages handles the worker's messages until the stream has ended.
func (s *Sessions) readMessages(ses *workerSession, c *workerStream, m *attach.FromWorker) {
	for {
		s.handleMessage(ses, c, m)
		var err error
		if m, err = c.stream.Receive(); err != nil {
			return
		}
	}
}

// handleMessage handles one message of a worker.
func (s *Sessions) handleMessage(ses *workerSession, c *workerStream, m *attach.FromWorker) {
	var then unlockedActions
	s.mu.Lock()
	if ses.stream != c {
		s.mu.Unlock()
		return // a newer stream has replaced this one
	}
	c.heardAt = s.host.Now()
	ses.clearDoubts()
	if m.GetLeaving() { // first, so that jobs returned in the same message are not lost
		ses.leaving = true
		s.updateFree(ses)
	}
	for _, p := range m.GetProgress() {
		s.takeProgress(ses, p)
	}
	for _, r := range m.GetRecords() {
		ses.takeRecord(r)
	}
	if len(ses.outbox.acknowledged)+len(m.GetResults())+len(ses.outbox.answers) > maxUnread {
		c.stream.HangUp() // the worker does not read its messages
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

// ackDelay is how long an acknowledgement may wait to be sent together with jobs. A busy worker
// then gets both in one message.
const ackDelay = 5 * time.Millisecond

// wakeIfNeeded wakes the writer if the worker waits for a message. Acknowledgements alone may be
// delayed, because they only free the worker's memory. The caller holds the lock.
func (s *Sessions) wakeIfNeeded(ses *workerSession, c *workerStream) {
	switch {
	case len(ses.outbox.jobs) > 0 || len(ses.outbox.canceled) > 0 || len(ses.outbox.answers) > 0,
		ses.leaving || s.isLeaving() || c.welcome != nil:
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

// takeResult accepts and acknowledges a result, so that the worker may drop it.
func (ses *workerSession) takeResult(r *attach.Result, then *unlockedActions) {
	ses.outbox.acknowledged = append(ses.outbox.acknowledged, r.GetNumber())
	if l, ok := ses.finishJob(r); ok {
		then.landings = append(then.landings, l)
	}
}

// finishJob ends a job and returns its report. It first stores the worker's output.
func (ses *workerSession) finishJob(r *attach.Result) (reportedJob, bool) {
	g := ses.grants[r.GetNumber()]
	if g == nil {
		return reportedJob{}, false // the result arrived before
	}
	p := ses.removeGrant(g)
	if p == nil {
		g.endLog()
		return reportedJob{}, false
	}
	l := reportedJob{Passage: p, report: g.toReport(r)}
	if up := l.report.GivenUp; up != nil && up.Reason != flow.HeldWaiting && up.Reason != flow.HeldPaused && !up.Restarts {
		ses.sessions.noteHeld(p) // beyond the limit, a retry of the task delivers it later
	}
	if g.log != nil {
		ses.sessions.done.Run(func() {
			l.report.Log = g.log.Close()
			l.Land(l.report)
		})
		return reportedJob{}, false
	}
	return l, true
}

// toReport converts a result to a report. Jobs that a leaving worker returns do not count as lost.
func (g *jobGrant) toReport(r *attach.Result) flow.Report {
	ses := g.session
	report := flow.Report{Worker: ses.worker, URL: "attached", Metrics: r.GetMetrics()}
	if report.GivenUp = g.givenUpBy(r); report.GivenUp != nil {
		report.Output = r.GetOutput()
		return report
	}
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
