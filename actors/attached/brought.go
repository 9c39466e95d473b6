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

// Jobs that workers bring along: from a member that has gone, or leaves, from one to which the stream broke, or from this one
// before it was started anew. The task is asked whether the job is still this worker's. If so, the job becomes this member's, which is
// sent it as any other job, and recognizes it: it is not sent to the worker, who has it.

// place names an attempt without building its id.
type place struct {
	task string
	at   flow.Address
}

// brought is what is known of a job that a worker has brought along, until its task has answered and it was sent here.
type brought struct {
	given    int             // which time of its being given to a carrier the worker got it
	since    int64           // when the attempt was enqueued that the worker got
	finished bool            // the worker has its result …
	result   *attach.Result  // … which is here
	ours     bool            // it is this member's …
	as       int             // … and this time of its being given
	parked   []carry.Passage // what was sent for it meanwhile
	void     int             // times of its being given up to this one were withdrawn
	before   carry.Passage   // as an earlier session of the worker got it from this member; nil = none did
	unsure   bool            // whether the worker is still here: the task is asked when it has said something
	late     bool            // its result came when there was no room for it
}

// maxEarly is how many bytes of results a member keeps whose jobs are not settled yet. What comes beyond that the worker has to send again.
const maxEarly = 64 << 20

// keep the result of a job that is not settled yet, if there is room for it.
func (g *grant) keep(r *attach.Result) {
	s, b := g.of.all, g.brought
	s.early -= bytesOf(b.result)
	b.result, b.late = nil, s.early+bytesOf(r) > maxEarly
	if !b.late {
		b.result = r
		s.early += bytesOf(r)
	}
}

func bytesOf(r *attach.Result) int {
	return len(r.GetOutput()) + len(r.GetError()) + len(r.GetDetails()) + len(r.GetMetrics())
}

