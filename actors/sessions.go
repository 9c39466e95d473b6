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
	// jobErrand dispatches and withdraws jobs of a task, and passes ends of waits to them. The
	// reports of the jobs go to inbox.
	jobErrand struct {
		task    string
		effects []flow.Effect // effects that are not about jobs are ignored
		inbox   *inbox
	}
	// outstandingJobs lists all jobs that a task or step still needs. It is sent when an actor has
	// restarted or ended, because earlier withdrawals may be lost.
	outstandingJobs struct {
		task  string
		under flow.Address // the step; zero for the whole task
		owed  []flow.Effect
	}
	// drainJobs stops new jobs from starting, and calls done when no job runs on this member.
	drainJobs struct{ done func() }
	dropAll   struct{ done func() }
	// awaitSettled calls done as soon as this process carries out no jobs. More jobs may start
	// later. Jobs of attached workers do not count, because workers take them to another member.
	awaitSettled struct{ done func() }
	// sendRelayed makes the sessions actor send the collected jobs to the relay. Any message except
	// jobErrand does the same.
	sendRelayed struct{}
	// carryForeign carries out or withdraws jobs of other members' tasks, unless the sender has
	// given up.
	carryForeign struct {
		errands engine.Errands
		// set by the side that decides first: the actor accepts the errands, or the sender gives up
		claimed *atomic.Bool
		done    func()
	}
)

// sessions matches ready jobs with carriers. Jobs for this member's carriers wait for a worker
// place; queue jobs wait for pollers.
type sessions struct {
	m             *Member
	pools         map[flow.ExecType]*carrierPool
	relayQueue    *relayQueue // nil if there is no relay
	sendScheduled bool        // a sendRelayed message is in the mailbox
	activeJobs    map[engine.JobKey]*activeJob
	newestByTask  map[string]*activeJob // newest job of each task; the others are linked to it
	queue         *queue
	foreign       *inbox // inbox for jobs of other members' tasks
	draining      func()
	settling      func()
	stopped       bool
}

const defaultConcurrency = 256

