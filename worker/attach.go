package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/job"
)

var errOver = errors.New("worker: the session that this job was of is over")

// attachedWorker is the state of an attached worker across all its streams.
type attachedWorker struct {
	worker   *Worker
	services []string
	flows    []string // names of the functions that are flows
	servers  []string
	jobs     context.Context // context of the handlers
	dialer   *streamDialer   // opens streams to members
	wake     chan struct{}

	connected atomic.Bool // a stream is open

	mu         sync.Mutex
	runners    jobRunners
	session    string        // "" if there is no session to resume
	grace      time.Duration // time the engine waits for a reattach after the stream breaks
	maxMessage int           // maximum bytes of a message
	held       map[uint64]*attachedJob
	tickets    map[uint64]jobTicket      // tickets of held and finished jobs
	finished   map[uint64]*attach.Result // results that the engine has not acknowledged
	unsent     []*attach.Result          // results not sent on the current stream
	progress   []*attach.Progress        // progress not sent; precedes the results
	records    []*attach.FunctionRecord  // function records not sent on the current stream
	leaving    bool                      // the worker is leaving
	idle       chan struct{}             // closed when the worker is leaving and has nothing left
}

// jobTicket lets a worker move a job to another member.
type jobTicket struct {
	id    string
	proof []byte
}

// attachedJob is a job that this worker holds.
type attachedJob struct {
	*attach.Job
	ctx          context.Context // context of the handler
	cancel       context.CancelCauseFunc
	begun        time.Time // zero while the job waits for a slot
	noted        bool
	progressText string // progress text of the handler, not sent yet
	log          lines.Buffer
	function     *functionJob // nil unless the job is a function that is a flow
}

// runAttached runs the worker until ctx ends. Jobs that have begun may then take up to Grace.
func (w *Worker) runAttached(ctx context.Context, services []string) error {
	if w.cfg.Push || w.cfg.Pull {
		return errors.New("worker: Attach goes without Push and Pull: run another worker beside this one")
	}
	to, err := newStreamDialer(&w.cfg)
	if err != nil {
		return err
	}
	defer w.server.close()
	jobs, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	streams, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	flows := slices.Sorted(maps.Keys(w.definitions))
	a := &attachedWorker{worker: w, services: services, flows: flows, servers: w.cfg.serverAddresses(), jobs: jobs, dialer: to,
		wake: make(chan struct{}, 1), held: map[uint64]*attachedJob{},
		tickets: map[uint64]jobTicket{}, finished: map[uint64]*attach.Result{}, idle: make(chan struct{})}
	a.runners.hasWork.L = &a.mu
	defer a.stopRunners()
	defer w.flows.DropWaiting()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	detached := make(chan struct{})
	go func() { // ends before this function
		defer close(detached)
		err := w.publishFlows(ctx, flows)
		if err == nil {
			err = a.keepAttached(streams)
		}
		stop(err)
	}()
	<-ctx.Done()
	a.startLeaving()
	if !waitFor(a.idle, w.cfg.Grace) {
		w.cfg.Logger.Warn("stopping with unfinished jobs; they go to other workers", "jobs", w.load.Load())
		abandon()
		waitFor(a.idle, partingTime) // handlers that respect their context return at once
	}
	if a.connected.Load() {
		waitFor(detached, partingTime) // until the member knows that the worker leaves
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

// keepAttached keeps the worker attached to one of its servers until ctx ends, the worker has left,
// or the engine denies the worker. If the stream breaks while the worker has jobs, the worker
// connects to the next server at once. Its jobs are reserved for it only for a limited time.
func (a *attachedWorker) keepAttached(ctx context.Context) error {
	var pause backoff
	for server := 0; ctx.Err() == nil && !a.hasLeft(); {
		address := a.servers[server%len(a.servers)]
		member := &streamMember{address: address}
		err := a.runStream(ctx, member, a.welcomeTimeout())
		if ctx.Err() != nil || a.hasLeft() {
			return nil
		}
		switch connect.CodeOf(err) {
		case connect.CodeUnauthenticated:
			return a.worker.server.deniedError(&statusError{status: http.StatusUnauthorized})
		case connect.CodePermissionDenied:
			return fmt.Errorf("%w: %w", ErrDenied, err)
		}
		stayed := member.hasLasted()
		switch {
		case stayed:
			pause = backoff{}
		// the member is reachable, so reconnect soon, before other workers get this worker's jobs
		case member.isWelcomed():
			pause.next = min(pause.next, minStreamTime/2)
		}
		if pause.next == 0 && !member.leaving {
			a.worker.cfg.Logger.Warn("attaching failed, retrying", "server", address, "error", err)
		}
		goesOn := a.canMoveJobs()
		if member.leaving || !member.isWelcomed() || goesOn {
			server++
		}
		if !goesOn || !stayed {
			pause.waitNext(ctx, err)
		}
	}
	return nil
}

// minStreamTime is the time since the welcome after which a stream counts as stable. When a stable
// stream breaks, the next server is tried without a pause, and the backoff is reset.
const minStreamTime = time.Second

// canMoveJobs reports whether the worker has jobs that it may bring to another server.
func (a *attachedWorker) canMoveJobs() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.servers) > 1 && len(a.tickets) > 0
}