// unbring ends that a job is one that was brought along.
func (g *grant) unbring() {
	g.of.all.early -= bytesOf(g.brought.result)
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

// roams says whether workers may go elsewhere with their jobs, and come from there.
func (s *Sessions) roams() bool { return s.bring != nil && s.Grace() > 0 }

// arrive takes note of the jobs that a worker has brought along to its new session. It is false when there are none. What it has
// besides, or without a right ticket, it is to stop.
func (ses *session) arrive(hello *attach.Hello) bool {
	s := ses.all
	all := hello.GetBrought()
	if all = all[:min(len(all), maxCredits)]; len(all) == 0 || !s.roams() {
		return false
	}
	finished, forged, before := map[uint64]bool{}, 0, s.earlier(ses)
	for _, n := range hello.GetFinished() {
		finished[n] = true
	}
	for _, b := range all {
		task, at, given, since, ok := s.tickets.read(b)
		if n := b.GetNumber(); !ok {
			forged++
		} else if ses.grants[n] == nil {
			ses.last = max(ses.last, n)
			ses.awaitJob(&grant{of: ses, number: n, sent: true, task: task, at: at, brought: &brought{given: given, since: since, finished: finished[n]}}, before)
		}
	}
	for _, n := range hello.GetHeld() {
		if ses.last = max(ses.last, n); ses.grants[n] == nil {
			ses.cancelHeld(n)
		}
	}
	if forged > 0 {
		s.opts.Logger.Warn("a worker has brought jobs without a right ticket; they are canceled", "worker", ses.worker, "jobs", forged)
	}
	s.recount(ses)
	s.askSoon(ses)
	return true
}

// askSoon has the tasks asked for the jobs that a worker has brought along.
func (s *Sessions) askSoon(ses *session) {
	select {
	case ses.asks <- struct{}{}:
	default:
	}
	if !ses.asking {
		ses.asking = true
		s.done.Run(func() { s.ask(ses) })
	}
}

// awaitJob has what is sent for a job found. An earlier session of the same worker has it no longer.
func (ses *session) awaitJob(g *grant, before map[place]*grant) {
	s, key := ses.all, place{g.task, g.at}
	if other := s.coming[key]; other != nil {
		g.brought.before, g.brought.parked = other.brought.before, other.brought.parked
		other.of.letGo(other)
	} else if other := before[key]; other != nil {
		delete(before, key)
		g.log, g.brought.before = other.log, other.of.drop(other)
	}
	ses.grants[g.number], s.coming[key] = g, g
}

// letGo of a job that was brought along, and by now is in another session of its worker.
func (ses *session) letGo(g *grant) {
	g.unbring()
	if ses.grants[g.number] == g {
		ses.drop(g)
	}
}

// earlier are the jobs that other sessions of the worker have here.
func (s *Sessions) earlier(ses *session) map[place]*grant {
	if s.names[ses.worker].sessions < 2 {
		return nil
	}
	all := map[place]*grant{}
	for _, other := range s.byID {
		if other == ses || other.worker != ses.worker {
			continue
		}
		for _, g := range other.grants {
			if g.passage != nil {
				all[place{g.task, g.at}] = g
			}
		}
	}
	return all
}

// How long the tasks may take to answer, how many are asked at once, and after how long they are asked again: those that did not answer,
// and those whose job has not been sent here yet, which may be over since.
const (
	askFor       = time.Second
	askAtOnce    = 500
	askAgain     = 100 * time.Millisecond
	askWhatComes = 5 * time.Second
)

// question is whether a job that a worker has brought along becomes this member's.
type question struct {
	of    *grant
	order engine.Order
}

// ask has what a worker has brought along become this member's, until all of it is settled, or the worker is somewhere else.
func (s *Sessions) ask(ses *session) {
	for {
		take(ses.asks)
		all := s.unsettled(ses)
		if len(all) == 0 {
			return
		}
		pause := askWhatComes
		for some := range slices.Chunk(all, askAtOnce) {
			if !s.askFor(ses, some) {
				pause = askAgain
			}
		}
		over, stop := s.host.Timer(pause)
		s.host.Wait(func() bool { return host.Closed(over) || len(ses.asks) > 0 || s.ctx.Err() != nil })
		select {
		case <-s.ctx.Done():
		case <-ses.asks:
		case <-over:
		}
		stop()
	}
}

// unsettled asks for the jobs that a worker has brought along of which it is not known yet what becomes of them.
func (s *Sessions) unsettled(ses *session) (all []question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { ses.asking = len(all) > 0 }()
	if s.byID[ses.id] != ses || ses.stream == nil || s.ctx.Err() != nil {
		return nil
	}
	for _, g := range ses.inOrder() {
		if g.brought != nil && !g.brought.unsure {
			all = append(all, question{g, engine.Order{Task: g.task, Command: flow.Bring{Address: g.at, Worker: ses.worker, Given: g.brought.given, Since: g.brought.since}}})
		}
	}
	return all
}

// askFor says whether all were answered.
func (s *Sessions) askFor(ses *session, questions []question) (answered bool) {
	orders := make(engine.Orders, len(questions))
	for i, q := range questions {
		orders[i] = q.order
	}
	ctx, cancel := s.host.Within(s.ctx, askFor)
	outcomes := s.bring(ctx, orders)
	cancel()
	answered = true
	var then aftermath
	s.mu.Lock()
	for i, q := range questions {
		switch err := outcomes[i].Err; {
		case q.of.brought == nil: // it was settled meanwhile, or is in another session
		case err == nil:
			q.of.brought.ours, q.of.brought.as = true, outcomes[i].Given
			s.settle(q.of, &then)
		case flow.ErrorKindOf(err) == flow.Conflict, flow.ErrorKindOf(err) == flow.NotFound:
			s.refuseJob(q.of, &then)
		default:
			answered = false
		}
	}
	s.fill(ses)
	s.mu.Unlock()
	s.see(then)
	return answered
}

// aftermath is what follows once the lock is given back.
type aftermath struct {
	landings []landing
	anew     []carry.Passage // jobs for which somebody else is to be found
	told     []*session      // who are to be told something
}

func (s *Sessions) see(a aftermath) {
	for _, ses := range a.told {
		ses.call()
	}
	land(a.landings)
	if len(a.anew) > 0 {
		s.Send(a.anew)
	}
}

// settle gives a worker the job that it has brought along, when the task has said so and it was sent here. What was sent for it at an earlier
// time of its being given is about to be withdrawn; at a later one it is somebody else's.
func (s *Sessions) settle(g *grant, then *aftermath) {
	b := g.brought
	switch {
	case !b.ours:
		return
	case b.as < b.void:
		s.askAnew(g) // it is over, or another member has it where the worker was meanwhile: the task knows
		return
	}
	if p := b.before; p != nil && p.Job().Given == b.as {
		b.before = nil
		s.hold(g, p, then)
		return
	}
	for i, p := range b.parked {
		switch given := p.Job().Given; {
		case given > b.as:
			s.refuseJob(g, then)
			return
		case given == b.as:
			b.parked = slices.Delete(b.parked, i, i+1)
			s.beginHere(g, p, then)
			return
		}
	}
}

// beginHere has a job go on at its worker. Of one that is not to begin yet we hear again. One that was withdrawn just now may be over, or another
// member's where the worker was meanwhile: the task knows.
func (s *Sessions) beginHere(g *grant, p carry.Passage, then *aftermath) {
	switch {
	case p.Begin():
		s.hold(g, p, then)
	case p.Over():
		g.brought.void = g.brought.as + 1
		s.askAnew(g)
	}
}

// hold notes that a job is this worker's like any other. Its result may be here already. One that was not kept comes again with a new stream.
func (s *Sessions) hold(g *grant, p carry.Passage, then *aftermath) {
	job, b := p.Job(), g.brought
	s.settled(g, then)
	g.came = b
	g.passage, s.held[p] = p, g
	g.job = g.of.jobFor(&job, g.number)
	switch c := g.of.stream; {
	case b.result != nil:
		g.of.conclude(b.result, then)
	case b.late && c != nil:
		c.stream.HangUp()
	}
}

// refuseJob has a worker stop a job that it has brought in vain, or forgets the result.
func (s *Sessions) refuseJob(g *grant, then *aftermath) {
	b := g.brought
	s.settled(g, then)
	switch {
	case b.result != nil:
		g.of.conclude(b.result, then)
	case b.late:
		g.of.out.acknowledged = append(g.of.out.acknowledged, g.number)
		g.of.drop(g)
	case b.finished: // the result is acknowledged when it comes
		g.of.drop(g)
	default:
		g.of.out.canceled = append(g.of.out.canceled, g.number)
	}
}

// settled is when it is known what becomes of a job that was brought along. What was sent for it besides others get.
func (s *Sessions) settled(g *grant, then *aftermath) {
	b := g.brought
	g.unbring()
	then.told = append(then.told, g.of)
	delete(s.coming, place{g.task, g.at})
	for _, p := range b.parked {
		if b.ours && p.Job().Given < b.as { // it is void, and about to be withdrawn
			then.landings = append(then.landings, landing{Passage: p, report: flow.Report{Lost: true, Unbegun: true}})
			continue
		}
		then.anew = append(then.anew, p)
	}
	if b.before != nil {
		then.landings = append(then.landings, landing{Passage: b.before, report: flow.Report{Lost: true, Worker: g.of.worker}})
	}
}

// recognize takes a job that is sent here because its worker has brought it along. It is false for any other.
func (s *Sessions) recognize(p carry.Passage, job *flow.Job, then *aftermath) bool {
	g := s.coming[place{job.Task, job.Address}]
	if g == nil {
		return false
	}
	g.brought.parked = append(g.brought.parked, p)
	s.settle(g, then)
	return true
}

// park keeps a job that has waited in a line while a worker came that is at it: nobody begins with it before its task has said whether the
// worker goes on. It is false for any other.
func (s *Sessions) park(p carry.Passage, job *flow.Job) bool {
	g := s.coming[place{job.Task, job.Address}]
	if g == nil || p.Over() {
		return false
	}
	g.brought.parked = append(g.brought.parked, p)
	if g.brought.ours { // that may not be so any more
		g.brought.ours = false
		s.askSoon(g.of)
	}
	return true
}

// unpark lets go of a job that was sent because its worker has brought it along, and that is withdrawn. It is false for any other.
func (s *Sessions) unpark(p carry.Passage, then *aftermath) bool {
	task, at := p.Of()
	g := s.coming[place{task, at}]
	if g == nil {
		return false
	}
	b, i := g.brought, slices.Index(g.brought.parked, p)
	switch {
	case b.before == p:
		b.before = nil
	case i >= 0:
		b.parked = slices.Delete(b.parked, i, i+1)
	default:
		return false
	}
	b.void = max(b.void, p.Job().Given+1)
	then.landings = append(then.landings, landing{Passage: p, report: flow.Report{Lost: true}})
	s.settle(g, then)
	return true
}

// askAnew has a task asked once more for a job that was withdrawn: the worker may have been somewhere else since it came with it the
// first time. If that happens twice while the worker says nothing, it may have left unseen, and another member do the same: then the
// task is asked when the worker says something.
func (s *Sessions) askAnew(g *grant) {
	g.brought.ours, g.brought.unsure = false, g.doubted
	g.doubted, g.of.doubted = true, true
	s.askSoon(g.of)
}

// doubt is when a job is withdrawn that a worker has brought along and is at. It may be over, or not.
func (g *grant) doubt(p carry.Passage) {
	s := g.of.all
	delete(s.held, p)
	g.passage, g.job = nil, nil
	g.brought = &brought{given: g.came.given, since: g.came.since, finished: g.came.finished, void: p.Job().Given + 1}
	s.coming[place{g.task, g.at}] = g
	s.askAnew(g)
}

// present is when a worker has said something.
func (ses *session) present() {
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
	ses.all.askSoon(ses)
}
