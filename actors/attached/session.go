package attached

import (
	"slices"
	"sync/atomic"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// workerSession is an attached worker, also for a while after its stream broke. Its fields belong
// to the lock of Sessions.
type workerSession struct {
	sessions         *Sessions
	id               string
	worker           string
	group            *sessionGroup // of those that offer the same and have the same labels
	heapIndex        int           // in it
	countedFree      int           // free credits that count there
	credits          int
	grants           map[uint64]*jobGrant
	lastNumber       uint64 // number given
	outbox           outbox
	stream           *workerStream // nil = it is broken
	bringSignal      chan struct{} // holds a token when the tasks are to be asked for what was brought along
	bringing         bool
	brokenStream     *workerStream // that it waits for another one after; nil = it does not
	heartbeatRunning atomic.Bool   // its worker's sign of life is being passed on
	doubted          bool          // some of its grants are
	leaving          bool          // the worker gets nothing more, and its session ends with its stream
}

// jobGrant is a job that takes one of a session's credits until the worker has answered for it.
type jobGrant struct {
	session   *workerSession
	number    uint64
	passage   carry.Passage // nil = nobody waits for it any longer
	job       *attach.Job   // as the worker gets it
	sent      bool
	task      string
	at        flow.Address
	log       Log         // nil = the worker has said nothing
	broughtAs *broughtJob // as which it was brought along; nil = it was not
	doubted   bool        // it was withdrawn and asked for again since the worker said something
	brought   *broughtJob // the worker has come with it, and it is not known yet what becomes of it; nil = it is
}

// outbox is what the worker is to be told next.
type outbox struct {
	jobs         []*jobGrant
	acknowledged []uint64
	canceled     []uint64
	told         bool // that the member leaves
}

// freeCredits are the credits that are left. A session without a stream takes nothing new.
func (ses *workerSession) freeCredits() int {
	if ses.stream == nil || ses.leaving {
		return 0
	}
	return ses.credits - len(ses.grants)
}

// giveJob hands a job to the worker, unless nobody waits for it any longer.
func (ses *workerSession) giveJob(p carry.Passage, job *flow.Job) bool {
	if !p.Begin() {
		return false
	}
	ses.lastNumber++
	g := &jobGrant{session: ses, number: ses.lastNumber, passage: p, job: ses.jobFor(job, ses.lastNumber), task: job.Task, at: job.Address}
	ses.grants[g.number], ses.sessions.held[p] = g, g
	ses.outbox.jobs = append(ses.outbox.jobs, g)
	ses.sessions.updateFree(ses)
	return true
}

// jobFor a worker. With its ticket the worker may go elsewhere.
func (ses *workerSession) jobFor(j *flow.Job, number uint64) *attach.Job {
	job := &attach.Job{Number: number, Id: j.ID(), Key: j.Key(), Service: j.Exec.Service, Input: j.Input, Params: j.Params, Task: j.Task, Step: j.Step(),
		Unit: uint32(j.Unit), Units: uint32(max(j.Units, 1)), Attempt: uint32(j.Attempt), TimeoutMs: j.TimeoutMS, Trace: trace.Parent(j.Task, j.Traced, j.Address)}
	if j.Plan != nil {
		job.Flow = j.Plan.FlowSlug
	}
	if ses.sessions.allowsRoaming() {
		job.Ticket = ses.sessions.tickets.newTicket(job.GetId(), j.Given, j.EnqueuedAt)
	}
	return job
}

// wakeWriter has what is in the outbox sent.
func (ses *workerSession) wakeWriter() {
	ses.sessions.mu.Lock()
	c := ses.stream
	ses.sessions.mu.Unlock()
	if c != nil {
		c.wakeWriter()
	}
}

// reportedJob is a job with its report.
type reportedJob struct {
	carry.Passage
	report   flow.Report
	migrates bool // its worker goes on with it elsewhere
}

func landReports(all []reportedJob) {
	for _, l := range all {
		if l.migrates {
			l.Part()
			continue
		}
		l.Land(l.report)
	}
}

// awaitStream notes after which stream another one is waited for, and ends the wait after the one
// before.
func (ses *workerSession) awaitStream(c *workerStream) {
	if ses.brokenStream != nil {
		ses.brokenStream.stopGrace()
	}
	ses.brokenStream = c
}

// removeGrant forgets a grant; its job is to land if somebody still waits for it.
func (ses *workerSession) removeGrant(g *jobGrant) (p carry.Passage) {
	delete(ses.grants, g.number)
	ses.sessions.updateFree(ses)
	if p = g.passage; p != nil {
		delete(ses.sessions.held, p)
	}
	return p
}

// endLog keeps what the worker has said at a job that it does not end.
func (g *jobGrant) endLog() {
	if g.log != nil {
		g.log.End()
	}
}

// reconcileJobs settles with a worker that is back what it still has. What never reached it is sent
// again, and what it has in vain is canceled.
func (ses *workerSession) reconcileJobs(hello *attach.Hello) {
	ses.outbox = outbox{}
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
	for _, g := range ses.grantsInOrder() {
		switch {
		case has[g.number] || g.brought != nil:
		case g.passage == nil:
			ses.removeGrant(g)
		default:
			g.broughtAs = nil // the worker has it no longer: it is a job like any other
			ses.outbox.jobs = append(ses.outbox.jobs, g)
		}
	}
}

// cancelHeld has the worker stop a job that it has in vain. The job takes a credit until the worker
// has answered.
func (ses *workerSession) cancelHeld(number uint64) {
	if ses.grants[number] == nil && len(ses.grants) < maxCredits {
		ses.grants[number] = &jobGrant{session: ses, number: number, sent: true}
	}
	ses.outbox.canceled = append(ses.outbox.canceled, number)
}

// grantsInOrder are the grants as they were given.
func (ses *workerSession) grantsInOrder() []*jobGrant {
	list := make([]*jobGrant, 0, len(ses.grants))
	for _, g := range ses.grants {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *jobGrant) int { return int(int64(a.number) - int64(b.number)) })
	return list
}

// releaseAll takes everything from a session that is over. What was never sent is not lost, nor
// what the member leaves behind. When the member ends the worker goes on with what it has, and
// comes to another one with it, or to this one after its start.
func (ses *workerSession) releaseAll() (then unlockedActions) {
	s := ses.sessions
	for _, g := range ses.grantsInOrder() {
		if g.brought != nil {
			s.finishSettling(g, &then)
		}
		g.endLog()
		if p := ses.removeGrant(g); p != nil {
			parted := g.sent && s.shut && s.allowsRoaming() && !ses.leaving
			then.landings = append(then.landings, reportedJob{p, flow.Report{Lost: true, Unbegun: !g.sent || s.isLeaving(), Worker: ses.worker}, parted})
		}
	}
	return then
}
