package attached

import (
	"slices"
	"sync/atomic"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// workerSession is the session of an attached worker. After its stream has broken, the session
// waits for the worker for a while. The lock of Sessions guards its fields.
type workerSession struct {
	sessions    *Sessions
	id          string
	worker      string
	group       *sessionGroup // sessions with the same services and labels
	heapIndex   int           // index in the group's heap
	countedFree int           // free credits as counted in the group
	credits     int
	grants      map[uint64]*jobGrant
	lastNumber  uint64 // last job number
	outbox      outbox
	stream      *workerStream // nil if it is broken
	bringSignal chan struct{} // holds a token when tasks must be asked about brought jobs
	bringing    bool
	// stream after which it waits for another one; nil if it does not wait
	brokenStream     *workerStream
	heartbeatRunning atomic.Bool // a heartbeat of its worker is being passed on
	doubted          bool        // some of its grants are doubted
	// the worker gets no more jobs, and the session ends with its stream
	leaving bool
}

// jobGrant is a job that uses one of a session's credits until the worker has answered for it.
type jobGrant struct {
	session   *workerSession
	number    uint64
	passage   carriers.Passage // nil if the job is no longer needed
	job       *attach.Job      // in the form for the worker
	sent      bool
	task      string
	at        flow.Address
	log       Log            // nil if there is no output
	broughtAs *broughtJob    // how it was brought along; nil if it was not
	doubted   bool           // withdrawn and asked for again since the worker's last message
	brought   *broughtJob    // brought along and not settled yet; nil if settled
	function  *functionGrant // of a function that is a flow; nil for other jobs
}

// outbox holds the next messages to the worker.
type outbox struct {
	jobs         []*jobGrant
	acknowledged []uint64
	canceled     []uint64
	answers      []*attach.FunctionAnswer
	functions    []*jobGrant // functions with steps to send
	told         bool        // the worker knows that the member leaves
}

// freeCredits returns the unused credits. A session without a stream takes no new jobs.
func (ses *workerSession) freeCredits() int {
	if ses.stream == nil || ses.leaving {
		return 0
	}
	return ses.credits - len(ses.grants)
}

// giveJob gives a job to the worker, unless it is no longer needed.
func (ses *workerSession) giveJob(p carriers.Passage, job *flow.Job) bool {
	if !p.Begin() {
		return false
	}
	ses.lastNumber++
	g := &jobGrant{session: ses, number: ses.lastNumber, passage: p, job: ses.jobFor(job, ses.lastNumber), task: job.Task, at: job.Address}
	ses.grants[g.number], ses.sessions.held[p] = g, g
	ses.outbox.jobs = append(ses.outbox.jobs, g)
	if job.Function != nil {
		g.beginFunction(p, job)
	}
	ses.sessions.updateFree(ses)
	return true
}

// jobFor returns a job in the form for a worker. With its ticket the worker may take it to another
// member.
func (ses *workerSession) jobFor(j *flow.Job, number uint64) *attach.Job {
	job := &attach.Job{Number: number, Id: j.ID(), Key: j.Key(), Service: j.Exec.Service,
		Input: j.Input, Params: j.Params, Task: j.Task, Step: j.Step(),
		Unit: uint32(j.Unit), Units: uint32(max(j.Units, 1)), Attempt: uint32(j.Attempt),
		TimeoutMs: j.TimeoutMS, Labels: j.Exec.Labels, Trace: trace.Parent(j.Task, j.Traced, j.Address)}
	if j.Plan != nil {
		job.Flow = j.Plan.FlowSlug
	}
	if ses.sessions.allowsRoaming() && j.Function == nil {
		job.Ticket = ses.sessions.tickets.newTicket(job.GetId(), j.Given, j.EnqueuedAt)
	}
	return job
}

// wakeWriter makes the stream's writer send the outbox.
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
	carriers.Passage
	report   flow.Report
	migrates bool // its worker takes it to another member
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

// awaitStream stores the broken stream after which another one is awaited, and ends the previous
// wait.
func (ses *workerSession) awaitStream(c *workerStream) {
	if ses.brokenStream != nil {
		ses.brokenStream.stopGrace()
	}
	ses.brokenStream = c
}

// removeGrant removes a grant, and returns its job if that is still needed and must land.
func (ses *workerSession) removeGrant(g *jobGrant) (p carriers.Passage) {
	delete(ses.grants, g.number)
	ses.sessions.updateFree(ses)
	if p = g.passage; p != nil {
		delete(ses.sessions.held, p)
	}
	return p
}

// endLog stores a worker's output for a job that the worker does not finish.
func (g *jobGrant) endLog() {
	if g.log != nil {
		g.log.End()
	}
}

// reconcileJobs compares the jobs of a worker that is back with the session's. Jobs that did not
// reach it are sent again, and jobs that are no longer needed are canceled.
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
		if g.passage != nil {
			g.resendSteps()
		}
		switch {
		case has[g.number] || g.brought != nil:
		case g.passage == nil:
			ses.removeGrant(g)
		default:
			g.broughtAs = nil // the worker no longer has it: it is like any other job
			ses.outbox.jobs = append(ses.outbox.jobs, g)
		}
	}
}

// cancelHeld makes the worker stop a job that is no longer needed. The job uses a credit until the
// worker has answered.
func (ses *workerSession) cancelHeld(number uint64) {
	if ses.grants[number] == nil && len(ses.grants) < maxCredits {
		ses.grants[number] = &jobGrant{session: ses, number: number, sent: true}
	}
	ses.outbox.canceled = append(ses.outbox.canceled, number)
}

// grantsInOrder returns the grants in order of their numbers.
func (ses *workerSession) grantsInOrder() []*jobGrant {
	list := make([]*jobGrant, 0, len(ses.grants))
	for _, g := range ses.grants {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *jobGrant) int { return int(int64(a.number) - int64(b.number)) })
	return list
}

// releaseAll removes all jobs from a session that has ended. Jobs that were not sent, or that this
// member leaves behind, do not count as lost. If the member stops, the worker continues its jobs,
// and brings them to another member, or to this one after its restart.
func (ses *workerSession) releaseAll() (then unlockedActions) {
	s := ses.sessions
	for _, g := range ses.grantsInOrder() {
		if g.brought != nil {
			s.finishSettling(g, &then)
		}
		g.endLog()
		if p := ses.removeGrant(g); p != nil {
			parted := g.sent && s.shut && s.allowsRoaming() && !ses.leaving && g.function == nil
			then.landings = append(then.landings,
				reportedJob{p, flow.Report{Lost: true, Unbegun: !g.sent || s.isLeaving(),
					Worker: ses.worker}, parted})
		}
	}
	return then
}