// welcomeTimeout returns how long to wait for a member's welcome. The wait is shorter if the worker
// has jobs to move, because other workers get them after a time.
func (a *attachedWorker) welcomeTimeout() time.Duration {
	if !a.canMoveJobs() {
		return welcomeTime
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return min(max(a.grace/4, minPatience), welcomeTime)
}

// startLeaving stops new deliveries and returns the jobs that have not begun.
func (a *attachedWorker) startLeaving() {
	a.mu.Lock()
	a.leaving = true
	for n, j := range a.held {
		if j.begun.IsZero() {
			j.cancel(errLeaving)
			a.finishJob(n, &attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_RETURNED})
		}
	}
	a.closeIfDone()
	a.mu.Unlock()
	a.wakeWriter()
}

// isLeaving reports whether the worker is leaving.
func (a *attachedWorker) isLeaving() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaving
}

// closeIfDone closes idle when a leaving worker has nothing left to do.
func (a *attachedWorker) closeIfDone() {
	if a.leaving && len(a.held) == 0 && len(a.finished) == 0 && !isClosed(a.idle) {
		close(a.idle)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *attachedWorker) hasLeft() bool { return isClosed(a.idle) }

// wakeWriter makes the writer of the stream check for messages.
func (a *attachedWorker) wakeWriter() {
	select {
	case a.wake <- struct{}{}:
	default: // the writer is about to check anyway
	}
}

// takeJobs starts jobs. It returns the jobs that arrive while the worker is leaving.
func (a *attachedWorker) takeJobs(jobs []*attach.Job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, job := range jobs {
		if a.held[job.GetNumber()] != nil {
			continue
		}
		j := &attachedJob{Job: job}
		if f := job.GetFunction(); f != nil {
			j.function = newFunctionJob(f)
		}
		j.ctx, j.cancel = context.WithCancelCause(a.jobs)
		a.held[job.GetNumber()] = j
		if len(job.GetTicket()) > 0 {
			a.tickets[job.GetNumber()] = jobTicket{job.GetId(), job.GetTicket()}
		}
		if a.leaving {
			j.cancel(errLeaving)
			a.finishJob(job.GetNumber(), &attach.Result{Number: job.GetNumber(), Outcome: attach.Outcome_OUTCOME_RETURNED})
			continue
		}
		a.worker.load.Add(1)
		a.runners.jobs = append(a.runners.jobs, j)
	}
	a.wakeRunner()
}

// startJob marks a job as begun before its handler is called. It returns false if the job was
// canceled or returned, so the handler must not be called.
func (a *attachedWorker) startJob(j *attachedJob) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[j.GetNumber()] != j || j.ctx.Err() != nil {
		return false
	}
	j.begun = time.Now()
	return true
}

