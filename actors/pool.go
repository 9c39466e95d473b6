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

// pool is a carrier of this member, its places, and the jobs that wait in line for one. Who has a place carries out one
// job after the other: short ones cost no change of goroutines.
type pool struct {
	m       *Member
	carrier Carrier
	limit   int
	tell    func() // the sessions, that jobs are done with or a place was given up

	mu      sync.Mutex
	line    []*flight // first one first
	left    int       // jobs in it that were withdrawn, at most
	running int       // places that are taken
	waking  bool      // by one that has not begun yet
	shut    bool      // nothing new begins
	done    []*flight // that the sessions have not been told of …
	called  bool      // … but will be
}

// carried tells the sessions that jobs are done with.
type carried struct{ way way }

// flight is a job on its way: in line, or being carried out.
type flight struct {
	key       jobKey
	dispatch  flow.Effect // with the job, which is large
	way       way
	off       jobContext
	withdrawn atomic.Bool // nobody waits for it any longer
	given     int         // how often the job was given to a carrier before
	stage     atomic.Int32
	inbox     atomic.Pointer[inbox]    // where it will land, or is to land once more; nil = it lands, or has
	report    flow.Command             // nil = there is none
	known     bool                     // for a while, to the sessions; see inquire
	noted     bool                     // that the job begins now is stored, if that is to be; with a relay only
	whole     atomic.Pointer[flow.Job] // the job with the values that it refers to; nil = it is as it was dispatched. With a relay only

	older, newer *flight // of the same task, which the sessions know
}

// Stages of a flight.
const (
	inLine int32 = iota
	underWay
	dropped // withdrawn while in line
	done
)

func (f *flight) job() flow.Job { return f.dispatch.(flow.Dispatch).Job }

// add puts jobs in line.
func (p *pool) add(flights []*flight) {
	p.m.ready.Add(int64(len(flights)))
	p.mu.Lock()
	p.line = append(p.line, flights...)
	wake := p.wake()
	p.mu.Unlock()
	p.begin(wake)
}

// wake takes a place for somebody to begin, one at a time: whoever has begun wakes the next.
func (p *pool) wake() bool {
	if p.shut || p.waking || p.running >= p.limit || len(p.line) == 0 {
		return false
	}
	p.running++
	p.waking = true
	return true
}

func (p *pool) begin(wake bool) {
	if wake {
		p.m.background(p.work)
	}
}

// poolShift is how many jobs are carried out in a row before others get the processor: actors, and the lanes of the committer that the store
// has answered.
const poolShift = 16

// work carries out what is in line until there is nothing more.
func (p *pool) work() {
	for n, f := 1, p.next(nil); f != nil; n, f = n+1, p.next(f) {
		p.m.carry(f, p.carrier)
		if n%poolShift == 0 {
			runtime.Gosched()
		}
	}
}

// next notes that a job is done with and takes another one, or gives up the place. Who waits for the places is told of one
// that was given up unused, too.
func (p *pool) next(last *flight) *flight {
	p.mu.Lock()
	if last != nil {
		p.done = append(p.done, last)
	} else {
		p.waking = false
	}
	f := p.pop()
	if f == nil {
		p.running--
	}
	tell := !p.called && (last != nil || f == nil)
	p.called = p.called || tell
	wake := p.wake()
	p.mu.Unlock()
	if tell {
		p.tell()
	}
	p.begin(wake)
	return f
}

func (p *pool) pop() *flight {
	for len(p.line) > 0 && !p.shut && p.m.ctx.Err() == nil {
		f := p.line[0]
		p.line[0] = nil
		p.line = p.line[1:]
		p.m.ready.Add(-1)
		if f.stage.CompareAndSwap(inLine, underWay) {
			return f
		}
	}
	return nil
}

// takeDone are the jobs that were carried out since the last time.
func (p *pool) takeDone() []*flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.done
	p.done, p.called = nil, false
	return all
}

