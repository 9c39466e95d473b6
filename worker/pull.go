package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/job"
)

// emptyPause is the pause between polls if the engine answers at once without jobs, although it was
// asked to wait.
const emptyPause = 200 * time.Millisecond

// manySlots is the number of slots from which a worker runs two polls at once. One poll waits while
// the other is answered. A job that begins while a poll waits is claimed in the same commit;
// otherwise the claim needs a separate commit.
const manySlots = 8

func (w *Worker) pollLoops() int {
	if cap(w.slots) < manySlots {
		return 1
	}
	return 2
}

// pollBudget counts the jobs that the polls in progress may return in addition to the first job of
// each. Each first job already has a slot.
type pollBudget struct {
	mu   sync.Mutex
	jobs int
}

// reserveJobs returns how many jobs a poll may request. The poll already has a slot for the first
// job. For the others there are free slots that no other poll has reserved. A poll requests at most
// its share of all slots, so that other polls can request some, too.
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

// pollLoop requests as many jobs as there are free slots until ctx ends, or the engine denies the
// worker. jobs is the context of the jobs, which outlives ctx.
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
				w.cfg.Logger.Warn("fetching jobs failed, retrying", "error", err)
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

// pulledJob is a job from the answer to a poll.
type pulledJob struct {
	Job
	token     string
	paramsKey string // key of params that were not sent with the job
	lease     time.Duration
}

// pollJobs requests up to n jobs.
func (w *Worker) pollJobs(ctx context.Context, services []string, n int) ([]pulledJob, error) {
	ask := wire.PollRequest{JobRequest: w.wantedJobs(services, n), WaitMS: min(w.cfg.Wait, longestWait).Milliseconds()}
	var answer wire.ClaimedJobs
	if err := w.server.postJSON(ctx, w.workerPath("/poll"), ask, &answer, w.cfg.Wait+requestTime); err != nil {
		return nil, err
	}
	return pulledOf(answer.Jobs), nil
}

// wantedJobs returns a request for up to n jobs.
func (w *Worker) wantedJobs(services []string, n int) wire.JobRequest {
	return wire.JobRequest{Services: services, Labels: w.cfg.Labels, Max: n}
}

func pulledOf(claimed []wire.ClaimedJob) []pulledJob {
	jobs := make([]pulledJob, len(claimed))
	for i, j := range claimed {
		jobs[i] = pulledJob{token: j.Token, paramsKey: j.ParamsKey, lease: toLease(j.LeaseMS),
			Job: job.WithKey(j.Key, Job{ID: j.ID, Service: j.Service, Input: j.Input,
				Params: j.Params, Task: j.Task, Flow: j.Flow, Step: j.Step, Trace: j.Trace,
				Unit: j.Unit, Units: max(j.Units, 1), Attempt: j.Attempt, Labels: j.Labels})}
	}
	return jobs
}

// Limits of the engine.
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

// startPulled carries out a claimed job concurrently. The job uses a reserved slot if hasSlot is
// set, else the next free slot.
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

// carryOut carries out a job. It reports whether the slot of the job has passed to another job.
func (w *Worker) carryOut(ctx context.Context, c *claimedJob) (passed bool) {
	told := c.Job
	told.Log = &c.printed
	h := w.handlerFor(c.Service)
	if h == nil {
		h = func(context.Context, Job) (any, error) { return nil, errors.New("unknown service: " + c.Service) }
	}
	if !w.fetchParams(c.ctx, c, &told) {
		return false // the job was canceled or abandoned
	}
	answer := w.callHandler(c.ctx, h, told, c.token, func(_ context.Context, _ Job, text string) { w.claims.setProgress(c, text) })
	if c.ctx.Err() != nil {
		// The job was canceled, or abandoned at the end of Grace. An abandoned job must not be
		// reported as failed.
		return false
	}
	return w.deliverResult(ctx, wire.JobReport{Job: c.ID, Token: c.token, Output: answer.Result,
		Error: answer.Error, Details: answer.Details, Fatal: answer.Fatal,
		JobMetrics: wire.JobMetrics{Metrics: answer.Metrics}, PrintedLines: c.printed.closeAndTake()})
}

// deliverResult sends a result until the engine has answered or ctx ends. It reports whether the
// slot of the job has passed to another job.
func (w *Worker) deliverResult(ctx context.Context, done wire.JobReport) (passed bool) {
	var pause backoff
	for {
		passed, err := w.reports.deliverReport(ctx, done)
		switch {
		case err == nil:
			return passed
		case isPermanent(err) && done.Error == "" && isResultRefused(err):
			// Without this error, the engine would repeat the work for nothing.
			done.Output, done.Error, done.Details, done.Fatal, done.PrintedLines = nil,
				"the result was rejected: "+err.Error(), nil, true, wire.PrintedLines{}
			continue
		case isPermanent(err) && isFromEngine(err):
			w.cfg.Logger.Warn("result rejected", "job", done.Job, "error", err)
			return passed
		}
		if pause.next == 0 {
			w.cfg.Logger.Warn("delivering a result failed, retrying", "job", done.Job, "error", err)
		}
		if !pause.waitNext(ctx, err) {
			return false
		}
	}
}
