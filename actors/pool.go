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

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// carrierPool is a carrier of this member, its places, and the jobs that wait in line for one. Who
// has a place carries out one job after the other: short ones cost no change of goroutines.
type carrierPool struct {
	m              *Member
	carrier        Carrier
	limit          int
	notifySessions func() // the sessions, that jobs are done with or a place was given up

	mu             sync.Mutex
	jobQueue       []*activeJob // first one first
	withdrawnCount int          // jobs in it that were withdrawn, at most
	running        int          // places that are taken
	starting       bool         // by one that has not begun yet
	closed         bool         // nothing new begins
	done           []*activeJob // that the sessions have not been told of …
	notified       bool         // … but will be
}

// jobsCarried tells the sessions that jobs are done with.
type jobsCarried struct{ way jobRoute }

// activeJob is a job on its way: in line, or being carried out.
type activeJob struct {
	key           jobKey
	dispatch      flow.Effect // with the job, which is large
	route         jobRoute
	jobCtx        jobContext
	withdrawn     atomic.Bool // nobody waits for it any longer
	delivery      int         // how often the job was given to a carrier before
	stage         atomic.Int32
	inbox         atomic.Pointer[inbox]    // where it will land, or is to land once more; nil = it lands, or has
	report        flow.Command             // nil = there is none
	inquireNext   bool                     // for a while, to the sessions; see inquireForeign
	startRecorded bool                     // that the job begins now is stored, if that is to be; with a relay only
	resolved      atomic.Pointer[flow.Job] // the job with the values that it refers to; nil = it is as it was dispatched. With a relay only

	olderOfTask, newerOfTask *activeJob // of the same task, which the sessions know
}

// Stages of a flight.
const (
	stageQueued int32 = iota
	stageRunning
	stageDropped // withdrawn while in line
	stageDone
)

func (f *activeJob) dispatchedJob() flow.Job { return f.dispatch.(flow.Dispatch).Job }

// enqueueJobs puts jobs in line.
func (p *carrierPool) enqueueJobs(flights []*activeJob) {
	p.m.ready.Add(int64(len(flights)))
	p.mu.Lock()
	p.jobQueue = append(p.jobQueue, flights...)
	wake := p.reservePlace()
	p.mu.Unlock()
	p.startWorker(wake)
}

// reservePlace takes a place for somebody to begin, one at a time: whoever has begun wakes the
// next.
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
		p.m.runBackground(p.runWorker)
	}
}

// jobsPerYield is how many jobs are carried out in a row before others get the processor: actors,
// and the lanes of the committer that the store has answered.
const jobsPerYield = 16

// runWorker carries out what is in line until there is nothing more.
func (p *carrierPool) runWorker() {
	for n, f := 1, p.nextJob(nil); f != nil; n, f = n+1, p.nextJob(f) {
		p.m.carryJob(f, p.carrier)
		if n%jobsPerYield == 0 {
			runtime.Gosched()
		}
	}
}

// nextJob notes that a job is done with and takes another one, or gives up the place. Who waits for
// the places is told of one that was given up unused, too.
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
	for len(p.jobQueue) > 0 && !p.closed && p.m.ctx.Err() == nil {
		f := p.jobQueue[0]
		p.jobQueue[0] = nil
		p.jobQueue = p.jobQueue[1:]
		p.m.ready.Add(-1)
		if f.stage.CompareAndSwap(stageQueued, stageRunning) {
			return f
		}
	}
	return nil
}

// takeDone are the jobs that were carried out since the last time.
func (p *carrierPool) takeDone() []*activeJob {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.done
	p.done, p.notified = nil, false
	return all
}

// noteWithdrawn notes that a job in line is not wanted any longer; of one under way the context has
// ended. When that may be half of a long line, it is looked through: what nobody waits for is not
// to be kept for as long as those take who have the places.
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
	p.m.ready.Add(int64(len(p.jobQueue) - before))
}

// close has nothing new begin.
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

