package actors

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// Messages to the sessions actor.
type (
	withdraw struct{ key jobKey }
	landed   struct{ flight *flight }
	// only says what a task is owed: its actor has started anew, and what was to be withdrawn before
	// may have been lost.
	only struct {
		task string
		owed []flow.Effect
	}
	// drain is done when nothing is carried out on this member any more; nothing new begins.
	drain   struct{ done func() }
	dropAll struct{}
)

// jobKey names an attempt without building its id.
type jobKey struct {
	task string
	at   flow.Address
}

// sessions is where ready jobs meet those who can carry them out. Jobs of this member's carriers wait
// in line for a place; queue jobs wait for pollers.
type sessions struct {
	m        *Member
	pools    map[flow.ExecType]*pool
	flights  map[jobKey]*flight
	tasks    map[string]int // flights of each
	queue    *queue
	draining func()
	stopped  bool
}

// pool is a carrier and its places.
type pool struct {
	carrier Carrier
	limit   int
	running int
	ready   []*flight // in line, first one first
}

// flight is a job on its way: in line, or being carried out. It is also the message that asks for it.
type flight struct {
	job   flow.Job
	owner *actor.PID // the task's actor
	pool  *pool
	off   *callOff    // nil while in line
	dead  bool        // withdrawn while in line
	over  atomic.Bool // carried out

	told   *actor.PID // whom the report went to: the owner when the job was begun
	report *command   // nil = there is none
}

func (f *flight) key() jobKey { return jobKey{f.job.Task, f.job.Address} }

const defaultConcurrency = 256

func newSessions(m *Member) *sessions {
	s := &sessions{m: m, pools: map[flow.ExecType]*pool{}, flights: map[jobKey]*flight{}, tasks: map[string]int{}}
	for t, carrier := range m.cfg.Carriers {
		limit := m.cfg.Concurrency[t]
		if limit <= 0 {
			limit = defaultConcurrency
		}
		s.pools[t] = &pool{carrier: carrier, limit: limit}
	}
	s.queue = newQueue(m)
	return s
}

func (s *sessions) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *flight:
		s.dispatch(c, m)
	case withdraw:
		s.withdraw(m.key)
	case only:
		s.only(m)
	case landed:
		s.landed(m.flight)
	case *poller:
		s.queue.poll(c, m)
	case stopPoll:
		s.queue.stop(m.poller)
	case leavePoll:
		s.queue.leave(c, m.poller)
	case claimAnswered:
		s.queue.answered(c, m)
	case stocked:
		s.queue.stocked(c, m)
	case offerAgain:
		s.queue.again(c, m.ref)
	case refilled:
		s.queue.refilled(c, m)
	case drain:
		s.drain(c, m.done)
	case dropAll:
		s.dropAll()
	case *actor.Stopped:
		s.m.carried.Store(&s.flights)
	}
}

// dispatch takes a job. One that is known already goes on as it is: a task that has reloaded asks again
// for what it is owed, perhaps as another actor.
func (s *sessions) dispatch(c actor.Context, f *flight) {
	key := f.key()
	if f.job.Exec.Type == flow.ExecQueue {
		j := &f.job
		s.queue.offer(c, &ref{key: key, service: j.Exec.Service, flow: j.Plan.FlowID, labels: j.Exec.Labels, at: j.EnqueuedAt, turn: j.Turn, size: j.Size()})
		return
	}
	if known := s.flights[key]; known != nil {
		known.owner = f.owner
		return
	}
	if s.stopped {
		return
	}
	if f.pool = s.pools[f.job.Exec.Type]; f.pool == nil {
		c.Send(f.owner, f.reported(flow.Report{Fatal: true, Error: fmt.Sprintf("this member does not carry out %s jobs", f.job.Exec.Type)}))
		return
	}
	s.flights[key] = f
	s.tasks[key.task]++
	s.m.ready.Add(1)
	f.pool.ready = append(f.pool.ready, f)
	s.fill(f.pool)
}

// fill gives free places to those in line.
func (s *sessions) fill(p *pool) {
	for p.running < p.limit && len(p.ready) > 0 && s.draining == nil && !s.stopped {
		f := p.ready[0]
		p.ready[0] = nil
		p.ready = p.ready[1:]
		s.m.ready.Add(-1)
		if !f.dead {
			s.launch(f)
		}
	}
}

