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

// Relay passes jobs to workers outside this process. Such a job takes no worker place of this
// member. The methods do not block and are safe for concurrent use.
type Relay interface {
	// Offers reports whether an attached worker can carry out such a job.
	Offers(exec *flow.Exec) bool
	// Send takes jobs. The relay later calls Land or Part for each of them.
	Send(jobs []Passage)
	// CallOff withdraws a job that is no longer needed. A running job lands at once.
	CallOff(job Passage)
	// Shut prevents further jobs from starting.
	Shut()
}

// Sharing is a Relay that also uses workers of other members. If only another member has credit for
// a job, the relay lands the job as Lost and Unbegun. Then To of the report is the incarnation of
// that member.
type Sharing interface {
	Relay
	// Meet starts the announcement of credits to other members in the name of self. alive returns
	// the incarnations of the live members, and tell sends an announcement.
	Meet(self string, alive func() []string, tell func(*engine.Credits))
	// Credited receives the credits of another member.
	Credited(c *engine.Credits)
	// Gone removes the credits of another member that is gone.
	Gone(incarnation string)
}

// Passage is a job on its way through a Relay.
type Passage = carriers.Passage

// jobRoute passes jobs to their carriers.
type jobRoute interface {
	enqueueJobs(flights []*activeJob) // appends jobs in order
	noteWithdrawn(f *activeJob)       // withdraws a job
	takeDone() []*activeJob           // the jobs finished since the last call
	close()                           // prevents further jobs from starting
	isIdle() bool                     // reports whether no jobs are running
}

// relayQueue holds the relay of this member, the unsent jobs, and the number of jobs that run with
// the relay.
type relayQueue struct {
	m              *Member
	relay          Relay
	notifySessions func() // notifies the sessions actor of finished jobs

	unsent []Passage // used by the sessions actor only

	mu       sync.Mutex
	running  int
	closed   bool
	done     []*activeJob // finished jobs that the sessions actor has not taken yet
	notified bool         // the sessions actor was notified of the jobs in done
}

// routeFor returns the route for a job; nil if there is none. A job of type http goes to a push
// worker only if no attached worker offers its service. A function flow goes to an attached worker
// only if this member lacks the function.
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

// startJob marks a job as running and counts it. It returns false if the queue is closed or the job
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

// finishJob adds a job to the finished jobs, so that the sessions actor removes it.
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

// Job returns the job to pass on, with its values if they were loaded.
func (f *activeJob) Job() flow.Job {
	if job := f.resolved.Load(); job != nil {
		return *job
	}
	return f.dispatchedJob()
}

// Of returns the job's task and address.
func (f *activeJob) Of() (task string, at flow.Address) { return f.key.Task, f.key.At }

// Foreign reports whether another member owns the task of the job. Only the owner decides what
// happens when no worker is available.
func (f *activeJob) Foreign() bool { return !f.route.(*relayQueue).m.owned.OwnsTask(f.key.Task) }

// FunctionHost returns the connection of a function flow to its task.
func (f *activeJob) FunctionHost() carriers.FunctionHost {
	job := f.Job()
	return f.route.(*relayQueue).m.carryPart().functionHost(&f.jobCtx, f, &job)
}

// Over reports whether the job was withdrawn, or the member stops.
func (f *activeJob) Over() bool { return f.jobCtx.Err() != nil }

// Begin starts a job with a relay. It returns false if the job is not ready. A start that must be
// stored, a lease that is not held, and references in values are handled first; then the job is
// sent again.
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

// Part removes a job without a report, because its worker takes it to another member. While this
// member stops, it ignores further dispatches of the job.
func (f *activeJob) Part() {
	f.route.(*relayQueue).m.peers.migrated.addJob(f.key, f.delivery)
	f.jobCtx.endJob()
	f.Land(flow.Report{Lost: true})
}

// Land puts the report of a job into the inbox of its actor. The sessions actor removes a lost job
// before the report arrives, so that a new dispatch is not mistaken for this one. Other jobs are
// removed after their reports have arrived.
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
			return // the job was withdrawn
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

// sharingRelay returns the relay if it shares jobs with relays of other members, else nil.
func (m jobCarrying) sharingRelay() Sharing {
	r, _ := m.cfg.Relay.(Sharing)
	if m.cfg.Others == nil {
		return nil
	}
	return r
}
