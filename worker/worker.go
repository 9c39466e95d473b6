package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/job"
)

// Worker carries out jobs. It is run once.
type Worker struct {
	cfg        Config
	handlers   map[string]Handler
	server     *engineClient
	slots      chan struct{} // one for each handler at work
	pollBudget pollBudget
	outage     atomic.Bool  // the last poll had no answer, which was said
	load       atomic.Int64 // jobs in progress
	pushed     sync.Map     // of pushed jobs that came together, by place: how to stop each
	claims     *claimKeeper
	reports    *resultReporter
	params     paramsCache
	jobs       sync.WaitGroup // pulled jobs in progress
}

// New returns a worker without handlers.
func New(cfg Config) *Worker {
	cfg = cfg.orDefault()
	w := &Worker{cfg: cfg, handlers: map[string]Handler{}, slots: make(chan struct{}, cfg.Concurrency)}
	w.server = newEngineClient(cfg)
	w.claims = newClaimKeeper(w)
	w.reports = newReporter(w)
	return w
}

// Handle registers a function that carries out the jobs of a service. It is called before Run. Its
// input is that of the node, or, where that is null, the node's params; its output is the node's,
// and post.action_key says which field of it is the action, if one is (package job tells more). An
// input that does not fit is a fatal error of the step. JobFrom tells fn which job it has.
//
// It panics, as a mistake of the program, when the name is empty or was registered before, or when
// JSON cannot hold what fn takes or gives.
func Handle[In, Out any](w *Worker, service string, fn func(ctx context.Context, in In) (Out, error)) {
	h, err := job.Typed(service, fn)
	if err != nil {
		panic(fmt.Sprintf("worker: the function %q: %v", service, err))
	}
	w.Handle(service, h)
}

// Handle registers a handler that reads and writes JSON itself for the jobs of a service. It is
// called before Run.
//
// It panics, as a mistake of the program, when the service has a handler already.
func (w *Worker) Handle(service string, h Handler) {
	if _, known := w.handlers[service]; known {
		panic(fmt.Sprintf("worker: the function %q: there is a function of that name already", service))
	}
	w.handlers[service] = h
}

// Run works until ctx ends, and then for up to Grace on what it has begun. It returns nil when it
// was asked to end, whatever became of the last jobs, and ErrDenied when the engine does not take
// its token.
func (w *Worker) Run(ctx context.Context) error {
	services, err := w.offeredServices()
	if err != nil {
		return err
	}
	if err := checkNames("label", w.cfg.Labels); err != nil {
		return err
	}
	for _, server := range w.cfg.serverAddresses() {
		if _, err := parseAddress("server", server); err != nil {
			return err
		}
	}
	if w.cfg.Attach {
		return w.runAttached(ctx, services)
	}
	if w.server.trustErr != nil {
		return w.server.trustErr
	}
	defer w.server.close()
	// Jobs outlive ctx, so they have a context of their own.
	jobs, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	me := wire.Registration{Services: services, Labels: w.cfg.Labels}
	var push *pushServer
	if w.cfg.Push {
		if push, err = w.openServer(); err != nil {
			return err
		}
		me.URL, me.Secret = push.url, w.cfg.Secret
	}
	var loops, signs, polls, keeper sync.WaitGroup
	if push != nil {
		loops.Go(func() { stop(push.serveJobs(jobs)) })
	}
	signs.Go(func() { stop(w.keepRegistered(ctx, me)) })
	if w.cfg.Pull {
		keeper.Go(func() { w.claims.runHeartbeats(jobs) })
		keeper.Go(func() { w.reports.runSenders(jobs, ctx, services) })
		for range w.pollLoops() {
			polls.Go(func() { stop(w.pollLoop(ctx, jobs, services)) })
		}
	}
	<-ctx.Done()
	signs.Wait()
	if !errors.Is(context.Cause(ctx), ErrDenied) { // else nobody would hear it
		w.deregister() // while it still answers, so that no job meets a closed door
	}
	polls.Wait() // so that all jobs have begun that ever will
	w.drainJobs(push, abandon)
	loops.Wait()
	abandon()
	keeper.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errServing) || errors.Is(cause, ErrDenied) {
		return cause
	}
	return nil
}

// drainJobs gives back what has not begun, lets the jobs in progress finish within Grace, then
// abandons them.
func (w *Worker) drainJobs(push *pushServer, abandon context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), w.cfg.Grace)
	defer cancel()
	w.claims.giveBack(w.claims.cancelWaiting())
	finished := make(chan struct{})
	go func() { // it outlives Run only with a handler that never returns
		defer close(finished)
		if push != nil {
			push.shutdown(ctx)
		}
		w.jobs.Wait()
	}()
	select {
	case <-finished:
		return
	case <-ctx.Done():
	}
	w.cfg.Logger.Warn("jobs are left unfinished; the engine will give them to others", "jobs", w.load.Load())
	left := w.claims.heldJobs()
	abandon()
	if push != nil {
		push.close()
	}
	select { // handlers that heed their context come back at once
	case <-finished:
	case <-time.After(time.Second):
	}
	w.claims.giveBack(w.claims.endedJobs(left))
}

// offeredServices it offers, sorted.
func (w *Worker) offeredServices() ([]string, error) {
	if len(w.cfg.Services) == 0 {
		if len(w.handlers) == 0 {
			return nil, errors.New("worker: there is no handler, so there is nothing to offer")
		}
		all := slices.Sorted(maps.Keys(w.handlers))
		return all, checkNames("service", all)
	}
	for _, s := range w.cfg.Services {
		if w.handlers[s] == nil {
			return nil, fmt.Errorf("worker: service %q has no handler", s)
		}
	}
	all := slices.Sorted(slices.Values(w.cfg.Services))
	return all, checkNames("service", all)
}

// checkNames refuses names that no engine would take, and empty ones.
func checkNames(what string, names []string) error {
	for _, name := range names {
		if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return fmt.Errorf("worker: %s %q: a name is UTF-8 text without the character U+0000, and not empty", what, name)
		}
	}
	return nil
}

// handlerFor of a service that is offered.
func (w *Worker) handlerFor(service string) Handler {
	if len(w.cfg.Services) > 0 && !slices.Contains(w.cfg.Services, service) {
		return nil
	}
	return w.handlers[service]
}

// takeSlot waits for a free slot. It is false when ctx ended first, for then the job is not to
// begin.
func (w *Worker) takeSlot(ctx context.Context) bool {
	select {
	case w.slots <- struct{}{}:
	default: // as it seldom is: a context's channel is made when it is asked for
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	if ctx.Err() != nil {
		w.freeSlot()
		return false
	}
	return true
}

// tryTakeSlot takes one if it is free.
func (w *Worker) tryTakeSlot() bool {
	select {
	case w.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *Worker) freeSlot() { <-w.slots }

// sleepContext waits. It is false when ctx ended first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
