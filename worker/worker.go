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
	cfg      Config
	handlers map[string]Handler
	server   *server
	slots    chan struct{} // one for each handler at work
	asking   asking
	outage   atomic.Bool  // the last poll had no answer, which was said
	load     atomic.Int64 // jobs in progress
	pushed   sync.Map     // of pushed jobs that came together, by place: how to stop each
	claims   *claims
	reports  *reporter
	params   params
	jobs     sync.WaitGroup // pulled jobs in progress
}

// New returns a worker without handlers.
func New(cfg Config) *Worker {
	cfg = cfg.orDefault()
	w := &Worker{cfg: cfg, handlers: map[string]Handler{}, slots: make(chan struct{}, cfg.Concurrency)}
	w.server = newServer(cfg)
	w.claims = newClaims(w)
	w.reports = newReporter(w)
	return w
}

// Handle registers a function that carries out the jobs of a service. It is called before Run. Its input is that of the node, or, where that is
// null, the node's params; its output is the node's, and post.action_key says which field of it is the action, if one is (package job tells
// more). An input that does not fit is a fatal error of the step. JobFrom tells fn which job it has.
//
// It panics, as a mistake of the program, when the name is empty or was registered before, or when JSON cannot hold what fn takes or gives.
func Handle[In, Out any](w *Worker, service string, fn func(ctx context.Context, in In) (Out, error)) {
	h, err := job.Typed(service, fn)
	if err != nil {
		panic(fmt.Sprintf("worker: the function %q: %v", service, err))
	}
	w.Handle(service, h)
}

// Handle registers a handler that reads and writes JSON itself for the jobs of a service. It is called before Run.
//
// It panics, as a mistake of the program, when the service has a handler already.
func (w *Worker) Handle(service string, h Handler) {
	if _, known := w.handlers[service]; known {
		panic(fmt.Sprintf("worker: the function %q: there is a function of that name already", service))
	}
	w.handlers[service] = h
}

// Run works until ctx ends, and then for up to Grace on what it has begun. It returns nil when it was
// asked to end, whatever became of the last jobs, and ErrDenied when the engine does not take its token.
func (w *Worker) Run(ctx context.Context) error {
	services, err := w.services()
	if err != nil {
		return err
	}
	if err := named("label", w.cfg.Labels); err != nil {
		return err
	}
	for _, server := range w.cfg.servers() {
		if _, err := parseAddress("server", server); err != nil {
			return err
		}
	}
	if w.cfg.Attach {
		return w.runAttached(ctx, services)
	}
	if w.server.trustless != nil {
		return w.server.trustless
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
		if push, err = w.listen(); err != nil {
			return err
		}
		me.URL, me.Secret = push.url, w.cfg.Secret
	}
	var loops, signs, polls, keeper sync.WaitGroup
	if push != nil {
		loops.Go(func() { stop(push.serve(jobs)) })
	}
	signs.Go(func() { stop(w.announce(ctx, me)) })
	if w.cfg.Pull {
		keeper.Go(func() { w.claims.keep(jobs) })
		keeper.Go(func() { w.reports.keep(jobs, ctx, services) })
		for range w.pollLoops() {
			polls.Go(func() { stop(w.pollLoop(ctx, jobs, services)) })
		}
	}
	<-ctx.Done()
	signs.Wait()
	if !errors.Is(context.Cause(ctx), ErrDenied) { // else nobody would hear it
		w.sayGoodbye() // while it still answers, so that no job meets a closed door
	}
	polls.Wait() // so that all jobs have begun that ever will
	w.drain(push, abandon)
	loops.Wait()
	abandon()
	keeper.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errServing) || errors.Is(cause, ErrDenied) {
		return cause
	}
	return nil
}

// drain gives back what has not begun, lets the jobs in progress finish within Grace, then abandons them.
func (w *Worker) drain(push *pushServer, abandon context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), w.cfg.Grace)
	defer cancel()
	w.claims.giveBack(w.claims.dropWaiting())
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
	left := w.claims.all()
	abandon()
	if push != nil {
		push.close()
	}
	select { // handlers that heed their context come back at once
	case <-finished:
	case <-time.After(time.Second):
	}
	w.claims.giveBack(w.claims.ended(left))
}

// services it offers, sorted.
func (w *Worker) services() ([]string, error) {
	if len(w.cfg.Services) == 0 {
		if len(w.handlers) == 0 {
			return nil, errors.New("worker: there is no handler, so there is nothing to offer")
		}
		all := slices.Sorted(maps.Keys(w.handlers))
		return all, named("service", all)
	}
	for _, s := range w.cfg.Services {
		if w.handlers[s] == nil {
			return nil, fmt.Errorf("worker: service %q has no handler", s)
		}
	}
	all := slices.Sorted(slices.Values(w.cfg.Services))
	return all, named("service", all)
}

// named refuses names that no engine would take, and empty ones.
func named(what string, names []string) error {
	for _, name := range names {
		if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return fmt.Errorf("worker: %s %q: a name is UTF-8 text without the character U+0000, and not empty", what, name)
		}
	}
	return nil
}

// handler of a service that is offered.
func (w *Worker) handler(service string) Handler {
	if len(w.cfg.Services) > 0 && !slices.Contains(w.cfg.Services, service) {
		return nil
	}
	return w.handlers[service]
}

// takeSlot waits for a free slot. It is false when ctx ended first, for then the job is not to begin.
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

// sleep waits. It is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
