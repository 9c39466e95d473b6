package worker

import (
	"context"
	"encoding/json"
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
	"github.com/troupe-engine/troupe/internal/flowfuncs"
	"github.com/troupe-engine/troupe/job"
)

// Worker carries out jobs. A Worker can run only once.
type Worker struct {
	cfg        Config
	handlers   map[string]Handler
	server     *engineClient
	slots      chan struct{} // one for each running handler
	pollBudget pollBudget
	outage     atomic.Bool  // the last poll got no answer, and this was logged
	load       atomic.Int64 // number of jobs in progress
	pushed     sync.Map     // cancel functions of jobs pushed in batches, by position
	claims     *claimKeeper
	reports    *resultReporter
	params     paramsCache
	flows      *flowfuncs.Functions
	// definitions holds the definitions of the functions that are flows, by name.
	definitions map[string]json.RawMessage
	jobs        sync.WaitGroup // pulled jobs in progress
}

// New returns a worker without handlers.
func New(cfg Config) *Worker {
	cfg = cfg.orDefault()
	w := &Worker{cfg: cfg, handlers: map[string]Handler{}, definitions: map[string]json.RawMessage{},
		flows: flowfuncs.New(cfg.KeepWarm), slots: make(chan struct{}, cfg.Concurrency)}
	w.server = newEngineClient(cfg)
	w.claims = newClaimKeeper(w)
	w.reports = newReporter(w)
	return w
}

// Handle registers a function for the jobs of a service. Call it before Run. The function's input
// is the node's input or, if that is null, the node's params. The function's output is the node's
// output; post.action_key may name the field with the action (see package job). An input that does
// not fit is a fatal error of the step. JobFrom returns the job to fn.
//
// It panics, as a mistake of the program, if the name is empty or was registered before, or if JSON
// cannot represent the input or output of fn.
func Handle[In, Out any](w *Worker, service string, fn func(ctx context.Context, in In) (Out, error)) {
	h, err := job.Typed(service, fn)
	if err != nil {
		panic(fmt.Sprintf("worker: the function %q: %v", service, err))
	}
	w.Handle(service, h)
}

// Handle registers a handler that reads and writes JSON itself for the jobs of a service. Call it
// before Run.
//
// It panics, as a mistake of the program, if the service has a handler already.
func (w *Worker) Handle(service string, h Handler) {
	if _, known := w.handlers[service]; known {
		panic(fmt.Sprintf("worker: the function %q: there is a function of that name already", service))
	}
	w.handlers[service] = h
}

// Run runs the worker until ctx ends. Jobs that have begun may then take up to Grace. It returns
// nil after ctx has ended, whatever the results of the last jobs, and ErrDenied if the engine
// rejects the worker's token.
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
	if len(w.definitions) > 0 {
		return errors.New("worker: functions that are flows need a worker that attaches: set Attach")
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

	me := wire.WorkerRegistration{Services: services, Labels: w.cfg.Labels}
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
	if !errors.Is(context.Cause(ctx), ErrDenied) { // a denied worker cannot deregister
		w.deregister() // while the server still answers, so that no job is sent to a closed port
	}
	polls.Wait() // no more jobs begin after this
	w.drainJobs(push, abandon)
	loops.Wait()
	abandon()
	keeper.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errServing) || errors.Is(cause, ErrDenied) {
		return cause
	}
	return nil
}

// drainJobs returns the jobs that have not begun. Jobs in progress may finish within Grace; then
// they are abandoned.
func (w *Worker) drainJobs(push *pushServer, abandon context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), w.cfg.Grace)
	defer cancel()
	w.claims.giveBack(w.claims.cancelWaiting())
	finished := make(chan struct{})
	go func() { // outlives Run only if a handler never returns
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
	w.cfg.Logger.Warn("stopping with unfinished jobs; they go to other workers", "jobs", w.load.Load())
	left := w.claims.heldJobs()
	abandon()
	if push != nil {
		push.close()
	}
	select { // handlers that respect their context return at once
	case <-finished:
	case <-time.After(time.Second):
	}
	w.claims.giveBack(w.claims.endedJobs(left))
}

// offeredServices returns the services to offer, sorted.
func (w *Worker) offeredServices() ([]string, error) {
	if len(w.cfg.Services) == 0 {
		if len(w.handlers) == 0 && len(w.definitions) > 0 {
			return nil, nil
		}
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

// checkNames returns an error for empty names and for names that no engine accepts.
func checkNames(what string, names []string) error {
	for _, name := range names {
		if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return fmt.Errorf("worker: %s %q: a name is UTF-8 text without the character U+0000, and not empty", what, name)
		}
	}
	return nil
}

// handlerFor returns the handler of an offered service, or nil.
func (w *Worker) handlerFor(service string) Handler {
	if len(w.cfg.Services) > 0 && !slices.Contains(w.cfg.Services, service) {
		return nil
	}
	return w.handlers[service]
}

// takeSlot waits for a free slot. It returns false if ctx ended first; the job must not begin then.
func (w *Worker) takeSlot(ctx context.Context) bool {
	select {
	case w.slots <- struct{}{}:
	default: // tried first without ctx, because ctx.Done allocates a channel
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

// tryTakeSlot takes a slot if one is free.
func (w *Worker) tryTakeSlot() bool {
	select {
	case w.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *Worker) freeSlot() { <-w.slots }

// sleepContext sleeps for d. It returns false if ctx ended first.
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
