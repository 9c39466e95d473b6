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
	// errand dispatches and withdraws jobs of a task; they land in an inbox.
	errand struct {
		task    string
		effects []flow.Effect // others than those about jobs mean nothing here
		inbox   *inbox
	}
	// only says what a task is owed, or a step and what is below it, if anything: the actor has started anew or is no
	// more, and what was to be withdrawn before may have been lost.
	only struct {
		task  string
		under flow.Address // of the step; zero = the whole task
		owed  []flow.Effect
	}
	// drain is done when nothing is carried out on this member any more; nothing new begins.
	drain   struct{ done func() }
	dropAll struct{ done func() }
	// settle is done when this member itself carries nothing out at some moment; more may begin. What an attached worker is at it takes
	// along to another member.
	settle struct{ done func() }
	// sendRelayed has the jobs sent that the relay has not got yet, as any message but an errand has.
	sendRelayed struct{}
	// carryOn has jobs of other members' tasks carried out, or let go of, unless whoever brought them has given up by then.
	carryOn struct {
		errands engine.Errands
		turn    *atomic.Bool // who sets it first: the actor that takes them, or whoever gives up
		heard   func()
	}
)

// jobKey names an attempt without building its id.
type jobKey struct {
	task string
	at   flow.Address
}

// sessions is where ready jobs meet those who can carry them out. Jobs of this member's carriers wait
// in line for a place; queue jobs wait for pollers.
type sessions struct {
	m            *Member
	pools        map[flow.ExecType]*pool
	relayQueue   *relayQueue // nil = there is no relay
	sendsRelayed bool        // a message to itself says so
	flights      map[jobKey]*flight
	tasks        map[string]*flight // the newest flight of each; the others follow it
	queue        *queue
	foreign      *inbox // where jobs of other members' tasks land
	draining     func()
	settling     func()
	stopped      bool
}

const defaultConcurrency = 256

func newSessions(m *Member) *sessions {
	s := &sessions{m: m, pools: map[flow.ExecType]*pool{}, flights: map[jobKey]*flight{}, tasks: map[string]*flight{}, foreign: &inbox{m: m, owner: &owner{}}}
	for t, carrier := range m.cfg.Carriers {
		limit := m.cfg.Concurrency[t]
		if limit <= 0 {
			limit = defaultConcurrency
		}
		p := &pool{m: m, carrier: carrier, limit: limit}
		p.tell = func() { m.tell(m.sessions, carried{p}) }
		s.pools[t] = p
	}
	if m.cfg.Relay != nil {
		w := &relayQueue{m: m, relay: m.cfg.Relay}
		w.tell = func() { m.tell(m.sessions, carried{w}) }
		s.relayQueue = w
		if r, ok := m.cfg.Relay.(Roaming); ok {
			r.Roam(m.bring)
		}
		if r := m.sharing(); r != nil {
			r.Meet(m.incarnation, m.alive, m.cfg.Others.Credits)
		}
	}
	s.queue = newQueue(m)
	m.queue.Store(s.queue)
	return s
}

func (s *sessions) Receive(c actor.Context) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if m, ok := c.Message().(errand); ok {
		s.run(c, m)
		s.sendRelayedLater(c)
	} else {
		s.sendRelayed()
		s.handle(c)
		s.sendRelayed()
	}
	s.queue.tellOthers()
}

func (s *sessions) handle(c actor.Context) {
	switch m := c.Message().(type) {
	case only:
		s.only(m)
	case carried:
		s.carried(m.way)
	case *poller:
		s.queue.poll(c, m)
	case stopPoll:
		s.queue.stop(m.poller)
	case enough:
		s.queue.enough(m.poller)
	case leavePoll:
		s.queue.leave(c, m.poller)
	case claimAnswered:
		s.queue.answered(c, m)
		s.drained()
	case servicesRead:
		s.queue.servicesRead(c, m)
	case offerAgain:
		s.queue.again(c, m.ref)
	case refilled:
		s.queue.refilled(c, m)
	case carryOn:
		s.carryOn(m)
	case offered:
		s.queue.offered(m)
	case succeeded:
		s.queue.succeeded()
	case lookAgain:
		s.queue.lookAgain(m)
	case drain:
		s.drain(c, m.done)
	case settle:
		s.settling = m.done
		s.settled()
	case dropAll:
		s.dropAll()
		m.done()
	case inquire:
		s.inquire()
	case unwanted:
		s.unwanted(m)
	case *actor.Started:
		s.inquireLater()
	case *actor.Stopped:
		s.m.carried.Store(&s.flights)
	}
}

// sendRelayedLater has jobs sent to the relay behind the errands that wait already. Those of one commit's tasks come together, so their jobs go
// in one piece: that is one message for a worker instead of many.
func (s *sessions) sendRelayedLater(c actor.Context) {
	if s.relayQueue != nil && len(s.relayQueue.unsent) > 0 && !s.sendsRelayed {
		s.sendsRelayed = true
		s.m.tell(c.Self(), sendRelayed{})
	}
}

