package actors

import (
	"maps"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe/actors/metrics"
	"github.com/troupe-engine/troupe/actors/values"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Relay passes jobs to workers outside this process. A job takes no worker place of this member
// while it waits or runs. Its methods do not block, and any goroutine may call them.
type Relay interface {
	// Offers reports whether a worker for such a job is attached.
	Offers(exec *flow.Exec) bool
	// Send takes jobs, and eventually lands each of them: it calls Land or Part.
	Send(jobs []Passage)
	// CallOff withdraws a job that is no longer needed. If it is running, it lands at once.
	CallOff(job Passage)
	// Shut prevents further jobs from starting.
	Shut()
}

// Sharing is a Relay that also uses workers at other members. If this member has no credit for a
// job and another one has, it lands the job as Lost and Unbegun. The report's To is the incarnation
// of that member.
type Sharing interface {
	Relay
	// Meet makes it announce its credits to the other members from now on, in the name of self.
	// alive returns the incarnations of the live members.
	Meet(self string, alive func() []string, tell func(*engine.Credits))
	// Credited receives the credits of another member.
	Credited(c *engine.Credits)
	// Gone reports that another member is gone.
	Gone(incarnation string)
}

// Passage is a job on its way through a Relay.
type Passage = carriers.Passage

// jobRoute passes jobs to their carriers.
type jobRoute interface {
	enqueueJobs(flights []*activeJob) // in order
	noteWithdrawn(f *activeJob)       // withdraws a job
	takeDone() []*activeJob           // the jobs finished since the last call
	close()                           // prevents further jobs from starting
	isIdle() bool                     // no jobs are running
}

// relayQueue holds the relay of this member, the jobs to send to it, and the number of jobs running
// with it.
type relayQueue struct {
	m              *Member
	relay          Relay
	notifySessions func() // notifies the sessions actor of finished jobs

	unsent []Passage // used by the sessions actor only

	mu       sync.Mutex
	running  int
	closed   bool
	done     []*activeJob // finished jobs that the sessions actor has not taken yet …
	notified bool         // … of which it has been notified
}

// routeFor returns the route for a job; nil if there is none. A job of type http goes to a push
// worker only if no attached worker offers its service. A function that is a flow goes to an
// attached worker only if this member does not have it.
func (s *sessions) routeFor(x *flow.Exec) jobRoute {
	if s.relayQueue != nil && s.isRelayed(x) {
		return s.relayQueue
	}
	if p := s.pools[x.Type]; p != nil {
		return p
	}
	return nil
}

func (s *sessions) isRelayed(x *flow.Exec) bool {
	switch x.Type {
	case flow.ExecRemote:
		return true
	case flow.ExecPush:
		return s.relayQueue.relay.Offers(x)
	case flow.ExecCode:
		p := s.pools[x.Type]
		if p == nil {
			return true
		}
		own, selective := p.carrier.(Selective)
		return selective && !own.Has(x.Func)
	}
	return false
}

// jobRoutes returns all routes.
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
	w.m.counts.ready.Add(int64(len(flights)))
	for _, f := range flights {
		w.unsent = append(w.unsent, f)
	}
}

// sendUnsent sends the collected jobs.
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

// startJob marks a job as running and counts it. It returns false if no more jobs may start, or the
// job was withdrawn.
func (w *relayQueue) startJob(f *activeJob) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !f.stage.CompareAndSwap(stageQueued, stageRunning) {
		return false
	}
	w.running++
	return true
}

// finishJob makes the sessions actor forget a job.
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

// Job returns the job to pass on.
func (f *activeJob) Job() flow.Job {
	if job := f.resolved.Load(); job != nil {
		return *job
	}
	return f.dispatchedJob()
}

// Of returns the job's task and address.
func (f *activeJob) Of() (task string, at flow.Address) { return f.key.Task, f.key.At }

