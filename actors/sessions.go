package actors

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Messages to the sessions actor.
type (
	// jobErrand dispatches and withdraws jobs of a task; they land in an inbox.
	jobErrand struct {
		task    string
		effects []flow.Effect // others than those about jobs mean nothing here
		inbox   *inbox
	}
	// outstandingJobs says what a task is owed, or a step and what is below it, if anything: the
	// actor has started anew or is no more, and what was to be withdrawn before may have been lost.
	outstandingJobs struct {
		task  string
		under flow.Address // of the step; zero = the whole task
		owed  []flow.Effect
	}
	// drainJobs is done when nothing is carried out on this member any more; nothing new begins.
	drainJobs struct{ done func() }
	dropAll   struct{ done func() }
	// awaitSettled is done when this member itself carries nothing out at some moment; more may
	// begin. What an attached worker is at it takes along to another member.
	awaitSettled struct{ done func() }
	// sendRelayed has the jobs sent that the relay has not got yet, as any message but an errand
	// has.
	sendRelayed struct{}
	// carryForeign has jobs of other members' tasks carried out, or let go of, unless whoever
	// brought them has given up by then.
	carryForeign struct {
		errands engine.Errands
		claimed *atomic.Bool // who sets it first: the actor that takes them, or whoever gives up
		done    func()
	}
)

// jobKey names an attempt without building its id.
type jobKey struct {
	task string
	at   flow.Address
}

// sessions is where ready jobs meet those who can carry them out. Jobs of this member's carriers
// wait in line for a place; queue jobs wait for pollers.
type sessions struct {
	m             *Member
	pools         map[flow.ExecType]*carrierPool
	relayQueue    *relayQueue // nil = there is no relay
	sendScheduled bool        // a message to itself says so
	activeJobs    map[jobKey]*activeJob
	newestByTask  map[string]*activeJob // the newest flight of each; the others follow it
	queue         *queue
	foreign       *inbox // where jobs of other members' tasks land
	draining      func()
	settling      func()
	stopped       bool
}

const defaultConcurrency = 256

func newSessions(m *Member) *sessions {
	s := &sessions{m: m, pools: map[flow.ExecType]*carrierPool{}, activeJobs: map[jobKey]*activeJob{}, newestByTask: map[string]*activeJob{}, foreign: &inbox{m: m, taskOwner: &taskOwner{}}}
	for t, carrier := range m.cfg.Carriers {
		limit := m.cfg.Concurrency[t]
		if limit <= 0 {
			limit = defaultConcurrency
		}
		p := &carrierPool{m: m, carrier: carrier, limit: limit}
		p.notifySessions = func() { m.sendMessage(m.sessions, jobsCarried{p}) }
		s.pools[t] = p
	}
	if m.cfg.Relay != nil {
		w := &relayQueue{m: m, relay: m.cfg.Relay}
		w.notifySessions = func() { m.sendMessage(m.sessions, jobsCarried{w}) }
		s.relayQueue = w
		if r, ok := m.cfg.Relay.(Roaming); ok {
			r.Roam(m.bringJobs)
		}
		if r := m.sharingRelay(); r != nil {
			r.Meet(m.incarnation, m.aliveMembers, m.cfg.Others.Credits)
		}
	}
	s.queue = newQueue(m)
	m.queue.Store(s.queue)
	return s
}

func (s *sessions) Receive(c actor.Context) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if m, ok := c.Message().(jobErrand); ok {
		s.runErrand(c, m)
		s.sendRelayedLater(c)
	} else {
		s.sendRelayed()
		s.handleMessage(c)
		s.sendRelayed()
	}
	s.queue.announceWanted()
}

