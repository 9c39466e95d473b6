package attached

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// Jobs that workers bring along: from a member that has gone, or leaves, from one to which the
// stream broke, or from this one before it was started anew. The task is asked whether the job is
// still this worker's. If so, the job becomes this member's, which is sent it as any other job, and
// recognizes it: it is not sent to the worker, who has it.

// jobKey names an attempt without building its id.
type jobKey struct {
	task string
	at   flow.Address
}

// broughtJob is what is known of a job that a worker has brought along, until its task has answered
// and it was sent here.
type broughtJob struct {
	workerDelivery int             // which time of its being given to a carrier the worker got it
	since          int64           // when the attempt was enqueued that the worker got
	finished       bool            // the worker has its result …
	result         *attach.Result  // … which is here
	accepted       bool            // it is this member's …
	memberDelivery int             // … and this time of its being given
	parked         []carry.Passage // what was sent for it meanwhile
	voidBefore     int             // times of its being given up to this one were withdrawn
	earlierPassage carry.Passage   // as an earlier session of the worker got it from this member; nil = none did
	unsure         bool            // whether the worker is still here: the task is asked when it has said something
	late           bool            // its result came when there was no room for it
}

// maxEarly is how many bytes of results a member keeps whose jobs are not settled yet. What comes
// beyond that the worker has to send again.
const maxEarly = 64 << 20

// keepResult the result of a job that is not settled yet, if there is room for it.
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

// clearBrought ends that a job is one that was brought along.
func (g *jobGrant) clearBrought() {
	g.session.sessions.earlyBytes -= bytesOf(g.brought.result)
	g.brought = nil
}

// Grace is for how long a worker is waited for whose member has gone.
func (s *Sessions) Grace() time.Duration {
	if s.tickets == nil {
		return 0
	}
	return s.opts.Grace
}

// Roam tells how jobs that workers bring along become this member's.
func (s *Sessions) Roam(bring func(ctx context.Context, jobs engine.Orders) engine.Outcomes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bring = bring
}

// allowsRoaming reports whether workers may go elsewhere with their jobs, and come from there.
func (s *Sessions) allowsRoaming() bool { return s.bring != nil && s.Grace() > 0 }

// acceptBrought takes note of the jobs that a worker has brought along to its new session. It is
// false when there are none. What it has besides, or without a right ticket, it is to stop.
func (ses *workerSession) acceptBrought(hello *attach.Hello) bool {
	s := ses.sessions
	all := hello.GetBrought()
	if all = all[:min(len(all), maxCredits)]; len(all) == 0 || !s.allowsRoaming() {
		return false
	}
	finished, forged, before := map[uint64]bool{}, 0, s.earlierGrants(ses)
	for _, n := range hello.GetFinished() {
		finished[n] = true
	}
	for _, b := range all {
		task, at, given, since, ok := s.tickets.verifyTicket(b)
		if n := b.GetNumber(); !ok {
			forged++
		} else if ses.grants[n] == nil {
			ses.lastNumber = max(ses.lastNumber, n)
			ses.trackBrought(&jobGrant{session: ses, number: n, sent: true, task: task, at: at, brought: &broughtJob{workerDelivery: given, since: since, finished: finished[n]}}, before)
		}
	}
	for _, n := range hello.GetHeld() {
		if ses.lastNumber = max(ses.lastNumber, n); ses.grants[n] == nil {
			ses.cancelHeld(n)
		}
	}
	if forged > 0 {
		s.opts.Logger.Warn("a worker has brought jobs without a right ticket; they are canceled", "worker", ses.worker, "jobs", forged)
	}
	s.updateFree(ses)
	s.scheduleBring(ses)
	return true
}

// scheduleBring has the tasks asked for the jobs that a worker has brought along.
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

// trackBrought has what is sent for a job found. An earlier session of the same worker has it no
// longer.
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

// releaseGrant of a job that was brought along, and by now is in another session of its worker.
func (ses *workerSession) releaseGrant(g *jobGrant) {
	g.clearBrought()
	if ses.grants[g.number] == g {
		ses.removeGrant(g)
	}
}

// earlierGrants are the jobs that other sessions of the worker have here.
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

// How long the tasks may take to answer, how many are asked at once, and after how long they are
// asked again: those that did not answer, and those whose job has not been sent here yet, which may
// be over since.
const (
	bringTimeout = time.Second
	bringBatch   = 500
	bringRetry   = 100 * time.Millisecond
	bringRecheck = 5 * time.Second
)

// bringRequest is whether a job that a worker has brought along becomes this member's.
type bringRequest struct {
	of    *jobGrant
	order engine.Order
}

// bringJobs has what a worker has brought along become this member's, until all of it is settled,
// or the worker is somewhere else.
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

// unsettledJobs asks for the jobs that a worker has brought along of which it is not known yet what
// becomes of them.
func (s *Sessions) unsettledJobs(ses *workerSession) (all []bringRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { ses.bringing = len(all) > 0 }()
	if s.byID[ses.id] != ses || ses.stream == nil || s.ctx.Err() != nil {
		return nil
	}
	for _, g := range ses.grantsInOrder() {
		if g.brought != nil && !g.brought.unsure {
			all = append(all, bringRequest{g, engine.Order{Task: g.task, Command: flow.Bring{Address: g.at, Worker: ses.worker, Given: g.brought.workerDelivery, Since: g.brought.since}}})
		}
	}
	return all
}

