package attached

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// Workers bring jobs from another member that is gone or leaving, after a broken stream, or from
// this member before its restart. This member asks the task whether the worker still has the job.
// If so, this member becomes the carrier. The job is then dispatched here, recognized, and not sent
// to the worker again.

// jobKey identifies an attempt without building its id.
type jobKey struct {
	task string
	at   flow.Address
}

// broughtJob is a job that a worker has brought. It is unsettled until the task has answered and
// the job was dispatched here.
type broughtJob struct {
	workerDelivery int                // delivery number under which the worker got the job
	since          int64              // enqueue time of the attempt that the worker got
	finished       bool               // the worker has the result
	result         *attach.Result     // result, if it has arrived here
	accepted       bool               // the task accepted this member as the carrier
	memberDelivery int                // delivery number for this member, after accepted
	parked         []carriers.Passage // deliveries of the job that arrived before it was settled
	voidBefore     int                // deliveries below this number were withdrawn
	// delivery from this member in an earlier session of the worker; nil if none
	earlierPassage carriers.Passage
	// the worker may have left, so the task is asked only after its next message
	unsure bool
	late   bool // the result arrived when there was no room for it
}

// maxEarly is how many bytes of results of unsettled jobs a member keeps. Workers must send further
// results again.
const maxEarly = 64 << 20

// keepResult keeps the result of an unsettled job if there is room for it.
func (g *jobGrant) keepResult(r *attach.Result) {
	s, b := g.session.sessions, g.brought
	s.earlyBytes -= bytesOf(b.result)
	b.result, b.late = nil, s.earlyBytes+bytesOf(r) > maxEarly
	if !b.late {
		b.result = r
		s.earlyBytes += bytesOf(r)
	}
}

func bytesOf(r *attach.Result) int {
	return len(r.GetOutput()) + len(r.GetError()) + len(r.GetDetails()) + len(r.GetMetrics())
}

// clearBrought marks a job as settled.
func (g *jobGrant) clearBrought() {
	g.session.sessions.earlyBytes -= bytesOf(g.brought.result)
	g.brought = nil
}

// Grace returns how long to wait for a worker whose member is gone.
func (s *Sessions) Grace() time.Duration {
	if s.tickets == nil {
		return 0
	}
	return s.opts.Grace
}

// Roam sets the function that sends requests for brought jobs to the tasks.
func (s *Sessions) Roam(bring func(ctx context.Context, jobs engine.Orders) engine.Outcomes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bring = bring
}

// allowsRoaming reports whether workers may move between members with their jobs.
func (s *Sessions) allowsRoaming() bool { return s.bring != nil && s.Grace() > 0 }

// acceptBrought records the jobs that a worker has brought to its new session. It returns false if
// there are none. Jobs without a valid ticket are canceled at the worker.
func (ses *workerSession) acceptBrought(hello *attach.Hello) bool {
	s := ses.sessions
	all := hello.GetBrought()
	if all = all[:min(len(all), maxCredits)]; len(all) == 0 || !s.allowsRoaming() {
		return false
	}
	finished, forged, before := map[uint64]bool{}, 0, s.earlierGrants(ses)
	for _, n := range hello.GetFinished() {
		finished[n], ses.lastNumber = true, max(ses.lastNumber, n)
	}
	for _, b := range all {
		task, at, given, since, ok := s.tickets.verifyTicket(b)
		if n := b.GetNumber(); !ok {
			forged++
		} else if ses.grants[n] == nil {
			ses.lastNumber = max(ses.lastNumber, n)
			ses.trackBrought(&jobGrant{session: ses, number: n, sent: true, task: task, at: at,
				brought: &broughtJob{workerDelivery: given, since: since, finished: finished[n]}}, before)
		}
	}
	for _, n := range hello.GetHeld() {
		if ses.lastNumber = max(ses.lastNumber, n); ses.grants[n] == nil {
			ses.cancelHeld(n)
		}
	}
	if forged > 0 {
		s.opts.Logger.Warn("worker reconnected with jobs of an invalid ticket; the jobs are canceled", "worker", ses.worker, "jobs", forged)
	}
	s.updateFree(ses)
	s.scheduleBring(ses)
	return true
}