func (s *sessions) handleMessage(c actor.Context) {
	switch m := c.Message().(type) {
	case outstandingJobs:
		s.withdrawUnowed(m)
	case jobsCarried:
		s.forgetCarried(m.way)
	case *poller:
		s.queue.startPoll(c, m)
	case stopPoll:
		s.queue.expirePoll(m.poller)
	case answerEarly:
		s.queue.answerEarly(m.poller)
	case leavePoll:
		s.queue.abandonPoll(c, m.poller)
	case claimAnswered:
		s.queue.handleClaimAnswer(c, m)
		s.checkDrained()
	case servicesRead:
		s.queue.servicesRead(c, m)
	case offerAgain:
		s.queue.reofferJob(c, m.ref)
	case pageRead:
		s.queue.addPage(c, m)
	case carryForeign:
		s.carryForeign(m)
	case jobsOffered:
		s.queue.acceptOffers(m)
	case rescanJobs:
		s.queue.rescanNow()
	case rescanDue:
		s.queue.rescanIfDue(m)
	case drainJobs:
		s.startDrain(c, m.done)
	case awaitSettled:
		s.settling = m.done
		s.checkSettled()
	case dropAll:
		s.dropAll()
		m.done()
	case inquireForeign:
		s.inquireForeign()
	case jobsUnwanted:
		s.withdrawUnwanted(m)
	case *actor.Started:
		s.inquireLater()
	case *actor.Stopped:
		s.m.stoppedJobs.Store(&s.activeJobs)
	}
}

// sendRelayedLater has jobs sent to the relay behind the errands that wait already. Those of one
// commit's tasks come together, so their jobs go in one piece: that is one message for a worker
// instead of many.
func (s *sessions) sendRelayedLater(c actor.Context) {
	if s.relayQueue != nil && len(s.relayQueue.unsent) > 0 && !s.sendScheduled {
		s.sendScheduled = true
		s.m.sendMessage(c.Self(), sendRelayed{})
	}
}

func (s *sessions) sendRelayed() {
	s.sendScheduled = false
	if s.relayQueue != nil {
		s.relayQueue.sendUnsent()
	}
}

// runErrand does an errand. Of a step that is over meanwhile nothing is dispatched any more.
func (s *sessions) runErrand(c actor.Context, m jobErrand) {
	void := m.inbox.isAbandoned()
	var flights []*activeJob
	for _, effect := range m.effects {
		switch e := effect.(type) {
		case flow.Dispatch:
			switch {
			case void:
			case s.isForeignCarrier(e.Job.Carrier):
				s.m.jobForwarder.enqueueErrand(e.Job.Carrier, engine.ErrandOf(&e.Job), m.inbox)
			default:
				if f := s.dispatchJob(c, effect, m.inbox); f != nil {
					flights = append(flights, f)
				}
			}
		case flow.Reclaim:
			s.enqueueJobs(flights, m.inbox)
			flights = nil
			switch {
			case void || e.Job.Exec.Type == flow.ExecQueue:
			case s.isForeignCarrier(e.Job.Carrier):
				s.m.jobForwarder.enqueueErrand(e.Job.Carrier, engine.Errand{Job: engine.Job{Task: m.task, Address: e.Job.Address}, Given: e.Job.Given, Withdrawn: true, Unbegun: true}, m.inbox)
			default:
				s.reclaimJob(effect, m.inbox)
			}
		case flow.Over:
			if e.Queue {
				s.queue.withdrawJob(jobKey{m.task, e.Address})
			}
		case flow.Withdraw:
			s.enqueueJobs(flights, m.inbox) // it may be one of them
			flights = nil
			if s.isForeignCarrier(e.Carrier) {
				s.m.jobForwarder.enqueueErrand(e.Carrier, engine.Errand{Job: engine.Job{Task: m.task, Address: e.Address}, Given: e.Given, Withdrawn: true}, m.inbox)
				continue
			}
			s.withdrawJob(jobKey{m.task, e.Address}, e.Given)
		}
	}
	s.enqueueJobs(flights, m.inbox)
}

// isForeignCarrier reports whether it is another member that carries a job.
func (s *sessions) isForeignCarrier(carrier string) bool {
	return carrier != "" && carrier != s.m.incarnation && s.m.cfg.Others != nil
}