func (s *sessions) sendRelayed() {
	s.sendsRelayed = false
	if s.relayQueue != nil {
		s.relayQueue.send()
	}
}

// run does an errand. Of a step that is over meanwhile nothing is dispatched any more.
func (s *sessions) run(c actor.Context, m errand) {
	void := m.inbox.void()
	var flights []*flight
	for _, effect := range m.effects {
		switch e := effect.(type) {
		case flow.Dispatch:
			switch {
			case void:
			case s.elsewhere(e.Job.Carrier):
				s.m.jobForwarder.send(e.Job.Carrier, engine.ErrandOf(&e.Job), m.inbox)
			default:
				if f := s.dispatch(c, effect, m.inbox); f != nil {
					flights = append(flights, f)
				}
			}
		case flow.Reclaim:
			s.lineUp(flights, m.inbox)
			flights = nil
			switch {
			case void || e.Job.Exec.Type == flow.ExecQueue:
			case s.elsewhere(e.Job.Carrier):
				s.m.jobForwarder.send(e.Job.Carrier, engine.Errand{Job: engine.Job{Task: m.task, Address: e.Job.Address}, Given: e.Job.Given, Withdrawn: true, Unbegun: true}, m.inbox)
			default:
				s.reclaim(effect, m.inbox)
			}
		case flow.Over:
			if e.Queue {
				s.queue.withdraw(jobKey{m.task, e.Address})
			}
		case flow.Withdraw:
			s.lineUp(flights, m.inbox) // it may be one of them
			flights = nil
			if s.elsewhere(e.Carrier) {
				s.m.jobForwarder.send(e.Carrier, engine.Errand{Job: engine.Job{Task: m.task, Address: e.Address}, Given: e.Given, Withdrawn: true}, m.inbox)
				continue
			}
			s.withdraw(jobKey{m.task, e.Address}, e.Given)
		}
	}
	s.lineUp(flights, m.inbox)
}

// elsewhere says whether it is another member that carries a job.
func (s *sessions) elsewhere(carrier string) bool {
	return carrier != "" && carrier != s.m.incarnation && s.m.cfg.Others != nil
}

// carryOn takes jobs of other members' tasks. One that is known goes on as it is, and so does the report of one that is over. What
// is to be carried out of a task that has moved here its actor asks for.
func (s *sessions) carryOn(m carryOn) {
	if !m.turn.CompareAndSwap(false, true) {
		return
	}
	var flights []*flight
	for i := range m.errands {
		e := &m.errands[i]
		key := jobKey{e.Job.Task, e.Job.Address}
		switch {
		case e.Withdrawn && e.Unbegun:
			s.lineUp(flights, s.foreign)
			flights = nil
			s.reclaimForeign(key, e.Given)
		case e.Withdrawn:
			s.lineUp(flights, s.foreign)
			flights = nil
			s.withdraw(key, e.Given)
		case s.known(key, e.Given) != nil || s.m.orderForwarder.has(key, e.Given) || s.m.parted.has(key, e.Given) || s.m.owned.owns(key.task):
		case !e.Type.Attachable():
			s.m.tell(s.m.tasks, unheard{key, e.Given})
		case s.relayQueue == nil || s.stopped || s.draining != nil:
			s.m.orderForwarder.send(key.task, giveBack(key.at, e.Given))
		default:
			f := s.flight(key, flow.Dispatch{Job: e.ForRelay()}, s.relayQueue, s.foreign)
			s.know(f)
			flights = append(flights, f)
		}
	}
	s.lineUp(flights, s.foreign)
	m.heard()
}

// giveBack says of a job that this member does not carry it out.
func giveBack(at flow.Address, given int) flow.Report {
	return flow.Report{Address: at, Lost: true, Unbegun: true, Given: given}
}

// dispatch takes a job, and returns it if a carrier of this member is to be found for it. One that is known already goes
// on as it is: a task that has reloaded asks again for what it is owed, perhaps as another actor. One that has reported
// while its task was another member's is over here.
func (s *sessions) dispatch(c actor.Context, effect flow.Effect, in *inbox) *flight {
	e := effect.(flow.Dispatch)
	key := jobKey{e.Job.Task, e.Job.Address}
	if e.Job.Exec.Type == flow.ExecQueue {
		s.queue.offer(c, refOf(&e.Job))
		return nil
	}
	if known := s.known(key, e.Job.Given); known != nil {
		known.landIn(in)
		return nil
	}
	if s.stopped || s.m.orderForwarder.has(key, e.Job.Given) || s.m.parted.has(key, e.Job.Given) {
		return nil
	}
	f := s.flight(key, effect, s.wayFor(e.Job.Exec), in)
	if f.way == nil {
		f.report = reported(key.at, flow.Report{Fatal: true, Error: fmt.Sprintf("this member does not carry out %s jobs", e.Job.Exec.Type)})
		in.expect(1)
		in.land(f)
		return nil
	}
	s.know(f)
	return f
}