// scheduleBring schedules the requests for the jobs that a worker has brought along.
func (s *Sessions) scheduleBring(ses *workerSession) {
	select {
	case ses.bringSignal <- struct{}{}:
	default:
	}
	if !ses.bringing {
		ses.bringing = true
		s.done.Run(func() { s.bringJobs(ses) })
	}
}

// trackBrought indexes a brought job, so that its deliveries are recognized. An earlier session of
// the same worker loses the job.
func (ses *workerSession) trackBrought(g *jobGrant, before map[jobKey]*jobGrant) {
	s, key := ses.sessions, jobKey{g.task, g.at}
	if other := s.broughtJobs[key]; other != nil {
		g.brought.earlierPassage, g.brought.parked = other.brought.earlierPassage, other.brought.parked
		other.session.releaseGrant(other)
	} else if other := before[key]; other != nil {
		delete(before, key)
		g.log, g.brought.earlierPassage = other.log, other.session.removeGrant(other)
	}
	ses.grants[g.number], s.broughtJobs[key] = g, g
}

// releaseGrant removes a brought job that has moved to another session of its worker.
func (ses *workerSession) releaseGrant(g *jobGrant) {
	g.clearBrought()
	if ses.grants[g.number] == g {
		ses.removeGrant(g)
	}
}

// earlierGrants returns the jobs in other sessions of the worker on this member.
func (s *Sessions) earlierGrants(ses *workerSession) map[jobKey]*jobGrant {
	if s.workers[ses.worker].sessions < 2 {
		return nil
	}
	all := map[jobKey]*jobGrant{}
	for _, other := range s.byID {
		if other == ses || other.worker != ses.worker {
			continue
		}
		for _, g := range other.grants {
			if g.passage != nil {
				all[jobKey{g.task, g.at}] = g
			}
		}
	}
	return all
}

// bringTimeout bounds one request, and bringBatch is how many jobs it contains. bringRetry is the
// pause after tasks did not answer. bringRecheck is the pause before tasks are asked again about
// jobs that were not dispatched here, because these may have ended.
const (
	bringTimeout = time.Second
	bringBatch   = 500
	bringRetry   = 100 * time.Millisecond
	bringRecheck = 5 * time.Second
)

// bringRequest asks a task whether this member becomes the carrier of a brought job.
type bringRequest struct {
	of    *jobGrant
	order engine.Order
}

// bringJobs sends requests for the jobs that a worker has brought along, until all are settled or
// the worker is gone.
func (s *Sessions) bringJobs(ses *workerSession) {
	for {
		takeToken(ses.bringSignal)
		all := s.unsettledJobs(ses)
		if len(all) == 0 {
			return
		}
		pause := bringRecheck
		for some := range slices.Chunk(all, bringBatch) {
			if !s.sendBringRequests(ses, some) {
				pause = bringRetry
			}
		}
		over, stop := s.host.Timer(pause)
		s.host.Wait(func() bool { return host.Closed(over) || len(ses.bringSignal) > 0 || s.ctx.Err() != nil })
		select {
		case <-s.ctx.Done():
		case <-ses.bringSignal:
		case <-over:
		}
		stop()
	}
}

// unsettledJobs returns the requests for the unsettled jobs of a worker.
func (s *Sessions) unsettledJobs(ses *workerSession) (all []bringRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { ses.bringing = len(all) > 0 }()
	if s.byID[ses.id] != ses || ses.stream == nil || s.ctx.Err() != nil {
		return nil
	}
	for _, g := range ses.grantsInOrder() {
		if g.brought != nil && !g.brought.unsure {
			all = append(all, bringRequest{g, engine.Order{Task: g.task,
				Command: flow.Bring{Address: g.at, Worker: ses.worker,
					Given: g.brought.workerDelivery, Since: g.brought.since}}})
		}
	}
	return all
}

