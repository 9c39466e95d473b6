package worker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// emptyPause spaces the polls of an engine that answers at once although it was asked to wait.
const emptyPause = 200 * time.Millisecond

// pollLoop asks for as many jobs as there are free slots until ctx ends. Jobs have a context of
// their own, which outlives ctx.
func (w *Worker) pollLoop(ctx, jobs context.Context, services []string) {
	var pause backoff
	for w.takeSlot(ctx) { // for the first job
		begun := time.Now()
		got, err := w.poll(ctx, services, 1+cap(w.slots)-len(w.slots))
		for i, q := range got {
			w.begin(jobs, q, i == 0)
		}
		if len(got) > 0 {
			pause = backoff{}
			continue
		}
		w.freeSlot()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if pause.next == 0 {
				w.cfg.Logger.Warn("the engine gives no jobs; trying on", "error", err)
			}
			pause.wait(ctx, err)
		case time.Since(begun) < min(emptyPause, w.cfg.Wait):
			pause = backoff{}
			sleep(ctx, emptyPause)
		default:
			pause = backoff{}
		}
	}
}

// pulled is a job as a poll's answer told it.
type pulled struct {
	Job
	queueID, run, token string
	paramsKey           string // names params that did not come along
	visibility          time.Duration
}

// poll asks for up to n jobs. An engine may answer with the single form all the same.
func (w *Worker) poll(ctx context.Context, services []string, n int) ([]pulled, error) {
	var answer struct {
		wire.QueueTasks
		wire.QueueJob
	}
	err := w.server.post(ctx, "/queue/poll", wire.QueuePoll{WorkerID: w.cfg.ID, Services: services,
		Labels: w.cfg.Labels, Max: n, WaitMS: w.cfg.Wait.Milliseconds()}, &answer, w.cfg.Wait+requestTime)
	if err != nil {
		return nil, err
	}
	if answer.Tasks == nil && answer.QueueJob.ID != "" {
		return []pulled{ofSingle(answer.QueueJob)}, nil
	}
	jobs := make([]pulled, len(answer.Tasks))
	for i, t := range answer.Tasks {
		jobs[i] = ofList(t)
	}
	return jobs, nil
}

func ofList(t wire.QueueTask) pulled {
	id := jobID(t.ID)
	return pulled{queueID: t.ID, run: "run-" + id, token: t.Token, paramsKey: t.ParamsKey, visibility: visibility(t.VisibilityMS),
		Job: Job{ID: id, Service: t.Service, Input: t.Input, Params: t.Params, Task: t.RunID, Flow: t.FlowSlug, Step: t.StepSlug,
			Unit: t.TaskIndex, Units: max(t.TaskCount, 1), Attempt: t.Attempt}}
}

// ofSingle reads the input where the engine put it.
func ofSingle(q wire.QueueJob) pulled {
	p := pulled{queueID: q.ID, run: q.RunID, token: q.Token, visibility: visibility(q.VisibilityMS),
		Job: Job{ID: jobID(q.ID), Service: q.Service, Input: q.Input, Params: q.Params, Task: q.TaskID, Step: q.NodeKey, Units: 1}}
	var in wire.QueueInput
	if (q.Input == nil || q.Params == nil) && json.Unmarshal([]byte(q.InputJSON), &in) == nil {
		p.Input, p.Params = in.Input, in.Params
	}
	return p
}

func jobID(queueID string) string { return strings.TrimPrefix(queueID, "q-") }

func visibility(ms int64) time.Duration {
	if ms <= 0 {
		return defaultVisibility
	}
	return time.Duration(min(ms, longestClaim.Milliseconds())) * time.Millisecond
}

// begin carries out a claimed job beside the others, in a slot that is held for it or the next free one.
func (w *Worker) begin(ctx context.Context, q pulled, hasSlot bool) {
	w.load.Add(1)
	c := w.claims.add(ctx, q)
	w.jobs.Go(func() {
		defer w.load.Add(-1)
		defer w.claims.remove(c)
		if !hasSlot && !w.takeSlot(c.ctx) {
			return
		}
		defer w.freeSlot()
		if w.claims.start(c) {
			w.carryOut(ctx, c)
		}
	})
}

func (w *Worker) carryOut(ctx context.Context, c *claim) {
	var kept log
	job := c.Job
	job.Log = &kept
	h := w.handler(c.Service)
	if h == nil {
		h = func(context.Context, Job) (any, error) { return nil, errors.New("unknown service: " + c.Service) }
	}
	if !w.fetchParams(c.ctx, c, &job) {
		return // nobody waits for it any longer, or it is given up
	}
	answer := w.call(c.ctx, h, job)
	if c.ctx.Err() != nil {
		// It was canceled, or it is given up at the end of the grace: then it is not ours to fail.
		return
	}
	w.complete(ctx, wire.QueueComplete{QueueID: c.queueID, Result: answer.Result, Error: answer.Error, Fatal: answer.Fatal,
		Token: c.token, WorkerID: w.cfg.ID, RunID: c.run, Log: kept.String()})
}

// complete delivers a result until the engine has answered or ctx ends.
func (w *Worker) complete(ctx context.Context, done wire.QueueComplete) {
	var pause backoff
	for {
		err := w.server.post(ctx, "/queue/complete", done, &struct{}{}, requestTime)
		switch {
		case err == nil:
			return
		case hopeless(err) && done.Error == "" && unfit(err):
			// Unless told so, the engine would have the same done again in vain.
			done.Result, done.Error, done.Fatal, done.Log = nil, "the result was refused: "+err.Error(), true, ""
			continue
		case hopeless(err):
			w.cfg.Logger.Warn("a result was refused", "job", done.QueueID, "error", err)
			return
		}
		if pause.next == 0 {
			w.cfg.Logger.Warn("a result is not delivered yet; trying on", "job", done.QueueID, "error", err)
		}
		if !pause.wait(ctx, err) {
			return
		}
	}
}

// unfit says that it is the result which the engine did not like.
func unfit(err error) bool {
	status := statusOf(err)
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}