// withdrawn notes that a job in line is not wanted any longer; of one under way the context has ended. When that may be half of a
// long line, it is looked through: what nobody waits for is not to be kept for as long as those take who have the places.
func (p *pool) withdrawn(f *flight) {
	if f.stage.Load() != dropped {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left++; p.left < 100 || p.left < len(p.line)/2 {
		return
	}
	before := len(p.line)
	p.line = slices.DeleteFunc(p.line, func(f *flight) bool { return f.stage.Load() == dropped })
	p.left = 0
	p.m.ready.Add(int64(len(p.line) - before))
}

// close has nothing new begin.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
}

func (p *pool) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running == 0
}

// carry has a job carried out, and its report put where its actor looks for it.
func (m *Member) carry(f *flight, carrier Carrier) {
	defer f.stage.Store(done)
	defer f.off.now()
	job, ctx := f.job(), &f.off
	m.metrics.dispatched(serviceOf(job.Exec), m.now()-job.EnqueuedAt)
	if m.mayBegin(ctx) && (!job.Again || m.begin(ctx, &job)) {
		report := m.carryWhole(m.hearing(ctx, &job), carrier, job)
		// A job that was called off may have failed only because of that: its attempt is over, or it is
		// carried out again after the next start.
		if ctx.Err() == nil || report.Error == "" && m.ctx.Err() == nil {
			f.report = reported(f.key.at, report)
		}
	}
	f.dispatch = nil // nobody needs the job any more, and its report may wait
	if f.withdrawn.Load() && f.outside() {
		m.tell(m.tasks, reportsOf(f.key.task, []*flight{f}))
		f.report = nil
	}
	f.inbox.Swap(nil).land(f)
}

// leaseAgain is how often it is looked whether the lease is held again.
const leaseAgain = 50 * time.Millisecond

// mayBegin holds a job while somebody else may have the lease, and the job with it. It is false when the job is not to begin any
// more: it was called off, or the member goes.
func (m *Member) mayBegin(ctx context.Context) bool {
	for !m.lease.held() {
		if m.stopping.Load() || closed(m.Lost()) || !m.pause(leaseAgain) {
			return false
		}
	}
	return ctx.Err() == nil
}

// begin has it stored that a job begins now which may be what its carriers die of: so one that ends its member each
// time is not carried out for ever. It is false when nobody waits for the job any longer.
func (m *Member) begin(ctx context.Context, job *flow.Job) bool {
	return m.told(ctx, job.Task, flow.Begin{Address: job.Address, Carrier: m.incarnation})
}

// hearing has it stored since when the worker of a job is at it that tells so by files.
func (m *Member) hearing(ctx context.Context, job *flow.Job) context.Context {
	if !job.Exec.ByFiles() {
		return ctx
	}
	task, at := job.Task, job.Address
	return carry.Hearing(ctx, func(since int64) { m.told(ctx, task, flow.Working{Address: at, At: since}) })
}

// told has stored what is known of a job while it is carried out. It is false when nobody waits for the job any longer.
func (m *Member) told(ctx context.Context, task string, word flow.Command) bool {
	for try := 1; ; try++ {
		answered, err := m.tellOnce(ctx, task, word)
		if !answered {
			return false
		}
		switch flow.ErrorKindOf(err) {
		case flow.Busy, flow.Moved: // the task's actor crashed, or another member has it by now
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

// tellOnce tells a task, or the member that has it, of one of its jobs. It is answered unless nobody waits any more.
func (m *Member) tellOnce(ctx context.Context, task string, word flow.Command) (answered bool, err error) {
	if !m.owned.owns(task) {
		err := m.cfg.Others.Do(ctx, engine.Orders{{Task: task, Command: word}})[0].Err
		if !taken(err) {
			err = flow.Errorf(flow.Busy, "%v", err)
		}
		return ctx.Err() == nil, err
	}
	a, err := m.call(patiently(ctx), word, func(reply func(answer)) {
		m.tell(m.tasks, &command{task: task, cmd: word, reply: reply})
	})
	return err == nil, a.err
}

// carryWhole has a job carried out with its values as they are, and keeps the output.
func (m *Member) carryWhole(ctx context.Context, carrier Carrier, job flow.Job) flow.Report {
	job, err := m.whole(ctx, job)
	if err != nil {
		return notWhole(err)
	}
	return m.kept(job.Task, carryOut(ctx, carrier, job))
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

// reported is a report as the task takes it.
func reported(at flow.Address, r flow.Report) flow.Report {
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
