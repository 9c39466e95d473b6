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
// waits for the worker during the grace period. The lock of Sessions guards its fields.
type workerSession struct {
	sessions    *Sessions
	id          string
	worker      string
	group       *sessionGroup // sessions with the same services and labels
	heapIndex   int           // index in the group's heap
	countedFree int           // free credits as counted in the group's sum
	credits     int
	grants      map[uint64]*jobGrant
	lastNumber  uint64 // number of the last job
	outbox      outbox
	stream      *workerStream // nil if the stream is broken
	bringSignal chan struct{} // holds a token when tasks must be asked about brought jobs
	bringing    bool
	// broken stream after which the session waits for a new one; nil if it does not wait
	brokenStream     *workerStream
	heartbeatRunning atomic.Bool // a heartbeat of the worker is being passed on
	doubted          bool        // some grants of the session are doubted
	// the worker gets no more jobs, and the session ends with the stream
	leaving bool
}

// jobGrant is a job that uses one credit of a session until the worker has sent its result.
type jobGrant struct {
	session   *workerSession
	number    uint64
	passage   carriers.Passage // nil if the job is no longer needed
	job       *attach.Job      // job in the form for the worker
	sent      bool
	task      string
	at        flow.Address
	log       Log            // nil if there is no output
	broughtAs *broughtJob    // how the job was brought; nil if it was not
	doubted   bool           // withdrawn and requested again since the worker's last message
	brought   *broughtJob    // unsettled brought job; nil if settled
	function  *functionGrant // nil if the job is not a function flow
}

// outbox holds the next messages to the worker.
type outbox struct {
	jobs         []*jobGrant
	acknowledged []uint64
	canceled     []uint64
	answers      []*attach.FunctionAnswer
	functions    []*jobGrant // functions with steps to send
	told         bool        // the worker was notified that the member leaves
}

// freeCredits returns the number of unused credits. It is 0 for a session without a stream.
func (ses *workerSession) freeCredits() int {
	if ses.stream == nil || ses.leaving {
		return 0
	}
	return ses.credits - len(ses.grants)
}

// giveJob gives a job to the worker. It returns false if the job is no longer needed.
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

// jobFor returns a job in the form for a worker. It includes a ticket with which the worker may
// take the job to another member.
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
	migrates bool // the worker takes the job to another member
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

// awaitStream sets the broken stream after which a session waits for a new one. It ends the
// previous wait.
func (ses *workerSession) awaitStream(c *workerStream) {
	if ses.brokenStream != nil {
		ses.brokenStream.stopGrace()
	}
	ses.brokenStream = c
}

// removeGrant removes a grant. It returns the job if the job is still needed and must land.
func (ses *workerSession) removeGrant(g *jobGrant) (p carriers.Passage) {
	delete(ses.grants, g.number)
	ses.sessions.updateFree(ses)
	if p = g.passage; p != nil {
		delete(ses.sessions.held, p)
	}
	return p
}

// endLog ends the log of a job that the worker does not finish.
func (g *jobGrant) endLog() {
	if g.log != nil {
		g.log.End()
	}
}

// reconcileJobs compares the jobs of a returned worker with those of the session. Jobs that did not
// reach the worker are sent again, and jobs that are no longer needed are canceled.
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
			g.broughtAs = nil // the worker no longer has the job, so it is like any other
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

// releaseAll removes all jobs from an ended session. Jobs that were not sent, or that the leaving
// member gives up, do not count as lost. If the member stops, the worker continues its jobs and
// brings them to another member or to this one after its restart.
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
