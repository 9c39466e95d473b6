package actors

import (
	"maps"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Relay hands jobs on to others, who carry them out elsewhere: a job takes no place on this member
// while it waits or is under way. Its methods do not block and may be called in any goroutine.
type Relay interface {
	// Offers reports whether somebody is there for jobs like this one.
	Offers(exec *flow.Exec) bool
	// Send takes jobs, and lands each of them in the end.
	Send(jobs []Passage)
	// CallOff says that nobody waits for a job any longer. One that is under way lands at once.
	CallOff(job Passage)
	// Shut has nothing new begin.
	Shut()
}

// Sharing is a Relay that has jobs carried out at other members, too: where this one has no credit
// for a job and another one has, it lands the job as Lost, Unbegun and To that one, by its
// incarnation.
type Sharing interface {
	Relay
	// Meet has it tell the others, which are alive by their incarnations, of its credits from now
	// on, in the name of self.
	Meet(self string, alive func() []string, tell func(*engine.Credits))
	// Credited says what another one has.
	Credited(c *engine.Credits)
	// Gone says that another member is no more.
	Gone(incarnation string)
}

// Passage is a job on its way through a Relay.
type Passage = carry.Passage

// jobRoute is how jobs reach those who carry them out.
type jobRoute interface {
	enqueueJobs(flights []*activeJob) // in their order
	noteWithdrawn(f *activeJob)       // nobody waits for it any longer
	takeDone() []*activeJob           // that were carried out since the last time
	close()                           // has nothing new begin
	isIdle() bool                     // nothing is under way
}

// relayQueue is the relay of this member, what it is to get, and what is under way with it.
type relayQueue struct {
	m              *Member
	relay          Relay
	notifySessions func() // the sessions, that jobs are done with

	unsent []Passage // the sessions' own

	mu       sync.Mutex
	running  int
	closed   bool
	done     []*activeJob // that the sessions have not been told of …
	notified bool         // … but will be
}

// routeFor a job; nil = there is none. A job of type http goes to a push worker only when no
// attached one is there for it.
func (s *sessions) routeFor(x *flow.Exec) jobRoute {
	if s.relayQueue != nil && (x.Type == flow.ExecRemote || x.Type == flow.ExecHTTP && s.relayQueue.relay.Offers(x)) {
		return s.relayQueue
	}
	if p := s.pools[x.Type]; p != nil {
		return p
	}
	return nil
}

// jobRoutes are all there are.
func (s *sessions) jobRoutes() []jobRoute {
	var all []jobRoute
	if s.relayQueue != nil {
		all = append(all, s.relayQueue)
	}
	for _, by := range slices.Sorted(maps.Keys(s.pools)) {
		all = append(all, s.pools[by])
	}
	return all
}

func (w *relayQueue) enqueueJobs(flights []*activeJob) {
	w.m.ready.Add(int64(len(flights)))
	for _, f := range flights {
		w.unsent = append(w.unsent, f)
	}
}

// sendUnsent sends what has gathered.
func (w *relayQueue) sendUnsent() {
	if len(w.unsent) == 0 {
		return
	}
	w.relay.Send(w.unsent)
	clear(w.unsent)
	w.unsent = w.unsent[:0]
}

func (w *relayQueue) noteWithdrawn(f *activeJob) {
	w.sendUnsent()
	w.relay.CallOff(f)
}

func (w *relayQueue) takeDone() []*activeJob {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.done
	w.done, w.notified = nil, false
	return all
}

func (w *relayQueue) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.relay.Shut()
}

func (w *relayQueue) isIdle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running == 0
}

// startJob has a job be under way from now on, and counts it, unless nothing begins any more, or it
// was withdrawn.
func (w *relayQueue) startJob(f *activeJob) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !f.stage.CompareAndSwap(stageQueued, stageRunning) {
		return false
	}
	w.running++
	return true
}

