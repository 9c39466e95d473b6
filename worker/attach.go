package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/job"
)

var errOver = errors.New("worker: the session that this job was of is over")

// attachment is a worker that is attached, over all streams of its life.
type attachment struct {
	worker   *Worker
	services []string
	servers  []string
	jobs     context.Context // of the handlers
	line     *line           // to the members
	wake     chan struct{}

	connected atomic.Bool // there is a stream

	mu       sync.Mutex
	hands    hands
	session  string        // "" = there is none to go on with
	grace    time.Duration // for which it waits when the stream breaks
	most     int           // bytes of a message
	held     map[uint64]*attached
	tickets  map[uint64]ticket         // of what is held or finished
	finished map[uint64]*attach.Result // that are not acknowledged
	unsent   []*attach.Result          // of those, on the present stream
	progress []*attach.Progress        // that is not sent; it goes before the results
	leaving  bool                      // this worker ends
	idle     chan struct{}             // closed when it is leaving and nothing is left
}

// ticket is with what a worker comes to another member with a job.
type ticket struct {
	id    string
	proof []byte
}

// attached is a job in this worker's hands.
type attached struct {
	*attach.Job
	ctx    context.Context // of the handler
	cancel context.CancelCauseFunc
	begun  time.Time // zero = it waits for a slot
	noted  bool
	said   string // what the handler says of how far it is, and has yet to be told
	log    lines.Buffer
}

// runAttached works until ctx ends, and then for up to Grace on what it has begun.
func (w *Worker) runAttached(ctx context.Context, services []string) error {
	if w.cfg.Push || w.cfg.Pull {
		return errors.New("worker: Attach goes without Push and Pull: run another worker beside this one")
	}
	to, err := newLine(&w.cfg)
	if err != nil {
		return err
	}
	jobs, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	streams, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	a := &attachment{worker: w, services: services, servers: w.cfg.servers(), jobs: jobs, line: to,
		wake: make(chan struct{}, 1), held: map[uint64]*attached{}, tickets: map[uint64]ticket{}, finished: map[uint64]*attach.Result{}, idle: make(chan struct{})}
	a.hands.turn.L = &a.mu
	defer a.dismiss()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	detached := make(chan struct{})
	go func() { // ends before this function does
		defer close(detached)
		stop(a.stay(streams))
	}()
	<-ctx.Done()
	a.leave()
	if !waitFor(a.idle, w.cfg.Grace) {
		w.cfg.Logger.Warn("jobs are left unfinished; the engine will give them to others", "jobs", w.load.Load())
		abandon()
		waitFor(a.idle, partingTime) // handlers that heed their context come back at once
	}
	if a.connected.Load() {
		waitFor(detached, partingTime) // it says goodbye
	}
	hangUp()
	<-detached
	if cause := context.Cause(ctx); errors.Is(cause, ErrDenied) {
		return cause
	}
	return nil
}

func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// stay keeps the worker attached to one of its servers until ctx ends, it has left, or the engine denies it. One with jobs goes to the next server at once when
// the stream breaks: what it holds stays its own for a while only, wherever it comes with that.
func (a *attachment) stay(ctx context.Context) error {
	var pause backoff
	for server := 0; ctx.Err() == nil && !a.gone(); {
		address := a.servers[server%len(a.servers)]
		member := &member{address: address}
		err := a.attach(ctx, member, a.patience())
		if ctx.Err() != nil || a.gone() {
			return nil
		}
		switch connect.CodeOf(err) {
		case connect.CodeUnauthenticated:
			return a.worker.server.denied(&statusError{status: http.StatusUnauthorized})
		case connect.CodePermissionDenied:
			return fmt.Errorf("%w: %w", ErrDenied, err)
		}
		stayed := member.stayed()
		switch {
		case stayed:
			pause = backoff{}
		case member.welcomed(): // it is there, and others get the jobs of who stays away for long
			pause.next = min(pause.next, minStay/2)
		}
		if pause.next == 0 && !member.leaves {
			a.worker.cfg.Logger.Warn("the worker is not attached; trying on", "server", address, "error", err)
		}
		goesOn := a.brings()
		if member.leaves || !member.welcomed() || goesOn {
			server++
		}
		if !goesOn || !stayed {
			pause.wait(ctx, err)
		}
	}
	return nil
}

// minStay is how long a stream has to have lasted since the welcome for the worker to go on elsewhere without a pause, and to try on as after the first outage.
const minStay = time.Second

// brings says whether the worker has jobs with which it may go to another server.
func (a *attachment) brings() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.servers) > 1 && len(a.tickets) > 0
}

// patience is how long a member may take to answer. Where a worker waits too long with jobs that it brings, others get them.
func (a *attachment) patience() time.Duration {
	if !a.brings() {
		return welcomeTime
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return min(max(a.grace/4, minPatience), welcomeTime)
}

// leave has the engine give nothing more, and gives back what has not begun.
func (a *attachment) leave() {
	a.mu.Lock()
	a.leaving = true
	for n, j := range a.held {
		if j.begun.IsZero() {
			j.cancel(errLeaving)
			a.finish(n, &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_RETURNED})
		}
	}
	a.settle()
	a.mu.Unlock()
	a.call()
}

// leaves says whether this worker ends.
func (a *attachment) leaves() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaving
}