// sendBringRequests reports whether all were answered.
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
		case q.of.brought == nil: // it was settled meanwhile, or is in another session
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

// unlockedActions is what follows once the lock is given back.
type unlockedActions struct {
	landings []reportedJob
	resend   []carry.Passage  // jobs for which somebody else is to be found
	toWake   []*workerSession // who are to be told something
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

// settleJob gives a worker the job that it has brought along, when the task has said so and it was
// sent here. What was sent for it at an earlier time of its being given is about to be withdrawn;
// at a later one it is somebody else's.
func (s *Sessions) settleJob(g *jobGrant, then *unlockedActions) {
	b := g.brought
	switch {
	case !b.accepted:
		return
	case b.memberDelivery < b.voidBefore:
		s.bringAgain(g) // it is over, or another member has it where the worker was meanwhile: the task knows
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

// startBrought has a job go on at its worker. Of one that is not to begin yet we hear again. One
// that was withdrawn just now may be over, or another member's where the worker was meanwhile: the
// task knows.
func (s *Sessions) startBrought(g *jobGrant, p carry.Passage, then *unlockedActions) {
	switch {
	case p.Begin():
		s.holdJob(g, p, then)
	case p.Over():
		g.brought.voidBefore = g.brought.memberDelivery + 1
		s.bringAgain(g)
	}
}

// holdJob notes that a job is this worker's like any other. Its result may be here already. One
// that was not kept comes again with a new stream.
func (s *Sessions) holdJob(g *jobGrant, p carry.Passage, then *unlockedActions) {
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

// refuseJob has a worker stop a job that it has brought in vain, or forgets the result.
func (s *Sessions) refuseJob(g *jobGrant, then *unlockedActions) {
	b := g.brought
	s.finishSettling(g, then)
	switch {
	case b.result != nil:
		g.session.takeResult(b.result, then)
	case b.late:
		g.session.outbox.acknowledged = append(g.session.outbox.acknowledged, g.number)
		g.session.removeGrant(g)
	case b.finished: // the result is acknowledged when it comes
		g.session.removeGrant(g)
	default:
		g.session.outbox.canceled = append(g.session.outbox.canceled, g.number)
	}
}

// finishSettling is when it is known what becomes of a job that was brought along. What was sent
// for it besides others get.
func (s *Sessions) finishSettling(g *jobGrant, then *unlockedActions) {
	b := g.brought
	g.clearBrought()
	then.toWake = append(then.toWake, g.session)
	delete(s.broughtJobs, jobKey{g.task, g.at})
	for _, p := range b.parked {
		if b.accepted && p.Job().Given < b.memberDelivery { // it is void, and about to be withdrawn
			then.landings = append(then.landings, reportedJob{Passage: p, report: flow.Report{Lost: true, Unbegun: true}})
			continue
		}
		then.resend = append(then.resend, p)
	}
	if b.earlierPassage != nil {
		then.landings = append(then.landings, reportedJob{Passage: b.earlierPassage, report: flow.Report{Lost: true, Worker: g.session.worker}})
	}
}

// parkIfBrought takes a job that is sent here because its worker has brought it along. It is false
// for any other.
func (s *Sessions) parkIfBrought(p carry.Passage, job *flow.Job, then *unlockedActions) bool {
	g := s.broughtJobs[jobKey{job.Task, job.Address}]
	if g == nil {
		return false
	}
	g.brought.parked = append(g.brought.parked, p)
	s.settleJob(g, then)
	return true
}

// parkQueued keeps a job that has waited in a line while a worker came that is at it: nobody begins
// with it before its task has said whether the worker goes on. It is false for any other.
func (s *Sessions) parkQueued(p carry.Passage, job *flow.Job) bool {
	g := s.broughtJobs[jobKey{job.Task, job.Address}]
	if g == nil || p.Over() {
		return false
	}
	g.brought.parked = append(g.brought.parked, p)
	if g.brought.accepted { // that may not be so any more
		g.brought.accepted = false
		s.scheduleBring(g.session)
	}
	return true
}

// unparkJob lets go of a job that was sent because its worker has brought it along, and that is
// withdrawn. It is false for any other.
func (s *Sessions) unparkJob(p carry.Passage, then *unlockedActions) bool {
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

// bringAgain has a task asked once more for a job that was withdrawn: the worker may have been
// somewhere else since it came with it the first time. If that happens twice while the worker says
// nothing, it may have left unseen, and another member do the same: then the task is asked when the
// worker says something.
func (s *Sessions) bringAgain(g *jobGrant) {
	g.brought.accepted, g.brought.unsure = false, g.doubted
	g.doubted, g.session.doubted = true, true
	s.scheduleBring(g.session)
}

// withdrawBrought is when a job is withdrawn that a worker has brought along and is at. It may be
// over, or not.
func (g *jobGrant) withdrawBrought(p carry.Passage) {
	s := g.session.sessions
	delete(s.held, p)
	g.passage, g.job = nil, nil
	g.brought = &broughtJob{workerDelivery: g.broughtAs.workerDelivery, since: g.broughtAs.since, finished: g.broughtAs.finished, voidBefore: p.Job().Given + 1}
	s.broughtJobs[jobKey{g.task, g.at}] = g
	s.bringAgain(g)
}

// clearDoubts is when a worker has said something.
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