// carryForeign takes jobs of other members' tasks. One that is known goes on as it is, and so does
// the report of one that is over. What is to be carried out of a task that has moved here its actor
// asks for.
func (s *sessions) carryForeign(m carryForeign) {
	if !m.claimed.CompareAndSwap(false, true) {
		return
	}
	var flights []*activeJob
	for i := range m.errands {
		e := &m.errands[i]
		key := jobKey{e.Job.Task, e.Job.Address}
		switch {
		case e.Withdrawn && e.Unbegun:
			s.enqueueJobs(flights, s.foreign)
			flights = nil
			s.reclaimForeign(key, e.Given)
		case e.Withdrawn:
			s.enqueueJobs(flights, s.foreign)
			flights = nil
			s.withdrawJob(key, e.Given)
		case s.findJob(key, e.Given) != nil || s.m.orderForwarder.hasReported(key, e.Given) || s.m.migratedJobs.hasJob(key, e.Given) || s.m.owned.ownsTask(key.task):
		case !e.Type.Attachable():
			s.m.sendMessage(s.m.tasks, unknownJob{key, e.Given})
		case s.relayQueue == nil || s.stopped || s.draining != nil:
			s.m.orderForwarder.sendCommand(key.task, giveBack(key.at, e.Given))
		default:
			f := s.newJob(key, flow.Dispatch{Job: e.ForRelay()}, s.relayQueue, s.foreign)
			s.addJob(f)
			flights = append(flights, f)
		}
	}
	s.enqueueJobs(flights, s.foreign)
	m.done()
}

// giveBack says of a job that this member does not carry it out.
func giveBack(at flow.Address, given int) flow.Report {
	return flow.Report{Address: at, Lost: true, Unbegun: true, Given: given}
}

// dispatchJob takes a job, and returns it if a carrier of this member is to be found for it. One
// that is known already goes on as it is: a task that has reloaded asks again for what it is owed,
// perhaps as another actor. One that has reported while its task was another member's is over here.
func (s *sessions) dispatchJob(c actor.Context, effect flow.Effect, in *inbox) *activeJob {
	e := effect.(flow.Dispatch)
	key := jobKey{e.Job.Task, e.Job.Address}
	if e.Job.Exec.Type == flow.ExecQueue {
		s.queue.offerJob(c, queuedJobOf(&e.Job))
		return nil
	}
	if known := s.findJob(key, e.Job.Given); known != nil {
		known.redirectTo(in)
		return nil
	}
	if s.stopped || s.m.orderForwarder.hasReported(key, e.Job.Given) || s.m.migratedJobs.hasJob(key, e.Job.Given) {
		return nil
	}
	f := s.newJob(key, effect, s.routeFor(e.Job.Exec), in)
	if f.route == nil {
		f.report = normalizeReport(key.at, flow.Report{Fatal: true, Error: fmt.Sprintf("this member does not carry out %s jobs", e.Job.Exec.Type)})
		in.expectJobs(1)
		in.addReport(f)
		return nil
	}
	s.addJob(f)
	return f
}

// redirectTo has a job that is known already land in an inbox, instead of the one before.
func (f *activeJob) redirectTo(in *inbox) {
	in.expectJobs(1)
	if was := f.inbox.Swap(in); was != nil {
		was.expectFewer(1)
	}
}

// reclaimJob gives back a job that its carrier here has not begun, or that is not known here. One
// that is under way goes on, and its report lands in the inbox.
func (s *sessions) reclaimJob(effect flow.Effect, in *inbox) {
	job := effect.(flow.Reclaim).Job
	key := jobKey{job.Task, job.Address}
	f := s.findJob(key, job.Given)
	switch {
	case f != nil:
		f.redirectTo(in)
		s.dropQueued(f)
	case s.m.orderForwarder.hasReported(key, job.Given) || s.m.migratedJobs.hasJob(key, job.Given):
	default:
		f = &activeJob{key: key, delivery: job.Given, report: giveBack(key.at, job.Given)}
		in.expectJobs(1)
		in.addReport(f)
	}
}