func (a *attachedWorker) carryOut(j *attachedJob) {
	result := &attach.Result{Number: j.GetNumber(), Outcome: attach.Outcome_OUTCOME_CANCELED}
	if a.worker.takeSlot(j.ctx) {
		switch {
		case !a.startJob(j):
		case j.function != nil:
			a.carryFunction(j, result)
		default:
			a.callHandler(j, result)
		}
		a.worker.freeSlot()
	}
	// the job was abandoned at the end of Grace, so it must not be reported as failed
	if a.jobs.Err() != nil {
		result = &attach.Result{Number: j.GetNumber(), Outcome: attach.Outcome_OUTCOME_RETURNED}
	}
	a.mu.Lock()
	if a.held[j.GetNumber()] == j {
		a.finishJob(j.GetNumber(), result)
	}
	a.mu.Unlock()
	a.wakeWriter()
}

// callHandler calls the handler of a job.
func (a *attachedWorker) callHandler(j *attachedJob, result *attach.Result) {
	h := a.worker.handlerFor(j.GetService())
	if h == nil {
		h = func(context.Context, Job) (any, error) { return nil, errors.New("unknown service: " + j.GetService()) }
	}
	answer := a.worker.callHandler(j.ctx, h, j.handlerJob(), "", func(_ context.Context, _ Job, text string) { a.setProgress(j, text) })
	result.Metrics = answer.Metrics
	switch {
	case j.ctx.Err() != nil:
	case answer.Error != "":
		result.Outcome, result.Error, result.Details, result.Fatal = attach.Outcome_OUTCOME_FAILED,
			answer.Error, answer.Details, answer.Fatal
	default:
		result.Outcome, result.Output = attach.Outcome_OUTCOME_COMPLETED, answer.Result
	}
	a.limitResult(result)
}

// handlerJob returns the job for its handler.
func (j *attachedJob) handlerJob() Job {
	return job.WithKey(j.GetKey(), Job{ID: j.GetId(), Service: j.GetService(),
		Input: orJSON(j.GetInput(), "null"), Params: orJSON(j.GetParams(), "{}"), Task: j.GetTask(),
		Flow: j.GetFlow(),
		Step: j.GetStep(), Unit: int(j.GetUnit()), Units: max(int(j.GetUnits()), 1),
		Attempt: int(j.GetAttempt()), Labels: j.GetLabels(), Trace: j.GetTrace(), Log: &j.log})
}

func orJSON(raw []byte, empty string) []byte {
	if len(raw) == 0 {
		return []byte(empty)
	}
	return raw
}

// messageOverhead is the part of a message's maximum size that is reserved for everything but the
// result.
const messageOverhead = 4 << 10

// limitResult replaces a result that is too large to send with an error.
func (a *attachedWorker) limitResult(r *attach.Result) {
	a.mu.Lock()
	most := a.maxMessage
	a.mu.Unlock()
	if size := resultBytes(r); most > 0 && size > most-messageOverhead {
		*r = attach.Result{Number: r.GetNumber(), Outcome: attach.Outcome_OUTCOME_FAILED, Fatal: true,
			Error: fmt.Sprintf("the result was rejected: it has %d bytes, more than the engine takes", size)}
	}
}

// resultBytes returns the approximate size of a result.
func resultBytes(r *attach.Result) int {
	return len(r.GetOutput()) + len(r.GetError()) + len(r.GetDetails()) + len(r.GetMetrics()) + waitsBytes(r.GetGivenUp().GetWaits())
}

// finishJob keeps a result until the engine acknowledges it. The lock is held.
func (a *attachedWorker) finishJob(number uint64, r *attach.Result) {
	j := a.held[number]
	j.log.Close()
	for j.log.Waits() {
		a.addProgress(&attach.Progress{Number: number, Lines: j.takePrinted()})
	}
	delete(a.held, number)
	a.finished[number] = r
	a.unsent = append(a.unsent, r)
}

// cancelJobs cancels jobs whose results are no longer needed.
func (a *attachedWorker) cancelJobs(numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range numbers {
		if j := a.held[n]; j != nil {
			j.cancel(errCanceled)
		}
	}
}

// forgetResults drops results that the engine has acknowledged.
func (a *attachedWorker) forgetResults(numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range numbers {
		delete(a.finished, n)
		delete(a.tickets, n)
	}
	a.closeIfDone()
}