// landIn has a job that is known already land in an inbox, instead of the one before.
func (f *flight) landIn(in *inbox) {
	in.expect(1)
	if was := f.inbox.Swap(in); was != nil {
		was.miss(1)
	}
}

// reclaim gives back a job that its carrier here has not begun, or that is not known here. One that is under way goes on, and its
// report lands in the inbox.
func (s *sessions) reclaim(effect flow.Effect, in *inbox) {
	job := effect.(flow.Reclaim).Job
	key := jobKey{job.Task, job.Address}
	f := s.known(key, job.Given)
	switch {
	case f != nil:
		f.landIn(in)
		s.takeUnbegun(f)
	case s.m.orderForwarder.has(key, job.Given) || s.m.parted.has(key, job.Given):
	default:
		f = &flight{key: key, given: job.Given, report: giveBack(key.at, job.Given)}
		in.expect(1)
		in.land(f)
	}
}

// reclaimForeign is reclaim for a job of another member's task.
func (s *sessions) reclaimForeign(key jobKey, given int) {
	switch f := s.known(key, given); {
	case f != nil:
		s.takeUnbegun(f)
	case s.m.orderForwarder.has(key, given) || s.m.parted.has(key, given) || s.m.owned.owns(key.task):
	default:
		s.m.orderForwarder.send(key.task, giveBack(key.at, given))
	}
}

// takeUnbegun takes a job out of its line, unless it has begun, and lands it as given back.
func (s *sessions) takeUnbegun(f *flight) {
	if !f.stage.CompareAndSwap(inLine, dropped) {
		return
	}
	f.withdrawn.Store(true)
	f.off.now()
	f.way.withdrawn(f)
	f.report = giveBack(f.key.at, f.given)
	s.forget(f)
	f.inbox.Swap(nil).land(f)
}

// lineUp gives jobs to those who carry them out, in their order.
func (s *sessions) lineUp(flights []*flight, in *inbox) {
	in.expect(len(flights))
	for len(flights) > 0 {
		w, n := flights[0].way, 1
		for n < len(flights) && flights[n].way == w {
			n++
		}
		w.add(flights[:n])
		flights = flights[n:]
	}
}

// carried forgets jobs that were carried out. One's task may have got another actor as it landed, which relies on this
// flight: then it is told, too.
func (s *sessions) carried(w way) {
	for _, f := range w.takeDone() {
		if in := f.inbox.Load(); in != nil {
			in.land(f)
		}
		s.forget(f)
	}
	s.settled()
	s.drained()
}

// withdraw takes back a job, as it was given up to some time. What is late does not take it from who was given it since.
func (s *sessions) withdraw(key jobKey, given int) {
	f := s.flights[key]
	switch {
	case f == nil:
		s.queue.withdraw(key)
		return
	case f.given > given:
		return
	}
	f.withdrawn.Store(true)
	f.off.now() // under way it lands by itself
	if f.stage.CompareAndSwap(inLine, dropped) {
		f.inbox.Load().miss(1)
		s.forget(f)
	}
	f.way.withdrawn(f)
}

func (s *sessions) drain(c actor.Context, done func()) {
	s.draining = done
	for _, w := range s.ways() {
		w.close()
	}
	s.queue.close(c)
	s.drained()
}

// drained says so when nothing is under way, nor any claim: what is claimed for nobody is given back.
func (s *sessions) drained() {
	if s.draining == nil || len(s.queue.claims) > 0 {
		return
	}
	for _, w := range s.ways() {
		if !w.idle() {
			return
		}
	}
	s.draining()
	s.draining = func() {}
}

// settled says so when nothing is under way on this member itself.
func (s *sessions) settled() {
	if s.settling == nil {
		return
	}
	for _, p := range s.pools {
		if !p.idle() {
			return
		}
	}
	s.settling()
	s.settling = nil
}

// dropAll lets go of what did not finish in time: it is carried out again after the next start, or by the members that have
// its tasks. What an attached worker is at goes on there: it is left to it to come to another member with that.
func (s *sessions) dropAll() {
	s.stopped = true
	for _, w := range s.ways() {
		w.close()
	}
	for _, f := range s.inOrder(func(*flight) bool { return true }) {
		stays := s.staysOut(f)
		if stays {
			s.m.parted.add(f.key, f.given)
		}
		f.off.now()
		if !stays && !s.m.owned.owns(f.key.task) {
			s.m.orderForwarder.send(f.key.task, giveBack(f.key.at, f.given))
		}
	}
}

// staysOut says whether a worker that goes on with a job may come to another member with it.
func (s *sessions) staysOut(f *flight) bool {
	_, relayed := f.way.(*relayQueue)
	return relayed && f.stage.Load() == underWay && s.m.grace() > 0
}