func (s *sessions) launch(f *flight) {
	f.pool.running++
	f.told = f.owner
	f.off = &callOff{member: s.m.ctx}
	s.m.metrics.dispatched(s.m.now() - f.job.EnqueuedAt)
	s.m.background(func() {
		defer f.off.now()
		defer f.over.Store(true)
		s.m.carry(f.off, f)
		s.m.tell(s.m.sessions, landed{f})
	})
}

// carry has a job carried out and tells its task at once.
func (m *Member) carry(ctx context.Context, f *flight) {
	if f.job.Again && !m.begin(ctx, &f.job) {
		return
	}
	report := carryOut(ctx, f)
	// A job that was called off may have failed only because of that: its attempt is over, or it is
	// carried out again after the next start.
	if ctx.Err() == nil || report.Error == "" && m.ctx.Err() == nil {
		f.report = f.reported(report)
		m.tell(f.told, f.report)
	}
}

// begin has it stored that a job which was returned before begins now: so one that ends its member each
// time is not carried out for ever. It is false when nobody waits for the job any longer.
func (m *Member) begin(ctx context.Context, job *flow.Job) bool {
	for try := 1; ; try++ {
		begin := flow.Begin{Address: job.Address}
		a, err := m.call(ctx, begin, func(reply func(answer)) {
			m.tell(m.tasks, &command{task: job.Task, cmd: begin, reply: reply})
		})
		if err != nil {
			return false
		}
		switch flow.ErrorKindOf(a.err) {
		case flow.Busy: // the task's actor crashed
			if !m.pause(storePause(try)) {
				return false
			}
		case flow.Conflict, flow.NotFound:
			return false
		default:
			return true
		}
	}
}

// carryOut has the carrier do the job; its panic is the attempt's error.
func carryOut(ctx context.Context, f *flight) (r flow.Report) {
	defer func() {
		if reason := recover(); reason != nil {
			r = flow.Report{Error: fmt.Sprintf("panic: %v\n%s", reason, firstLines(debug.Stack(), 12))}
		}
	}()
	return f.pool.carrier.Carry(ctx, f.job)
}

func firstLines(b []byte, n int) []byte {
	for i := range b {
		if b[i] == '\n' {
			if n--; n == 0 {
				return b[:i]
			}
		}
	}
	return b
}

// reported is a report as a command to the task.
func (f *flight) reported(r flow.Report) *command {
	r.Address = f.job.Address
	if err := checkJSON(r.Output); err != nil {
		r.Output, r.Error = nil, orElse(r.Error, err.Error())
	}
	return &command{task: f.job.Task, cmd: r}
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// landed gives a job's place to the next. Its task may have got another actor meanwhile, which relies on
// this flight: then that one is told, too.
func (s *sessions) landed(f *flight) {
	if f.report != nil && f.owner != f.told {
		again := *f.report
		s.m.tell(f.owner, &again)
	}
	s.forget(f.key())
	f.pool.running--
	s.fill(f.pool)
	s.drained()
}

func (s *sessions) withdraw(key jobKey) {
	if f := s.flights[key]; f != nil {
		if f.off != nil {
			f.off.now() // it lands by itself
			return
		}
		f.dead = true
		s.forget(key)
		return
	}
	s.queue.withdraw(key)
}

func (s *sessions) forget(key jobKey) {
	delete(s.flights, key)
	if s.tasks[key.task]--; s.tasks[key.task] == 0 {
		delete(s.tasks, key.task)
	}
}

// only withdraws what a task is no longer owed.
func (s *sessions) only(m only) {
	if s.tasks[m.task] == 0 {
		return
	}
	owed := map[flow.Address]bool{}
	for _, e := range m.owed {
		if d, ok := e.(flow.Dispatch); ok {
			owed[d.Job.Address] = true
		}
	}
	for key := range s.flights {
		if key.task == m.task && !owed[key.at] {
			s.withdraw(key)
		}
	}
}

func (s *sessions) drain(c actor.Context, done func()) {
	s.draining = done
	s.queue.close(c)
	s.drained()
}

func (s *sessions) drained() {
	if s.draining == nil {
		return
	}
	for _, p := range s.pools {
		if p.running > 0 {
			return
		}
	}
	s.draining()
	s.draining = func() {}
}

// dropAll lets go of what did not finish in time: it is carried out again after the next start.
func (s *sessions) dropAll() {
	s.stopped = true
	for _, f := range s.flights {
		if f.off != nil {
			f.off.now()
		}
	}
}