func newSessions(m *Member) *sessions {
	s := &sessions{m: m, pools: map[flow.ExecType]*carrierPool{},
		activeJobs: map[engine.JobKey]*activeJob{}, newestByTask: map[string]*activeJob{},
		foreign: &inbox{m: m, taskOwner: &taskOwner{}}}
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
			r.Roam(m.carryPart().sendJobOrders)
		}
		if r := m.carryPart().sharingRelay(); r != nil {
			r.Meet(m.incarnation, m.peers.aliveMembers, m.cfg.Others.Credits)
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

// sendRelayedLater sends jobs to the relay after the errands in the mailbox. The errands of one
// commit arrive together, so a worker gets their jobs in one message.
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

// runErrand performs an errand. It dispatches nothing if the step of the errand has ended
// meanwhile.
func (s *sessions) runErrand(c actor.Context, m jobErrand) {
	void := m.inbox.IsAbandoned()
	var flights []*activeJob
	for _, effect := range m.effects {
		switch e := effect.(type) {
		case flow.Dispatch:
			switch {
			case void:
			case s.isForeignCarrier(e.Job.Carrier):
				s.m.jobForwarder.Enqueue(e.Job.Carrier, engine.ErrandOf(&e.Job), m.inbox)
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
				s.m.jobForwarder.Enqueue(e.Job.Carrier,
					engine.Errand{Job: engine.Job{Task: m.task, Address: e.Job.Address},
						Type: e.Job.Exec.Type, Given: e.Job.Given, Withdrawn: true, Unbegun: true}, m.inbox)
			default:
				s.reclaimJob(effect, m.inbox)
			}
		case flow.Over:
			if e.Queue {
				s.queue.withdrawJob(engine.JobKey{Task: m.task, At: e.Address})
			}
		case flow.Withdraw:
			s.enqueueJobs(flights, m.inbox) // the job may be one of the collected ones
			flights = nil
			if s.isForeignCarrier(e.Carrier) {
				s.m.jobForwarder.Enqueue(e.Carrier,
					engine.Errand{Job: engine.Job{Task: m.task, Address: e.Address}, Given: e.Given,
						Withdrawn: true}, m.inbox)
				continue
			}
			s.withdrawJob(engine.JobKey{Task: m.task, At: e.Address}, e.Given)
		case flow.WaitEnded:
			s.sendWaitEnd(m, &e)
		}
	}
	s.enqueueJobs(flights, m.inbox)
}

// isForeignCarrier reports whether another member carries out a job.
func (s *sessions) isForeignCarrier(carrier string) bool {
	return carrier != "" && carrier != s.m.incarnation && s.m.cfg.Others != nil
}

// carryForeign handles jobs of other members' tasks. It ignores finished jobs, and known jobs
// continue. If the task has moved to this member, its own actor requests the jobs.
func (s *sessions) carryForeign(m carryForeign) {
	if !m.claimed.CompareAndSwap(false, true) {
		return
	}
	var flights []*activeJob
	for i := range m.errands {
		e := &m.errands[i]
		key := engine.JobKey{Task: e.Job.Task, At: e.Job.Address}
		switch {
		case e.Withdrawn && e.Unbegun:
			s.enqueueJobs(flights, s.foreign)
			flights = nil
			s.reclaimForeign(key, e.Given, e.Type == flow.ExecCode)
		case e.Withdrawn:
			s.enqueueJobs(flights, s.foreign)
			flights = nil
			s.withdrawJob(key, e.Given)
		case e.OnlyEnds():
			s.endWaits(key, e.Given, e.Ended)
		case s.endWaits(key, e.Given, e.WaitEnds()) || s.m.orderForwarder.HasReported(key, e.Given, e.Type == flow.ExecCode) ||
			s.m.peers.migrated.hasJob(key, e.Given) || s.m.owned.OwnsTask(key.Task):
		case !e.Type.Attachable() && e.Function == nil:
			s.m.sendMessage(s.m.tasks, unknownJob{key, e.Given, e.Type == flow.ExecCode})
		case s.relayQueue == nil || s.stopped || s.draining != nil:
			s.m.orderForwarder.SendCommand(key.Task, giveBack(key.At, e.Given))
		default:
			f := s.newJob(key, flow.Dispatch{Job: e.ForRelay()}, s.foreignRoute(e), s.foreign)
			s.addJob(f)
			flights = append(flights, f)
		}
	}
	s.enqueueJobs(flights, s.foreign)
	m.done()
}

// foreignRoute returns the route for a job of another member's task. A function flow that this
// member has needs no worker.
func (s *sessions) foreignRoute(e *engine.Errand) jobRoute {
	if job := e.ForRelay(); e.Function != nil {
		return s.routeFor(job.Exec)
	}
	return s.relayQueue
}

// giveBack returns the report that this member does not carry out a job.
func giveBack(at flow.Address, given int) flow.Report {
	return flow.Report{Address: at, Lost: true, Unbegun: true, Given: given}
}

// dispatchJob takes a dispatch and returns the job if a carrier of this member has to start it. A
// known job continues, but reports to the given inbox, which may belong to a reloaded task. A job
// that already reported to another owner of the task is not started.
func (s *sessions) dispatchJob(c actor.Context, effect flow.Effect, in *inbox) *activeJob {
	e := effect.(flow.Dispatch)
	key := engine.JobKey{Task: e.Job.Task, At: e.Job.Address}
	if e.Job.Exec.Type == flow.ExecQueue {
		s.queue.offerJob(c, queuedJobOf(&e.Job))
		return nil
	}
	if known := s.findJob(key, e.Job.Given); known != nil {
		known.redirectTo(in)
		known.waitEnds.addSteps(e.Job.Function.WaitEnds()) // some ends may be new
		return nil
	}
	function := e.Job.Exec.Type == flow.ExecCode
	if s.stopped || s.m.orderForwarder.HasReported(key, e.Job.Given, function) || s.m.peers.migrated.hasJob(key, e.Job.Given) {
		return nil
	}
	f := s.newJob(key, effect, s.routeFor(e.Job.Exec), in)
	if f.route == nil {
		f.report = normalizeReport(key.At, flow.Report{Fatal: true,
			Error: fmt.Sprintf("this member does not carry out %s jobs", e.Job.Exec.Type)})
		in.expectJobs(1)
		in.addReport(f)
		return nil
	}
	s.addJob(f)
	return f
}

// redirectTo makes a known job report to another inbox.
func (f *activeJob) redirectTo(in *inbox) {
	in.expectJobs(1)
	if was := f.inbox.Swap(in); was != nil {
		was.expectFewer(1)
	}
}

// reclaimJob gives back a job that has not started here or is unknown here. A running job continues
// and reports to the inbox.
func (s *sessions) reclaimJob(effect flow.Effect, in *inbox) {
	job := effect.(flow.Reclaim).Job
	key := engine.JobKey{Task: job.Task, At: job.Address}
	f := s.findJob(key, job.Given)
	switch {
	case f != nil:
		f.redirectTo(in)
		s.dropQueued(f)
	case s.m.orderForwarder.HasReported(key, job.Given, job.Exec.Type == flow.ExecCode) || s.m.peers.migrated.hasJob(key, job.Given):
	default:
		f = &activeJob{key: key, delivery: job.Given, report: giveBack(key.At, job.Given)}
		in.expectJobs(1)
		in.addReport(f)
	}
}

// reclaimForeign gives back a job of another member's task that has not started here or is unknown
// here.
func (s *sessions) reclaimForeign(key engine.JobKey, given int, function bool) {
	switch f := s.findJob(key, given); {
	case f != nil:
		s.dropQueued(f)
	case s.m.orderForwarder.HasReported(key, given, function) || s.m.peers.migrated.hasJob(key, given) || s.m.owned.OwnsTask(key.Task):
	default:
		s.m.orderForwarder.SendCommand(key.Task, giveBack(key.At, given))
	}
}

// dropQueued removes a job from its queue and gives it back, unless it has started.
func (s *sessions) dropQueued(f *activeJob) {
	if !f.stage.CompareAndSwap(stageQueued, stageDropped) {
		return
	}
	f.withdrawn.Store(true)
	f.jobCtx.endJob()
	f.route.noteWithdrawn(f)
	f.report = giveBack(f.key.At, f.delivery)
	s.removeJob(f)
	f.inbox.Swap(nil).addReport(f)
}

// enqueueJobs passes jobs to their routes, in order.
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

// forgetCarried removes finished jobs. If another inbox took over a job after its report, that
// inbox is notified that the job has ended.
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

// withdrawJob withdraws a job up to the given delivery. A late withdrawal does not cancel a newer
// delivery.
func (s *sessions) withdrawJob(key engine.JobKey, given int) {
	f := s.activeJobs[key]
	switch {
	case f == nil:
		s.queue.withdrawJob(key)
		return
	case f.delivery > given:
		return
	}
	f.withdrawn.Store(true)
	f.jobCtx.endJob() // the running job then reports by itself
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

// checkDrained calls the drain function when no jobs run and no claims are pending.
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

// checkSettled calls the settle function when this member itself runs no jobs.
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

// dropAll abandons unfinished jobs. They are repeated after the next start, or by the new owners of
// their tasks. Jobs of attached workers continue, and the workers may take them to another member.
func (s *sessions) dropAll() {
	s.stopped = true
	for _, w := range s.jobRoutes() {
		w.close()
	}
	for _, f := range s.jobsInOrder(func(*activeJob) bool { return true }) {
		stays := s.canMigrate(f)
		if stays {
			s.m.peers.migrated.addJob(f.key, f.delivery)
		}
		f.jobCtx.endJob()
		if !stays && !s.m.owned.OwnsTask(f.key.Task) {
			s.m.orderForwarder.SendCommand(f.key.Task, giveBack(f.key.At, f.delivery))
		}
	}
}

// canMigrate reports whether a worker may take a job to another member. Function flows do not move,
// because they are called again and continue after their recorded steps.
func (s *sessions) canMigrate(f *activeJob) bool {
	_, relayed := f.route.(*relayQueue)
	return relayed && f.waitEnds == nil && f.stage.Load() == stageRunning && s.m.peers.returnGrace() > 0
}