// Foreign reports whether another member owns the job's task. Only the owner decides what to do
// when no worker is available.
func (f *activeJob) Foreign() bool { return !f.route.(*relayQueue).m.owned.OwnsTask(f.key.Task) }

// FunctionHost returns the side of the task for the carrier of a function that is a flow.
func (f *activeJob) FunctionHost() carriers.FunctionHost {
	job := f.Job()
	return f.route.(*relayQueue).m.carryPart().functionHost(&f.jobCtx, f, &job)
}

// Over reports whether the job was withdrawn, or the member stops.
func (f *activeJob) Over() bool { return f.jobCtx.Err() != nil }

// Begin starts a job with a relay. If the job may be crashing its carriers, the start must be
// stored first, and then the job is sent again. The same holds while another member may have the
// lease, and for values that must be loaded.
func (f *activeJob) Begin() bool {
	job, w := f.Job(), f.route.(*relayQueue)
	if job.Again && !f.startRecorded || !w.m.lease.IsHeld() || w.m.values.HasReferences(&job) {
		w.m.work.Run(func() { w.prepareJob(f, job) })
		return false
	}
	w.m.counts.ready.Add(-1)
	if !w.startJob(f) {
		return false
	}
	w.m.metrics.ObserveDispatch(metrics.ServiceOf(job.Exec), w.m.nowMillis()-job.EnqueuedAt)
	return true
}

// prepareJob waits until the lease is held, stores the start of the job, and loads its values.
func (w *relayQueue) prepareJob(f *activeJob, job flow.Job) {
	if !w.m.carryPart().canStart(&f.jobCtx) || job.Again && !f.startRecorded && !w.m.carryPart().recordStart(&f.jobCtx, &job) {
		f.jobCtx.endJob()
		f.Land(flow.Report{Lost: true})
		return
	}
	f.startRecorded = job.Again
	if w.m.values.HasReferences(&job) {
		whole, err := w.m.values.Resolve(&f.jobCtx, job)
		if err != nil {
			f.Land(values.UnresolvedReport(err))
			return
		}
		f.resolved.Store(&whole)
	}
	w.relay.Send([]Passage{f})
}

// Part lands a job without a report because its worker takes it along to another member. While this
// member stops, it ignores requests for the job, such as one from its reloaded task.
func (f *activeJob) Part() {
	f.route.(*relayQueue).m.peers.migrated.addJob(f.key, f.delivery)
	f.jobCtx.endJob()
	f.Land(flow.Report{Lost: true})
}

// Land puts the report of a job into its actor's inbox. The sessions actor forgets a lost job
// before its report arrives, so that it does not mistake a new dispatch for this one. It keeps any
// other job until its report has arrived.
func (f *activeJob) Land(r flow.Report) {
	w := f.route.(*relayQueue)
	if p := w.m.cfg.Payloads; p != nil && p.Large(r.Output) {
		w.m.work.Run(func() { f.landReport(w.m.values.OffloadOutput(f.key.Task, r)) })
		return
	}
	f.landReport(r)
}

func (f *activeJob) landReport(r flow.Report) {
	w := f.route.(*relayQueue)
	begun := f.stage.CompareAndSwap(stageRunning, stageDone)
	if !begun {
		w.m.counts.ready.Add(-1)
		if !f.stage.CompareAndSwap(stageQueued, stageDone) {
			return // it was withdrawn
		}
	}
	lost := f.waitEnds.close()
	if lost != nil {
		r = values.UnresolvedReport(lost)
	}
	if lost != nil || f.jobCtx.Err() == nil || r.Error == "" && !r.Lost && !w.m.work.HasEnded() {
		r.Given = f.delivery
		f.report = normalizeReport(f.key.At, r)
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

// sharingRelay returns the relay if it shares jobs with other members' relays, else nil.
func (m jobCarrying) sharingRelay() Sharing {
	r, _ := m.cfg.Relay.(Sharing)
	if m.cfg.Others == nil {
		return nil
	}
	return r
}
