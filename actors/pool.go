package actors

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/actors/metrics"
	"github.com/troupe-engine/troupe/actors/values"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// carrierPool holds a carrier of this member, its worker places, and the queue of jobs for them. A
// worker goroutine carries out one job after another, which saves goroutine switches for short
// jobs.
type carrierPool struct {
	m              *Member
	carrier        Carrier
	limit          int
	notifySessions func() // notifies the sessions actor of finished jobs or a released place

	mu             sync.Mutex
	jobQueue       []*activeJob // oldest first
	withdrawnCount int          // upper bound of withdrawn jobs in the queue
	running        int          // places in use
	starting       bool         // one place is reserved for a goroutine that has not started yet
	closed         bool         // no new jobs start
	done           []*activeJob // finished jobs that the sessions actor has not taken yet
	notified       bool         // the sessions actor was notified of the jobs in done
}

// jobsCarried notifies the sessions actor of finished jobs.
type jobsCarried struct{ way jobRoute }

// activeJob is a job that is queued on this member or being carried out.
type activeJob struct {
	key       engine.JobKey
	dispatch  flow.Effect // the dispatch effect, which contains the large job
	route     jobRoute
	jobCtx    jobContext
	withdrawn atomic.Bool // the job is no longer needed
	stage     atomic.Int32
	delivery  int // delivery number of the job
	// inbox for the report; nil after the report was put there
	inbox       atomic.Pointer[inbox]
	report      flow.Command // nil if there is none
	inquireNext bool         // used by the sessions actor only; see inquireForeign
	// the required start event is stored; used by relays only
	startRecorded bool
	// the job with its values loaded, nil before that; used by relays only
	resolved atomic.Pointer[flow.Job]
	waitEnds *waitEnds // nil if the job is not a function flow

	olderOfTask, newerOfTask *activeJob // list of the task's jobs, for the sessions actor
}

// Stages of an activeJob.
const (
	stageQueued int32 = iota
	stageRunning
	stageDropped // withdrawn while it was queued
	stageDone
)

func (f *activeJob) dispatchedJob() flow.Job { return f.dispatch.(flow.Dispatch).Job }

// enqueueJobs appends jobs to the queue.
func (p *carrierPool) enqueueJobs(flights []*activeJob) {
	p.m.counts.ready.Add(int64(len(flights)))
	p.mu.Lock()
	p.jobQueue = append(p.jobQueue, flights...)
	wake := p.reservePlace()
	p.mu.Unlock()
	p.startWorker(wake)
}

// reservePlace reserves a place for one goroutine. At most one reserved goroutine is starting at
// any time; after its start, it starts the next one.
func (p *carrierPool) reservePlace() bool {
	if p.closed || p.starting || p.running >= p.limit || len(p.jobQueue) == 0 {
		return false
	}
	p.running++
	p.starting = true
	return true
}

func (p *carrierPool) startWorker(wake bool) {
	if wake {
		p.m.work.Run(p.runWorker)
	}
}

// jobsPerYield is how many jobs a goroutine carries out before it yields the processor to actors
// and committer lanes.
const jobsPerYield = 16

// runWorker carries out queued jobs until none is left.
func (p *carrierPool) runWorker() {
	for n, f := 1, p.nextJob(nil); f != nil; n, f = n+1, p.nextJob(f) {
		p.m.carryPart().carryJob(f, p.carrier)
		if n%jobsPerYield == 0 {
			runtime.Gosched()
		}
	}
}

// nextJob records that a job is finished, and returns the next one. Without a next job it releases
// the place and returns nil. It notifies the sessions actor also of an unused place, because the
// actor may wait for idle places.
func (p *carrierPool) nextJob(last *activeJob) *activeJob {
	p.mu.Lock()
	if last != nil {
		p.done = append(p.done, last)
	} else {
		p.starting = false
	}
	f := p.popJob()
	if f == nil {
		p.running--
	}
	tell := !p.notified && (last != nil || f == nil)
	p.notified = p.notified || tell
	wake := p.reservePlace()
	p.mu.Unlock()
	if tell {
		p.notifySessions()
	}
	p.startWorker(wake)
	return f
}

func (p *carrierPool) popJob() *activeJob {
	for len(p.jobQueue) > 0 && !p.closed && !p.m.work.HasEnded() {
		f := p.jobQueue[0]
		p.jobQueue[0] = nil
		p.jobQueue = p.jobQueue[1:]
		p.m.counts.ready.Add(-1)
		if f.stage.CompareAndSwap(stageQueued, stageRunning) {
			return f
		}
	}
	return nil
}

// takeDone returns the jobs that were finished since the last call.
func (p *carrierPool) takeDone() []*activeJob {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.done
	p.done, p.notified = nil, false
	return all
}