// sendBringRequests sends requests to tasks, and reports whether all were answered.
func (s *Sessions) sendBringRequests(ses *workerSession, questions []bringRequest) (answered bool) {
	orders := make(engine.Orders, len(questions))
	for i, q := range questions {
		orders[i] = q.order
	}
	ctx, cancel := s.host.Within(s.ctx, bringTimeout)
	outcomes := s.bring(ctx, orders)
	cancel()
	answered = true
	var then unlockedActions
	s.mu.Lock()
	for i, q := range questions {
		switch err := outcomes[i].Err; {
		case q.of.brought == nil: // the job was settled meanwhile, or is in another session
		case err == nil:
			q.of.brought.accepted, q.of.brought.memberDelivery = true, outcomes[i].Given
			s.settleJob(q.of, &then)
		case flow.ErrorKindOf(err) == flow.Conflict, flow.ErrorKindOf(err) == flow.NotFound:
			s.refuseJob(q.of, &then)
		default:
			answered = false
		}
	}
	s.fillSession(ses)
	s.mu.Unlock()
	s.runActions(then)
	return answered
}

// unlockedActions are actions to perform after the lock is released.
type unlockedActions struct {
	landings []reportedJob
	resend   []carriers.Passage // jobs that need another worker
	toWake   []*workerSession   // sessions with new messages
}

func (s *Sessions) runActions(a unlockedActions) {
	for _, ses := range a.toWake {
		ses.wakeWriter()
	}
	landReports(a.landings)
	if len(a.resend) > 0 {
		s.Send(a.resend)
	}
}

// settleJob gives a brought job to its worker if the task has accepted it and the job was
// dispatched here. An earlier delivery will be withdrawn; a later one belongs to another worker.
func (s *Sessions) settleJob(g *jobGrant, then *unlockedActions) {
	b := g.brought
	switch {
	case !b.accepted:
		return
	case b.memberDelivery < b.voidBefore:
		// the job may have ended or be at another member, so the task decides
		s.bringAgain(g)
		return
	}
	if p := b.earlierPassage; p != nil && p.Job().Given == b.memberDelivery {
		b.earlierPassage = nil
		s.holdJob(g, p, then)
		return
	}
	for i, p := range b.parked {
		switch given := p.Job().Given; {
		case given > b.memberDelivery:
			s.refuseJob(g, then)
			return
		case given == b.memberDelivery:
			b.parked = slices.Delete(b.parked, i, i+1)
			s.startBrought(g, p, then)
			return
		}
	}
}

// startBrought continues a job at its worker. A job that may not start yet is sent again later. For
// a job that was just withdrawn, the task decides.
func (s *Sessions) startBrought(g *jobGrant, p carriers.Passage, then *unlockedActions) {
	switch {
	case p.Begin():
		s.holdJob(g, p, then)
	case p.Over():
		g.brought.voidBefore = g.brought.memberDelivery + 1
		s.bringAgain(g)
	}
}

// holdJob makes a brought job a regular job of the worker, and uses its result if that has arrived.
// If the result was dropped, a new stream makes the worker send it again.
func (s *Sessions) holdJob(g *jobGrant, p carriers.Passage, then *unlockedActions) {
	job, b := p.Job(), g.brought
	s.finishSettling(g, then)
	g.broughtAs = b
	g.passage, s.held[p] = p, g
	g.job = g.session.jobFor(&job, g.number)
	switch c := g.session.stream; {
	case b.result != nil:
		g.session.takeResult(b.result, then)
	case b.late && c != nil:
		c.stream.HangUp()
	}
}

// refuseJob makes a worker stop a brought job that it may not continue, or drops the result.
func (s *Sessions) refuseJob(g *jobGrant, then *unlockedActions) {
	b := g.brought
	s.finishSettling(g, then)
	switch {
	case b.result != nil:
		g.session.takeResult(b.result, then)
	case b.late:
		g.session.outbox.acknowledged = append(g.session.outbox.acknowledged, g.number)
		g.session.removeGrant(g)
	case b.finished: // the result is acknowledged when it arrives
		g.session.removeGrant(g)
	default:
		g.session.outbox.canceled = append(g.session.outbox.canceled, g.number)
	}
}

