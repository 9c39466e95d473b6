package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/job"
)

// emptyPause spaces the polls of an engine that answers at once although it was asked to wait.
const emptyPause = 200 * time.Millisecond

// A job that begins while a poll waits for it is claimed as it begins, and one that nobody waits
// for by a commit of its own. So a worker with many slots has two polls under way: while one of
// them is answered the other one waits.
const manySlots = 8

func (w *Worker) pollLoops() int {
	if cap(w.slots) < manySlots {
		return 1
	}
	return 2
}

// pollBudget is how many jobs the polls under way may bring beside the first of each, which has its
// slot.
type pollBudget struct {
	mu   sync.Mutex
	jobs int
}

// reserveJobs is how many jobs a poll asks for that has a slot for the first: there are free slots
// for the others, which no other poll asks for. No poll asks for more than its part of all slots,
// so that there is something left to ask for.
func (w *Worker) reserveJobs() (n int) {
	w.pollBudget.mu.Lock()
	defer w.pollBudget.mu.Unlock()
	free := max(0, cap(w.slots)-len(w.slots)-w.pollBudget.jobs)
	n = min(1+min(free, (cap(w.slots)-1)/w.pollLoops()), maxJobs)
	w.pollBudget.jobs += n - 1
	return n
}

func (w *Worker) releaseJobs(n int) {
	w.pollBudget.mu.Lock()
	defer w.pollBudget.mu.Unlock()
	w.pollBudget.jobs -= n - 1
}

// pollLoop asks for as many jobs as there are free slots until ctx ends, or the engine denies the
// worker. Jobs have a context of their own, which outlives ctx.
func (w *Worker) pollLoop(ctx, jobs context.Context, services []string) error {
	var pause backoff
	for w.takeSlot(ctx) { // for the first job
		begun, n := time.Now(), w.reserveJobs()
		got, err := w.pollJobs(ctx, services, n)
		for i, q := range got {
			w.startPulled(jobs, q, i == 0 || w.tryTakeSlot())
		}
		w.releaseJobs(n)
		if len(got) == 0 {
			w.freeSlot()
		}
		denied := w.server.deniedError(err)
		switch {
		case ctx.Err() != nil:
			return nil
		case denied != nil:
			return denied
		case err != nil:
			if !w.outage.Swap(true) {
				w.cfg.Logger.Warn("the engine gives no jobs; trying on", "error", err)
			}
			pause.waitNext(ctx, err)
			continue
		case len(got) == 0 && time.Since(begun) < min(emptyPause, w.cfg.Wait):
			sleepContext(ctx, emptyPause)
		}
		pause = backoff{}
		w.outage.Store(false)
	}
	return nil
}

// pulledJob is a job as a poll's answer told it.
type pulledJob struct {
	Job
	token     string
	paramsKey string // names params that did not come along
	lease     time.Duration
}

// pollJobs asks for up to n jobs.
func (w *Worker) pollJobs(ctx context.Context, services []string, n int) ([]pulledJob, error) {
	ask := wire.Poll{Wanted: w.wantedJobs(services, n), WaitMS: min(w.cfg.Wait, longestWait).Milliseconds()}
	var answer wire.ClaimedJobs
	if err := w.server.postJSON(ctx, w.workerPath("/poll"), ask, &answer, w.cfg.Wait+requestTime); err != nil {
		return nil, err
	}
	return pulledOf(answer.Jobs), nil
}

// wantedJobs are up to n jobs.
func (w *Worker) wantedJobs(services []string, n int) wire.Wanted {
	return wire.Wanted{Services: services, Labels: w.cfg.Labels, Max: n}
}

func pulledOf(claimed []wire.ClaimedJob) []pulledJob {
	jobs := make([]pulledJob, len(claimed))
	for i, j := range claimed {
		jobs[i] = pulledJob{token: j.Token, paramsKey: j.ParamsKey, lease: toLease(j.LeaseMS),
			Job: job.WithKey(j.Key, Job{ID: j.ID, Service: j.Service, Input: j.Input, Params: j.Params, Task: j.Task, Flow: j.Flow, Step: j.Step, Trace: j.Trace,
				Unit: j.Unit, Units: max(j.Units, 1), Attempt: j.Attempt})}
	}
	return jobs
}

// What an engine takes.
const (
	maxJobs     = 1000
	longestWait = time.Minute
)

func toLease(ms int64) time.Duration {
	if ms <= 0 {
		return defaultLease
	}
	return time.Duration(min(ms, longestClaim.Milliseconds())) * time.Millisecond
}

// startPulled carries out a claimed job beside the others, in a slot that is held for it or the
// next free one.
func (w *Worker) startPulled(ctx context.Context, q pulledJob, hasSlot bool) {
	w.load.Add(1)
	c := w.claims.addJob(ctx, q)
	w.jobs.Go(func() {
		defer w.load.Add(-1)
		defer w.claims.removeJob(c)
		if !hasSlot && !w.takeSlot(c.ctx) {
			return
		}
		passed := false
		defer func() {
			if !passed {
				w.freeSlot()
			}
		}()
		if w.claims.startJob(c) {
			passed = w.carryOut(ctx, c)
		}
	})
}

// carryOut reports whether the job's slot has passed to another one.
func (w *Worker) carryOut(ctx context.Context, c *claimedJob) (passed bool) {
	told := c.Job
	told.Log = &c.printed
	h := w.handlerFor(c.Service)
	if h == nil {
		h = func(context.Context, Job) (any, error) { return nil, errors.New("unknown service: " + c.Service) }
	}
	if !w.fetchParams(c.ctx, c, &told) {
		return false // nobody waits for it any longer, or it is given up
	}
	answer := w.callHandler(c.ctx, h, told, func(_ context.Context, _ Job, text string) { w.claims.setProgress(c, text) })
	if c.ctx.Err() != nil {
		// It was canceled, or it is given up at the end of the grace: then it is not ours to fail.
		return false
	}
	return w.deliverResult(ctx, wire.Report{Job: c.ID, Token: c.token, Output: answer.Result, Error: answer.Error, Details: answer.Details, Fatal: answer.Fatal, Numbers: wire.Numbers{Metrics: answer.Metrics}, Said: c.printed.closeAndTake()})
}

// deliverResult delivers a result until the engine has answered or ctx ends. It says whether the
// job's slot has passed to another one.
func (w *Worker) deliverResult(ctx context.Context, done wire.Report) (passed bool) {
	var pause backoff
	for {
		passed, err := w.reports.deliverReport(ctx, done)
		switch {
		case err == nil:
			return passed
		case isPermanent(err) && done.Error == "" && isResultRefused(err):
			// Unless told so, the engine would have the same done again in vain.
			done.Output, done.Error, done.Details, done.Fatal, done.Said = nil, "the result was refused: "+err.Error(), nil, true, wire.Said{}
			continue
		case isPermanent(err) && isFromEngine(err):
			w.cfg.Logger.Warn("a result was refused", "job", done.Job, "error", err)
			return passed
		}
		if pause.next == 0 {
			w.cfg.Logger.Warn("a result is not delivered yet; trying on", "job", done.Job, "error", err)
		}
		if !pause.waitNext(ctx, err) {
			return false
		}
	}
}
