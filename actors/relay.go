package actors

import (
	"maps"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Relay hands jobs on to others, who carry them out elsewhere: a job takes no place on this member while it waits or is
// under way. Its methods do not block and may be called in any goroutine.
type Relay interface {
	// Offers says whether somebody is there for jobs like this one.
	Offers(exec *flow.Exec) bool
	// Send takes jobs, and lands each of them in the end.
	Send(jobs []Passage)
	// CallOff says that nobody waits for a job any longer. One that is under way lands at once.
	CallOff(job Passage)
	// Shut has nothing new begin.
	Shut()
}

// Sharing is a Relay that has jobs carried out at other members, too: where this one has no credit for a job and another one
// has, it lands the job as Lost, Unbegun and To that one, by its incarnation.
type Sharing interface {
	Relay
	// Meet has it tell the others, which are alive by their incarnations, of its credits from now on, in the name of self.
	Meet(self string, alive func() []string, tell func(*engine.Credits))
	// Credited says what another one has.
	Credited(c *engine.Credits)
	// Gone says that another member is no more.
	Gone(incarnation string)
}

// Passage is a job on its way through a Relay.
type Passage = carry.Passage

// way is how jobs reach those who carry them out.
type way interface {
	add(flights []*flight) // in their order
	withdrawn(f *flight)   // nobody waits for it any longer
	takeDone() []*flight   // that were carried out since the last time
	close()                // has nothing new begin
	idle() bool            // nothing is under way
}

// relayQueue is the relay of this member, what it is to get, and what is under way with it.
type relayQueue struct {
	m     *Member
	relay Relay
	tell  func() // the sessions, that jobs are done with

	unsent []Passage // the sessions' own

	mu      sync.Mutex
	running int
	shut    bool
	done    []*flight // that the sessions have not been told of …
	called  bool      // … but will be
}

// wayFor a job; nil = there is none. A job of type http goes to a push worker only when no attached one is there for it.
func (s *sessions) wayFor(x *flow.Exec) way {
	if s.relayQueue != nil && (x.Type == flow.ExecRemote || x.Type == flow.ExecHTTP && s.relayQueue.relay.Offers(x)) {
		return s.relayQueue
	}
	if p := s.pools[x.Type]; p != nil {
		return p
	}
	return nil
}

// ways are all there are.
func (s *sessions) ways() []way {
	var all []way
	if s.relayQueue != nil {
		all = append(all, s.relayQueue)
	}
	for _, by := range slices.Sorted(maps.Keys(s.pools)) {
		all = append(all, s.pools[by])
	}
	return all
}

func (w *relayQueue) add(flights []*flight) {
	w.m.ready.Add(int64(len(flights)))
	for _, f := range flights {
		w.unsent = append(w.unsent, f)
	}
}

// send sends what has gathered.
func (w *relayQueue) send() {
	if len(w.unsent) == 0 {
		return
	}
	w.relay.Send(w.unsent)
	clear(w.unsent)
	w.unsent = w.unsent[:0]
}

func (w *relayQueue) withdrawn(f *flight) {
	w.send()
	w.relay.CallOff(f)
}

func (w *relayQueue) takeDone() []*flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.done
	w.done, w.called = nil, false
	return all
}

func (w *relayQueue) close() {
	w.mu.Lock()
	w.shut = true
	w.mu.Unlock()
	w.relay.Shut()
}

func (w *relayQueue) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running == 0
}

// begin has a job be under way from now on, and counts it, unless nothing begins any more, or it was withdrawn.
func (w *relayQueue) begin(f *flight) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shut || !f.stage.CompareAndSwap(inLine, underWay) {
		return false
	}
	w.running++
	return true
}

// over has the sessions forget a job.
func (w *relayQueue) over(f *flight, begun bool) {
	w.mu.Lock()
	if begun {
		w.running--
	}
	w.done = append(w.done, f)
	tell := !w.called
	w.called = true
	w.mu.Unlock()
	if tell {
		w.tell()
	}
}

// Job is what a relay is to hand on.
func (f *flight) Job() flow.Job {
	if job := f.whole.Load(); job != nil {
		return *job
	}
	return f.job()
}

// Of names the job.
func (f *flight) Of() (task string, at flow.Address) { return f.key.task, f.key.at }

// Foreign says that another member has the job's task: it is the one to know whether nobody is there for it.
func (f *flight) Foreign() bool { return !f.way.(*relayQueue).m.owned.owns(f.key.task) }

// Over says that the job was withdrawn, or the member goes.
func (f *flight) Over() bool { return f.off.Err() != nil }

// Begin has a job begin with a relay. Of one that may be what its carriers die of, this is stored first, and the job sent anew; so is one
// that comes while somebody else may have the lease.
func (f *flight) Begin() bool {
	job, w := f.Job(), f.way.(*relayQueue)
	if job.Again && !f.noted || !w.m.lease.held() || w.m.refers(&job) {
		w.m.background(func() { w.note(f, job) })
		return false
	}
	w.m.ready.Add(-1)
	if !w.begin(f) {
		return false
	}
	w.m.metrics.dispatched(serviceOf(job.Exec), w.m.now()-job.EnqueuedAt)
	return true
}

// note waits until the lease is held, has it stored that a job begins, and gets the values that it refers to.
func (w *relayQueue) note(f *flight, job flow.Job) {
	if !w.m.mayBegin(&f.off) || job.Again && !f.noted && !w.m.begin(&f.off, &job) {
		f.off.now()
		f.Land(flow.Report{Lost: true})
		return
	}
	f.noted = job.Again
	if w.m.refers(&job) {
		whole, err := w.m.whole(&f.off, job)
		if err != nil {
			f.Land(notWhole(err))
			return
		}
		f.whole.Store(&whole)
	}
	w.relay.Send([]Passage{f})
}

// Part lands a job without a report. Whoever asks for it here, such as its task once more, is not heard: the member goes.
func (f *flight) Part() {
	f.way.(*relayQueue).m.parted.add(f.key, f.given)
	f.off.now()
	f.Land(flow.Report{Lost: true})
}

// Land puts the report on a job where its actor looks for it. Of one that was lost the sessions hear before: when the job
// is dispatched again they do not take it for this one. Any other is known to them until its report is there.
func (f *flight) Land(r flow.Report) {
	w := f.way.(*relayQueue)
	if p := w.m.cfg.Payloads; p != nil && p.Large(r.Output) {
		w.m.background(func() { f.land(w.m.kept(f.key.task, r)) })
		return
	}
	f.land(r)
}

func (f *flight) land(r flow.Report) {
	w := f.way.(*relayQueue)
	begun := f.stage.CompareAndSwap(underWay, done)
	if !begun {
		w.m.ready.Add(-1)
		if !f.stage.CompareAndSwap(inLine, done) {
			return // it was withdrawn
		}
	}
	if f.off.Err() == nil || r.Error == "" && !r.Lost && w.m.ctx.Err() == nil {
		r.Given = f.given
		f.report = reported(f.key.at, r)
	}
	f.off.now()
	f.dispatch = nil
	f.whole.Store(nil)
	in := f.inbox.Swap(nil)
	if r.Lost {
		w.over(f, begun)
		in.land(f)
		return
	}
	in.land(f)
	w.over(f, begun)
}
