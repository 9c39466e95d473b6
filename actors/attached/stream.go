package attached

import (
	"runtime"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// connection is one stream of a session.
type connection struct {
	stream  Stream
	welcome *attach.Welcome // nil = it is sent
	wake    chan struct{}
	over    chan struct{} // closed when nothing is received any more
	heard   time.Time     // when its worker last said something
	unwatch func() bool   // ends what hangs up on a worker that says nothing
	grace   func() bool   // ends what gives the session up when no other stream comes; nil = this one has not broken
	acks    bool          // acknowledgements wait for jobs to go along with
}

func newConnection(stream Stream) *connection {
	return &connection{stream: stream, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// watch hangs up on a worker that says nothing for too long, whatever the writer waits for.
func (s *Sessions) watch(ses *session, c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := silences*s.opts.Heartbeat - s.host.Now().Sub(c.heard)
	switch {
	case host.Closed(c.over):
	case left > 0:
		c.unwatch = s.host.AfterFunc(left, func() { s.watch(ses, c) })
	default:
		s.opts.Logger.Warn("an attached worker is silent", "worker", ses.worker)
		c.stream.HangUp()
	}
}

// cease is when nothing is received any more.
func (s *Sessions) cease(c *connection) {
	close(c.over)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.unwatch != nil {
		c.unwatch()
	}
}

// take takes what waits in a channel, and says whether there was something.
func take(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// call has the writer look.
func (c *connection) call() {
	select {
	case c.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// maxUnread is how many acknowledgements may wait for a worker to read them. It has no more results than credits.
const maxUnread = 10 * maxCredits

// silences is how many heartbeats may be missing.
const silences = 3

// write sends what there is to tell until the stream is over.
func (s *Sessions) write(ses *session, c *connection) {
	beat, stop := s.host.Timer(s.opts.Heartbeat)
	defer func() { stop() }()
	c.call() // for the welcome
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
		take(c.wake)
		quiet := host.Closed(beat)
		if quiet {
			beat, stop = s.host.Timer(s.opts.Heartbeat)
			s.tend(ses)
		}
		if !s.sendAll(ses, c, quiet) {
			c.stream.HangUp()
			return
		}
		if s.finished(ses, c) {
			c.stream.HangUp()
		}
	}
}

// sendAll tells all there is to tell, or gives a sign of life if there is nothing.
func (s *Sessions) sendAll(ses *session, c *connection, beat bool) bool {
	for m := s.next(ses, c); m != nil; m = s.next(ses, c) {
		if c.stream.Send(m) != nil {
			return false
		}
		beat = false
	}
	return !beat || c.stream.Send(&attach.ToWorker{}) == nil
}

// tend passes the sign of life of a worker on, beside what is sent to it, one at a time: it may wait for other members, or for the store.
func (s *Sessions) tend(ses *session) {
	if s.opts.Workers == nil || !ses.tended.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	load := len(ses.grants)
	s.mu.Unlock()
	s.done.Run(func() {
		defer ses.tended.Store(false)
		_ = s.opts.Workers.Heartbeat(s.ctx, ses.worker, load) // of one that somebody has deregistered nothing is listed
	})
}

// batchBytes is how much one message holds, unless one job alone is more.
const batchBytes = 1 << 20

// next is a message with what there is to tell; nil = nothing.
func (s *Sessions) next(ses *session, c *connection) *attach.ToWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ses.stream != c {
		return nil
	}
	out := &ses.out
	m := &attach.ToWorker{Welcome: c.welcome, Acknowledged: out.acknowledged, Canceled: out.canceled}
	c.welcome, out.acknowledged, out.canceled = nil, nil, nil
	n := 0
	for bytes := 0; n < len(out.jobs) && bytes < batchBytes; n++ {
		g := out.jobs[n]
		if g.passage == nil { // it was withdrawn before it was sent
			g.withdraw(m)
			continue
		}
		g.sent = true
		m.Jobs = append(m.Jobs, g.job)
		bytes += len(g.job.GetInput()) + len(g.job.GetParams())
	}
	if out.jobs = out.jobs[n:]; len(out.jobs) == 0 {
		out.jobs = nil
		m.Leaving = s.leaving() && !out.told // who goes on elsewhere then has got all that is his
		out.told = out.told || m.Leaving
	}
	s.fill(ses) // in the place of what was withdrawn
	if m.Welcome == nil && len(m.GetJobs()) == 0 && len(m.GetAcknowledged()) == 0 && len(m.GetCanceled()) == 0 && !m.GetLeaving() {
		return nil
	}
	return m
}

// withdraw takes back a job that the worker has never seen: there is nothing to cancel.
func (g *grant) withdraw(m *attach.ToWorker) {
	g.of.drop(g)
	for i, n := range m.GetCanceled() {
		if n == g.number {
			m.Canceled = append(m.Canceled[:i], m.Canceled[i+1:]...)
			return
		}
	}
}

// finished says whether the member leaves and the worker has nothing left to do for it.
func (s *Sessions) finished(ses *session, c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving() && ses.stream == c && len(ses.grants) == 0
}

// read takes what the worker says until the stream is over.
func (s *Sessions) read(ses *session, c *connection, m *attach.FromWorker) {
	for {
		s.hear(ses, c, m)
		var err error
		if m, err = c.stream.Receive(); err != nil {
			return
		}
	}
}

// hear takes a message.
func (s *Sessions) hear(ses *session, c *connection, m *attach.FromWorker) {
	var then aftermath
	s.mu.Lock()
	if ses.stream != c {
		s.mu.Unlock()
		return // another stream has taken over
	}
	c.heard = s.host.Now()
	ses.present()
	if m.GetLeaving() { // first: what it returns in the same message is not lost
		ses.leaving = true
		s.recount(ses)
	}
	for _, p := range m.GetProgress() {
		s.progress(ses, p)
	}
	if len(ses.out.acknowledged)+len(m.GetResults()) > maxUnread {
		c.stream.HangUp() // it does not read what it is told
	}
	for _, r := range m.GetResults() {
		if g := ses.grants[r.GetNumber()]; g != nil && g.brought != nil {
			g.keep(r)
			continue
		}
		ses.conclude(r, &then)
	}
	s.fill(ses)
	s.answer(ses, c)
	s.mu.Unlock()
	s.see(then)
}

// ackTime is how long an acknowledgement may wait for jobs to go along with: a worker that is busy is told of both in one message.
const ackTime = 5 * time.Millisecond

// answer has the worker told at once what it waits for. Acknowledgements alone, which only have it forget, may wait. The lock is held.
func (s *Sessions) answer(ses *session, c *connection) {
	switch {
	case len(ses.out.jobs) > 0 || len(ses.out.canceled) > 0 || ses.leaving || s.leaving() || c.welcome != nil:
		c.call()
	case len(ses.out.acknowledged) > 0 && !c.acks:
		c.acks = true
		s.host.AfterFunc(ackTime, func() {
			s.mu.Lock()
			c.acks = false
			s.mu.Unlock()
			c.call()
		})
	}
}

// conclude takes a result, so that the worker may forget it.
func (ses *session) conclude(r *attach.Result, then *aftermath) {
	ses.out.acknowledged = append(ses.out.acknowledged, r.GetNumber())
	if l, ok := ses.result(r); ok {
		then.landings = append(then.landings, l)
	}
}

// result ends a job. What the worker has said at it is kept first.
func (ses *session) result(r *attach.Result) (landing, bool) {
	g := ses.grants[r.GetNumber()]
	if g == nil {
		return landing{}, false // it was told before
	}
	p := ses.drop(g)
	if p == nil {
		g.endLog()
		return landing{}, false
	}
	l := landing{Passage: p, report: ses.report(r)}
	if g.log != nil {
		ses.all.done.Run(func() {
			l.report.Log = g.log.Close()
			l.Land(l.report)
		})
		return landing{}, false
	}
	return l, true
}

// report of a result. What a worker that leaves gives back is not lost.
func (ses *session) report(r *attach.Result) flow.Report {
	report := flow.Report{Worker: ses.worker, URL: "attached", Metrics: r.GetMetrics()}
	switch r.GetOutcome() {
	case attach.Outcome_OUTCOME_COMPLETED:
		report.Output = r.GetOutput()
	case attach.Outcome_OUTCOME_RETURNED:
		report.Lost, report.Unbegun = true, ses.leaving || ses.all.leaving()
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