// carryJob has a job carried out, and its report put where its actor looks for it.
func (m *Member) carryJob(f *activeJob, carrier Carrier) {
	defer f.stage.Store(stageDone)
	defer f.jobCtx.endJob()
	job, ctx := f.dispatchedJob(), &f.jobCtx
	m.metrics.observeDispatch(serviceOf(job.Exec), m.nowMillis()-job.EnqueuedAt)
	if m.canStart(ctx) && (!job.Again || m.recordStart(ctx, &job)) {
		report := m.carryResolved(m.withStartListener(ctx, &job), carrier, job)
		// A job that was called off may have failed only because of that: its attempt is over, or
		// it is carried out again after the next start.
		if ctx.Err() == nil || report.Error == "" && m.ctx.Err() == nil {
			f.report = normalizeReport(f.key.at, report)
		}
	}
	f.dispatch = nil // nobody needs the job any more, and its report may wait
	if f.withdrawn.Load() && f.hasDeferredWork() {
		m.sendMessage(m.tasks, reportsOf(f.key.task, []*activeJob{f}))
		f.report = nil
	}
	f.inbox.Swap(nil).addReport(f)
}

// leaseRecheck is how often it is looked whether the lease is held again.
const leaseRecheck = 50 * time.Millisecond

// canStart holds a job while somebody else may have the lease, and the job with it. It is false
// when the job is not to begin any more: it was called off, or the member goes.
func (m *Member) canStart(ctx context.Context) bool {
	for !m.lease.isHeld() {
		if m.stopping.Load() || isClosed(m.Lost()) || !m.sleepFor(leaseRecheck) {
			return false
		}
	}
	return ctx.Err() == nil
}

// recordStart has it stored that a job begins now which may be what its carriers die of: so one
// that ends its member each time is not carried out for ever. It is false when nobody waits for the
// job any longer.
func (m *Member) recordStart(ctx context.Context, job *flow.Job) bool {
	return m.reportProgress(ctx, job.Task, flow.Begin{Address: job.Address, Carrier: m.incarnation})
}

// withStartListener has it stored since when the worker of a job is at it that tells so by files.
func (m *Member) withStartListener(ctx context.Context, job *flow.Job) context.Context {
	if !job.Exec.ByFiles() {
		return ctx
	}
	task, at := job.Task, job.Address
	return carry.Hearing(ctx, func(since int64) { m.reportProgress(ctx, task, flow.Working{Address: at, At: since}) })
}

// reportProgress has stored what is known of a job while it is carried out. It is false when nobody
// waits for the job any longer.
func (m *Member) reportProgress(ctx context.Context, task string, word flow.Command) bool {
	for try := 1; ; try++ {
		answered, err := m.reportProgressOnce(ctx, task, word)
		if !answered {
			return false
		}
		switch flow.ErrorKindOf(err) {
		case flow.Busy, flow.Moved: // the task's actor crashed, or another member has it by now
			if !m.sleepFor(storePause(try)) {
				return false
			}
		case flow.Conflict, flow.NotFound:
			return false
		default:
			return true
		}
	}
}

// reportProgressOnce tells a task, or the member that has it, of one of its jobs. It is answered
// unless nobody waits any more.
func (m *Member) reportProgressOnce(ctx context.Context, task string, word flow.Command) (answered bool, err error) {
	if !m.owned.ownsTask(task) {
		err := m.cfg.Others.Do(ctx, engine.Orders{{Task: task, Command: word}})[0].Err
		if !isDelivered(err) {
			err = flow.Errorf(flow.Busy, "%v", err)
		}
		return ctx.Err() == nil, err
	}
	a, err := m.sendRequest(withPatience(ctx), word, func(reply func(commandAnswer)) {
		m.sendMessage(m.tasks, &taskCommand{task: task, command: word, reply: reply})
	})
	return err == nil, a.err
}

// carryResolved has a job carried out with its values as they are, and keeps the output.
func (m *Member) carryResolved(ctx context.Context, carrier Carrier, job flow.Job) flow.Report {
	job, err := m.resolveValues(ctx, job)
	if err != nil {
		return unresolvedReport(err)
	}
	return m.offloadOutput(job.Task, carryOut(ctx, carrier, job))
}

// carryOut has the carrier do the job; its panic is the attempt's error.
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

// normalizeReport is a report as the task takes it.
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