// finishJob has the sessions forget a job.
func (w *relayQueue) finishJob(f *activeJob, begun bool) {
	w.mu.Lock()
	if begun {
		w.running--
	}
	w.done = append(w.done, f)
	tell := !w.notified
	w.notified = true
	w.mu.Unlock()
	if tell {
		w.notifySessions()
	}
}

// Job is what a relay is to hand on.
func (f *activeJob) Job() flow.Job {
	if job := f.resolved.Load(); job != nil {
		return *job
	}
	return f.dispatchedJob()
}

// Of names the job.
func (f *activeJob) Of() (task string, at flow.Address) { return f.key.task, f.key.at }

// Foreign says that another member has the job's task: it is the one to know whether nobody is
// there for it.
func (f *activeJob) Foreign() bool { return !f.route.(*relayQueue).m.owned.ownsTask(f.key.task) }

// Over says that the job was withdrawn, or the member goes.
func (f *activeJob) Over() bool { return f.jobCtx.Err() != nil }

// Begin has a job begin with a relay. Of one that may be what its carriers die of, this is stored
// first, and the job sent anew; so is one that comes while somebody else may have the lease.
func (f *activeJob) Begin() bool {
	job, w := f.Job(), f.route.(*relayQueue)
	if job.Again && !f.startRecorded || !w.m.lease.isHeld() || w.m.hasReferences(&job) {
		w.m.runBackground(func() { w.prepareJob(f, job) })
		return false
	}
	w.m.ready.Add(-1)
	if !w.startJob(f) {
		return false
	}
	w.m.metrics.observeDispatch(serviceOf(job.Exec), w.m.nowMillis()-job.EnqueuedAt)
	return true
}

// prepareJob waits until the lease is held, has it stored that a job begins, and gets the values
// that it refers to.
func (w *relayQueue) prepareJob(f *activeJob, job flow.Job) {
	if !w.m.canStart(&f.jobCtx) || job.Again && !f.startRecorded && !w.m.recordStart(&f.jobCtx, &job) {
		f.jobCtx.endJob()
		f.Land(flow.Report{Lost: true})
		return
	}
	f.startRecorded = job.Again
	if w.m.hasReferences(&job) {
		whole, err := w.m.resolveValues(&f.jobCtx, job)
		if err != nil {
			f.Land(unresolvedReport(err))
			return
		}
		f.resolved.Store(&whole)
	}
	w.relay.Send([]Passage{f})
}

// Part lands a job without a report. Whoever asks for it here, such as its task once more, is not
// heard: the member goes.
func (f *activeJob) Part() {
	f.route.(*relayQueue).m.migratedJobs.addJob(f.key, f.delivery)
	f.jobCtx.endJob()
	f.Land(flow.Report{Lost: true})
}

// Land puts the report on a job where its actor looks for it. Of one that was lost the sessions
// hear before: when the job is dispatched again they do not take it for this one. Any other is
// known to them until its report is there.
func (f *activeJob) Land(r flow.Report) {
	w := f.route.(*relayQueue)
	if p := w.m.cfg.Payloads; p != nil && p.Large(r.Output) {
		w.m.runBackground(func() { f.landReport(w.m.offloadOutput(f.key.task, r)) })
		return
	}
	f.landReport(r)
}

func (f *activeJob) landReport(r flow.Report) {
	w := f.route.(*relayQueue)
	begun := f.stage.CompareAndSwap(stageRunning, stageDone)
	if !begun {
		w.m.ready.Add(-1)
		if !f.stage.CompareAndSwap(stageQueued, stageDone) {
			return // it was withdrawn
		}
	}
	if f.jobCtx.Err() == nil || r.Error == "" && !r.Lost && w.m.ctx.Err() == nil {
		r.Given = f.delivery
		f.report = normalizeReport(f.key.at, r)
	}
	f.jobCtx.endJob()
	f.dispatch = nil
	f.resolved.Store(nil)
	in := f.inbox.Swap(nil)
	if r.Lost {
		w.finishJob(f, begun)
		in.addReport(f)
		return
	}
	in.addReport(f)
	w.finishJob(f, begun)
}