// finishSettling ends the settlement of a brought job. Other workers get the remaining deliveries.
func (s *Sessions) finishSettling(g *jobGrant, then *unlockedActions) {
	b := g.brought
	g.clearBrought()
	then.toWake = append(then.toWake, g.session)
	delete(s.broughtJobs, jobKey{g.task, g.at})
	for _, p := range b.parked {
		if b.accepted && p.Job().Given < b.memberDelivery { // outdated, and will be withdrawn
			then.landings = append(then.landings, reportedJob{Passage: p, report: flow.Report{Lost: true, Unbegun: true}})
			continue
		}
		then.resend = append(then.resend, p)
	}
	if b.earlierPassage != nil {
		then.landings = append(then.landings, reportedJob{Passage: b.earlierPassage,
			report: flow.Report{Lost: true, Worker: g.session.worker}})
	}
}

// parkIfBrought keeps a delivery of a brought job. It returns false for other jobs.
func (s *Sessions) parkIfBrought(p carriers.Passage, job *flow.Job, then *unlockedActions) bool {
	g := s.broughtJobs[jobKey{job.Task, job.Address}]
	if g == nil {
		return false
	}
	g.brought.parked = append(g.brought.parked, p)
	s.settleJob(g, then)
	return true
}

// parkQueued removes a waiting job from the queue if a worker has brought this job meanwhile. Then
// no other worker may start it before the task has answered. It returns false for other jobs.
func (s *Sessions) parkQueued(p carriers.Passage, job *flow.Job) bool {
	g := s.broughtJobs[jobKey{job.Task, job.Address}]
	if g == nil || p.Over() {
		return false
	}
	g.brought.parked = append(g.brought.parked, p)
	if g.brought.accepted { // the task's answer may be outdated
		g.brought.accepted = false
		s.scheduleBring(g.session)
	}
	return true
}

// unparkJob withdraws a delivery of a brought job. It returns false for other jobs.
func (s *Sessions) unparkJob(p carriers.Passage, then *unlockedActions) bool {
	task, at := p.Of()
	g := s.broughtJobs[jobKey{task, at}]
	if g == nil {
		return false
	}
	b, i := g.brought, slices.Index(g.brought.parked, p)
	switch {
	case b.earlierPassage == p:
		b.earlierPassage = nil
	case i >= 0:
		b.parked = slices.Delete(b.parked, i, i+1)
	default:
		return false
	}
	b.voidBefore = max(b.voidBefore, p.Job().Given+1)
	then.landings = append(then.landings, reportedJob{Passage: p, report: flow.Report{Lost: true}})
	s.settleJob(g, then)
	return true
}

// bringAgain asks a task again about a withdrawn job, because the worker may have been at another
// member since. If this happens twice without a message from the worker, the worker may have left
// unnoticed. Then the task is asked only after the worker's next message.
func (s *Sessions) bringAgain(g *jobGrant) {
	g.brought.accepted, g.brought.unsure = false, g.doubted
	g.doubted, g.session.doubted = true, true
	s.scheduleBring(g.session)
}

// withdrawBrought handles the withdrawal of a brought job that its worker is carrying out. The job
// may not have ended, so the task is asked again.
func (g *jobGrant) withdrawBrought(p carriers.Passage) {
	s := g.session.sessions
	delete(s.held, p)
	g.passage, g.job = nil, nil
	g.brought = &broughtJob{workerDelivery: g.broughtAs.workerDelivery, since: g.broughtAs.since,
		finished: g.broughtAs.finished, voidBefore: p.Job().Given + 1}
	s.broughtJobs[jobKey{g.task, g.at}] = g
	s.bringAgain(g)
}

// clearDoubts handles a sign of life of a worker.
func (ses *workerSession) clearDoubts() {
	if !ses.doubted {
		return
	}
	ses.doubted = false
	for _, g := range ses.grants {
		g.doubted = false
		if g.brought != nil {
			g.brought.unsure = false
		}
	}
	ses.sessions.scheduleBring(ses)
}
