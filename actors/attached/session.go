package attached

import (
	"slices"
	"sync/atomic"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// session is an attached worker, also for a while after its stream broke. Its fields belong to the lock of Sessions.
type session struct {
	all     *Sessions
	id      string
	worker  string
	group   *group // of those that offer the same and have the same labels
	place   int    // in it
	counted int    // free credits that count there
	credits int
	grants  map[uint64]*grant
	last    uint64 // number given
	out     outbox
	stream  *connection   // nil = it is broken
	asks    chan struct{} // holds a token when the tasks are to be asked for what was brought along
	asking  bool
	broken  *connection // that it waits for another one after; nil = it does not
	tended  atomic.Bool // its worker's sign of life is being passed on
	doubted bool        // some of its grants are
	leaving bool        // the worker gets nothing more, and its session ends with its stream
}

// grant is a job that takes one of a session's credits until the worker has answered for it.
type grant struct {
	of      *session
	number  uint64
	passage carry.Passage // nil = nobody waits for it any longer
	job     *attach.Job   // as the worker gets it
	sent    bool
	task    string
	at      flow.Address
	log     Log      // nil = the worker has said nothing
	came    *brought // as which it was brought along; nil = it was not
	doubted bool     // it was withdrawn and asked for again since the worker said something
	brought *brought // the worker has come with it, and it is not known yet what becomes of it; nil = it is
}

// outbox is what the worker is to be told next.
type outbox struct {
	jobs         []*grant
	acknowledged []uint64
	canceled     []uint64
	told         bool // that the member leaves
}

// free are the credits that are left. A session without a stream takes nothing new.
func (ses *session) free() int {
	if ses.stream == nil || ses.leaving {
		return 0
	}
	return ses.credits - len(ses.grants)
}

// give hands a job to the worker, unless nobody waits for it any longer.
func (ses *session) give(p carry.Passage, job *flow.Job) bool {
	if !p.Begin() {
		return false
	}
	ses.last++
	g := &grant{of: ses, number: ses.last, passage: p, job: ses.jobFor(job, ses.last), task: job.Task, at: job.Address}
	ses.grants[g.number], ses.all.held[p] = g, g
	ses.out.jobs = append(ses.out.jobs, g)
	ses.all.recount(ses)
	return true
}

// jobFor a worker. With its ticket the worker may go elsewhere.
func (ses *session) jobFor(j *flow.Job, number uint64) *attach.Job {
	job := &attach.Job{Number: number, Id: j.ID(), Key: j.Key(), Service: j.Exec.Service, Input: j.Input, Params: j.Params, Task: j.Task, Step: j.Step(),
		Unit: uint32(j.Unit), Units: uint32(max(j.Units, 1)), Attempt: uint32(j.Attempt), TimeoutMs: j.TimeoutMS, Trace: trace.Parent(j.Task, j.Traced, j.Address)}
	if j.Plan != nil {
		job.Flow = j.Plan.FlowSlug
	}
	if ses.all.roams() {
		job.Ticket = ses.all.tickets.of(job.GetId(), j.Given, j.EnqueuedAt)
	}
	return job
}

// call has what is in the outbox sent.
func (ses *session) call() {
	ses.all.mu.Lock()
	c := ses.stream
	ses.all.mu.Unlock()
	if c != nil {
		c.call()
	}
}

// landing is a job with its report.
type landing struct {
	carry.Passage
	report flow.Report
	parted bool // its worker goes on with it elsewhere
}

func land(all []landing) {
	for _, l := range all {
		if l.parted {
			l.Part()
			continue
		}
		l.Land(l.report)
	}
}

// await notes after which stream another one is waited for, and ends the wait after the one before.
func (ses *session) await(c *connection) {
	if ses.broken != nil {
		ses.broken.grace()
	}
	ses.broken = c
}

// let go of a grant; its job is to land if somebody still waits for it.
func (ses *session) drop(g *grant) (p carry.Passage) {
	delete(ses.grants, g.number)
	ses.all.recount(ses)
	if p = g.passage; p != nil {
		delete(ses.all.held, p)
	}
	return p
}

// endLog keeps what the worker has said at a job that it does not end.
func (g *grant) endLog() {
	if g.log != nil {
		g.log.End()
	}
}

// reconcile settles with a worker that is back what it still has. What never reached it is sent again, and what it has in
// vain is canceled.
func (ses *session) reconcile(hello *attach.Hello) {
	ses.out = outbox{}
	has := map[uint64]bool{}
	for _, n := range hello.GetFinished() {
		has[n] = true
	}
	for _, n := range hello.GetHeld() {
		has[n] = true
		if g := ses.grants[n]; g == nil || g.passage == nil && g.brought == nil {
			ses.cancelHeld(n)
		}
	}
	for _, g := range ses.inOrder() {
		switch {
		case has[g.number] || g.brought != nil:
		case g.passage == nil:
			ses.drop(g)
		default:
			g.came = nil // the worker has it no longer: it is a job like any other
			ses.out.jobs = append(ses.out.jobs, g)
		}
	}
}

// cancelHeld has the worker stop a job that it has in vain. The job takes a credit until the worker has answered.
func (ses *session) cancelHeld(number uint64) {
	if ses.grants[number] == nil && len(ses.grants) < maxCredits {
		ses.grants[number] = &grant{of: ses, number: number, sent: true}
	}
	ses.out.canceled = append(ses.out.canceled, number)
}

// inOrder are the grants as they were given.
func (ses *session) inOrder() []*grant {
	list := make([]*grant, 0, len(ses.grants))
	for _, g := range ses.grants {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *grant) int { return int(int64(a.number) - int64(b.number)) })
	return list
}

// lose takes everything from a session that is over. What was never sent is not lost, nor what the member leaves behind. When
// the member ends the worker goes on with what it has, and comes to another one with it, or to this one after its start.
func (ses *session) lose() (then aftermath) {
	s := ses.all
	for _, g := range ses.inOrder() {
		if g.brought != nil {
			s.settled(g, &then)
		}
		g.endLog()
		if p := ses.drop(g); p != nil {
			parted := g.sent && s.shut && s.roams() && !ses.leaving
			then.landings = append(then.landings, landing{p, flow.Report{Lost: true, Unbegun: !g.sent || s.leaving(), Worker: ses.worker}, parted})
		}
	}
	return then
}