// reclaimForeign is reclaim for a job of another member's task.
func (s *sessions) reclaimForeign(key jobKey, given int) {
	switch f := s.findJob(key, given); {
	case f != nil:
		s.dropQueued(f)
	case s.m.orderForwarder.hasReported(key, given) || s.m.migratedJobs.hasJob(key, given) || s.m.owned.ownsTask(key.task):
	default:
		s.m.orderForwarder.sendCommand(key.task, giveBack(key.at, given))
	}
}

// dropQueued takes a job out of its line, unless it has begun, and lands it as given back.
func (s *sessions) dropQueued(f *activeJob) {
	if !f.stage.CompareAndSwap(stageQueued, stageDropped) {
		return
	}
	f.withdrawn.Store(true)
	f.jobCtx.endJob()
	f.route.noteWithdrawn(f)
	f.report = giveBack(f.key.at, f.delivery)
	s.removeJob(f)
	f.inbox.Swap(nil).addReport(f)
}

// enqueueJobs gives jobs to those who carry them out, in their order.
func (s *sessions) enqueueJobs(flights []*activeJob, in *inbox) {
	in.expectJobs(len(flights))
	for len(flights) > 0 {
		w, n := flights[0].route, 1
		for n < len(flights) && flights[n].route == w {
			n++
		}
		w.enqueueJobs(flights[:n])
		flights = flights[n:]
	}
}

// forgetCarried forgets jobs that were carried out. One's task may have got another actor as it
// landed, which relies on this flight: then it is told, too.
func (s *sessions) forgetCarried(w jobRoute) {
	for _, f := range w.takeDone() {
		if in := f.inbox.Load(); in != nil {
			in.addReport(f)
		}
		s.removeJob(f)
	}
	s.checkSettled()
	s.checkDrained()
}

// withdrawJob takes back a job, as it was given up to some time. What is late does not take it from
// who was given it since.
func (s *sessions) withdrawJob(key jobKey, given int) {
	f := s.activeJobs[key]
	switch {
	case f == nil:
		s.queue.withdrawJob(key)
		return
	case f.delivery > given:
		return
	}
	f.withdrawn.Store(true)
	f.jobCtx.endJob() // under way it lands by itself
	if f.stage.CompareAndSwap(stageQueued, stageDropped) {
		f.inbox.Load().expectFewer(1)
		s.removeJob(f)
	}
	f.route.noteWithdrawn(f)
}

func (s *sessions) startDrain(c actor.Context, done func()) {
	s.draining = done
	for _, w := range s.jobRoutes() {
		w.close()
	}
	s.queue.close(c)
	s.checkDrained()
}

// checkDrained says so when nothing is under way, nor any claim: what is claimed for nobody is
// given back.
func (s *sessions) checkDrained() {
	if s.draining == nil || len(s.queue.openClaims) > 0 {
		return
	}
	for _, w := range s.jobRoutes() {
		if !w.isIdle() {
			return
		}
	}
	s.draining()
	s.draining = func() {}
}

// checkSettled says so when nothing is under way on this member itself.
func (s *sessions) checkSettled() {
	if s.settling == nil {
		return
	}
	for _, p := range s.pools {
		if !p.isIdle() {
			return
		}
	}
	s.settling()
	s.settling = nil
}

// dropAll lets go of what did not finish in time: it is carried out again after the next start, or
// by the members that have its tasks. What an attached worker is at goes on there: it is left to it
// to come to another member with that.
func (s *sessions) dropAll() {
	s.stopped = true
	for _, w := range s.jobRoutes() {
		w.close()
	}
	for _, f := range s.jobsInOrder(func(*activeJob) bool { return true }) {
		stays := s.canMigrate(f)
		if stays {
			s.m.migratedJobs.addJob(f.key, f.delivery)
		}
		f.jobCtx.endJob()
		if !stays && !s.m.owned.ownsTask(f.key.task) {
			s.m.orderForwarder.sendCommand(f.key.task, giveBack(f.key.at, f.delivery))
		}
	}
}

// canMigrate reports whether a worker that goes on with a job may come to another member with it.
func (s *sessions) canMigrate(f *activeJob) bool {
	_, relayed := f.route.(*relayQueue)
	return relayed && f.stage.Load() == stageRunning && s.m.returnGrace() > 0
}