// noteWithdrawn records that a queued job was withdrawn. When up to half of a long queue is
// withdrawn, it removes these jobs from memory. A running job ends by its context.
func (p *carrierPool) noteWithdrawn(f *activeJob) {
	if f.stage.Load() != stageDropped {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.withdrawnCount++; p.withdrawnCount < 100 || p.withdrawnCount < len(p.jobQueue)/2 {
		return
	}
	before := len(p.jobQueue)
	p.jobQueue = slices.DeleteFunc(p.jobQueue, func(f *activeJob) bool { return f.stage.Load() == stageDropped })
	p.withdrawnCount = 0
	p.m.counts.ready.Add(int64(len(p.jobQueue) - before))
}

// close prevents further jobs from starting.
func (p *carrierPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

func (p *carrierPool) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running == 0
}

// carryJob carries out a job and puts its report into its actor's inbox.
func (m jobCarrying) carryJob(f *activeJob, carrier Carrier) {
	defer f.stage.Store(stageDone)
	defer f.jobCtx.endJob()
	job, ctx := f.dispatchedJob(), &f.jobCtx
	m.metrics.ObserveDispatch(metrics.ServiceOf(job.Exec), m.nowMillis()-job.EnqueuedAt)
	if m.canStart(ctx) && (!job.Again || m.recordStart(ctx, &job)) {
		report := m.carryResolved(m.withFunctionHost(m.withStartListener(ctx, &job), f, &job), carrier, job)
		lost := f.waitEnds.close()
		if lost != nil {
			report = values.UnresolvedReport(lost)
		}
		// An error of a canceled job is not reported, because the cancellation may be its only
		// cause. Its attempt has ended, or is repeated after the next start.
		if lost != nil || ctx.Err() == nil || report.Error == "" && !m.work.HasEnded() {
			if job.Exec.Type == flow.ExecCode {
				report.Given = job.Given
			}
			f.report = normalizeReport(f.key.At, report)
		}
	}
	f.dispatch = nil // release the job's memory, because the report may wait for long
	if f.withdrawn.Load() && f.hasDeferredWork() {
		m.sendMessage(m.tasks, reportsOf(f.key.Task, []*activeJob{f}))
		f.report = nil
	}
	f.inbox.Swap(nil).addReport(f)
}

// leaseRecheck is the pause between checks whether the lease is held again.
const leaseRecheck = 50 * time.Millisecond

// canStart blocks while another member may hold the lease and thereby own the job. It returns false
// if the job was canceled or the member stops.
func (m jobCarrying) canStart(ctx context.Context) bool {
	for !m.lease.IsHeld() {
		if m.stopping.Load() || host.Closed(m.Lost()) || !m.work.Sleep(leaseRecheck) {
			return false
		}
	}
	return ctx.Err() == nil
}

// recordStart stores the start of a job that may crash its carriers. So a job that crashes the
// member each time is not repeated forever. It returns false if the job is no longer needed.
func (m jobCarrying) recordStart(ctx context.Context, job *flow.Job) bool {
	return m.reportProgress(ctx, job.Task, flow.Begin{Address: job.Address, Carrier: m.incarnation})
}

// withStartListener returns a context through which a carrier reports the start of a job. It is
// used only for workers that report by files.
func (m jobCarrying) withStartListener(ctx context.Context, job *flow.Job) context.Context {
	if !job.Exec.ByFiles() {
		return ctx
	}
	task, at := job.Task, job.Address
	return carriers.Hearing(ctx, func(since int64) { m.reportProgress(ctx, task, flow.Working{Address: at, At: since}) })
}

// reportProgress stores a progress report of a running job, with retries. It returns false if the
// job is no longer needed.
func (m jobCarrying) reportProgress(ctx context.Context, task string, word flow.Command) bool {
	for try := 1; ; try++ {
		answered, err := m.reportProgressOnce(ctx, task, word)
		if !answered {
			return false
		}
		switch flow.ErrorKindOf(err) {
		case flow.Busy, flow.Moved: // the task's actor crashed, or another member owns the task now
			if !m.work.Sleep(background.StorePause(try)) {
				return false
			}
		case flow.Conflict, flow.NotFound:
			return false
		default:
			return true
		}
	}
}

// reportProgressOnce sends a progress report to the task on any member. answered is false if the
// job is no longer needed.
func (m jobCarrying) reportProgressOnce(ctx context.Context, task string, word flow.Command) (answered bool, err error) {
	if !m.owned.OwnsTask(task) {
		err := m.cfg.Others.Do(ctx, engine.Orders{{Task: task, Command: word}})[0].Err
		if !engine.IsDelivered(err) {
			err = flow.Errorf(flow.Busy, "%v", err)
		}
		return ctx.Err() == nil, err
	}
	a, err := m.requestPart().sendRequest(withPatience(ctx), word, func(reply func(commandAnswer)) {
		m.sendMessage(m.tasks, &taskCommand{task: task, command: word, reply: reply})
	})
	return err == nil, a.err
}

// carryResolved loads the values of a job, carries it out, and stores a large output outside the
// store.
func (m jobCarrying) carryResolved(ctx context.Context, carrier Carrier, job flow.Job) flow.Report {
	job, err := m.values.Resolve(ctx, job)
	if err != nil {
		return values.UnresolvedReport(err)
	}
	return m.values.OffloadOutput(job.Task, carryOut(ctx, carrier, job))
}

// carryOut lets the carrier carry out the job. A panic becomes the attempt's error.
func carryOut(ctx context.Context, carrier Carrier, job flow.Job) (r flow.Report) {
	defer func() {
		if reason := recover(); reason != nil {
			r = flow.Report{Error: fmt.Sprintf("panic: %v\n%s", reason, firstLines(debug.Stack(), 12))}
		}
	}()
	return carrier.Carry(ctx, job)
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

// normalizeReport converts a report to the form that the task accepts.
func normalizeReport(at flow.Address, r flow.Report) flow.Report {
	r.Address = at
	if err := flow.CheckJSON(r.Output); err != nil {
		r.Output, r.Error = nil, orElse(r.Error, "the output "+err.Error())
	}
	return r
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}