// settle notes that nothing is left to do for a worker that leaves.
func (a *attachment) settle() {
	if a.leaving && len(a.held) == 0 && len(a.finished) == 0 && !closed(a.idle) {
		close(a.idle)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *attachment) gone() bool { return closed(a.idle) }

// call has the writer of the stream look.
func (a *attachment) call() {
	select {
	case a.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// take begins jobs, and gives back those that crossed with the word that this worker leaves.
func (a *attachment) take(jobs []*attach.Job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, job := range jobs {
		if a.held[job.GetNumber()] != nil {
			continue
		}
		j := &attached{Job: job}
		j.ctx, j.cancel = context.WithCancelCause(a.jobs)
		a.held[job.GetNumber()] = j
		if len(job.GetTicket()) > 0 {
			a.tickets[job.GetNumber()] = ticket{job.GetId(), job.GetTicket()}
		}
		if a.leaving {
			j.cancel(errLeaving)
			a.finish(job.GetNumber(), &attach.Result{Number: job.GetNumber(), Outcome: attach.Outcome_OUTCOME_RETURNED})
			continue
		}
		a.worker.load.Add(1)
		a.hands.jobs = append(a.hands.jobs, j)
	}
	a.rouse()
}

// begin is asked before a job's handler is called: not for one that is canceled or given back.
func (a *attachment) begin(j *attached) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[j.GetNumber()] != j || j.ctx.Err() != nil {
		return false
	}
	j.begun = time.Now()
	return true
}

func (a *attachment) carryOut(j *attached) {
	result := &attach.Result{Number: j.GetNumber(), Outcome: attach.Outcome_OUTCOME_CANCELED}
	if a.worker.takeSlot(j.ctx) {
		if a.begin(j) {
			a.handle(j, result)
		}
		a.worker.freeSlot()
	}
	if a.jobs.Err() != nil { // it is given up at the end of the grace, and is not ours to fail
		result = &attach.Result{Number: j.GetNumber(), Outcome: attach.Outcome_OUTCOME_RETURNED}
	}
	a.mu.Lock()
	if a.held[j.GetNumber()] == j {
		a.finish(j.GetNumber(), result)
	}
	a.mu.Unlock()
	a.call()
}

// handle calls the handler of a job.
func (a *attachment) handle(j *attached, result *attach.Result) {
	h := a.worker.handler(j.GetService())
	if h == nil {
		h = func(context.Context, Job) (any, error) { return nil, errors.New("unknown service: " + j.GetService()) }
	}
	answer := a.worker.call(j.ctx, h, j.job(), func(_ context.Context, _ Job, text string) { a.tell(j, text) })
	result.Metrics = answer.Metrics
	switch {
	case j.ctx.Err() != nil:
	case answer.Error != "":
		result.Outcome, result.Error, result.Details, result.Fatal = attach.Outcome_OUTCOME_FAILED, answer.Error, answer.Details, answer.Fatal
	default:
		result.Outcome, result.Output = attach.Outcome_OUTCOME_COMPLETED, answer.Result
	}
	a.fit(result)
}

// job is what its handler is told.
func (j *attached) job() Job {
	return job.WithKey(j.GetKey(), Job{ID: j.GetId(), Service: j.GetService(), Input: orJSON(j.GetInput(), "null"), Params: orJSON(j.GetParams(), "{}"), Task: j.GetTask(), Flow: j.GetFlow(),
		Step: j.GetStep(), Unit: int(j.GetUnit()), Units: max(int(j.GetUnits()), 1), Attempt: int(j.GetAttempt()), Trace: j.GetTrace(), Log: &j.log})
}

func orJSON(raw []byte, empty string) []byte {
	if len(raw) == 0 {
		return []byte(empty)
	}
	return raw
}

// around is what a message takes beside a result.
const around = 4 << 10

// fit makes an error of a result that is too large to be sent.
func (a *attachment) fit(r *attach.Result) {
	a.mu.Lock()
	most := a.most
	a.mu.Unlock()
	if size := resultBytes(r); most > 0 && size > most-around {
		*r = attach.Result{Number: r.GetNumber(), Outcome: attach.Outcome_OUTCOME_FAILED, Fatal: true,
			Error: fmt.Sprintf("the result was refused: it has %d bytes, more than the engine takes", size)}
	}
}

// resultBytes is about how many bytes a result has.
func resultBytes(r *attach.Result) int {
	return len(r.GetOutput()) + len(r.GetError()) + len(r.GetDetails()) + len(r.GetMetrics())
}

// finish keeps a result until the engine has it. The lock is held.
func (a *attachment) finish(number uint64, r *attach.Result) {
	j := a.held[number]
	j.log.Close()
	for j.log.Waits() {
		a.say(&attach.Progress{Number: number, Lines: j.takePrinted()})
	}
	delete(a.held, number)
	a.finished[number] = r
	a.unsent = append(a.unsent, r)
}

// cancel ends jobs that nobody waits for any longer.
func (a *attachment) cancel(numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range numbers {
		if j := a.held[n]; j != nil {
			j.cancel(errCanceled)
		}
	}
}

// forget results that the engine has.
func (a *attachment) forget(numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range numbers {
		delete(a.finished, n)
		delete(a.tickets, n)
	}
	a.settle()
}
