package cloudrun

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	run "google.golang.org/api/run/v2"

	"github.com/troupe-engine/troupe/cloud/internal/google"
	"github.com/troupe-engine/troupe/cloud/internal/outside"
	"github.com/troupe-engine/troupe/flow"
)

// Start starts an execution, or takes over the one started for the previous attempt.
func (s *Service) Start(ctx context.Context, job flow.Job, lost bool) flow.Report {
	p, err := s.planExecution(ctx, &job)
	var e *runExecution
	if err == nil {
		e, err = s.beginExecution(ctx, p, lost)
	}
	if e != nil || p != nil && ctx.Err() != nil {
		s.work.Go(func() { s.cancelOrphan(p, e) }) // the execution may no longer be needed
	}
	if err != nil {
		return flow.Report{Error: failureText(err), Fatal: flow.ErrorKindOf(err) != ""}
	}
	data, err := json.Marshal(executionNote{Execution: e.name, Files: p.files})
	if err != nil {
		return flow.Report{Error: err.Error()}
	}
	return flow.Report{Worker: e.name, URL: e.logs,
		Deferred: []flow.External{{Service: Name, ID: e.name, Data: data, Pending: e.status.BeganAt == 0}}}
}

// beginExecution tries until an execution is started or Cloud Run rejects it.
func (s *Service) beginExecution(ctx context.Context, p *executionPlan, lost bool) (e *runExecution, err error) {
	err = outside.Try(ctx, func() (err error) {
		e, err = s.tryOnce(ctx, p, &lost)
		return err
	}, google.Passing, google.RetryAfter)
	return e, err
}

// tryOnce starts an execution. If lost is set, it searches first for one that may already have been
// started. It sets lost for the next call.
func (s *Service) tryOnce(ctx context.Context, p *executionPlan, lost *bool) (*runExecution, error) {
	if *lost {
		if e, err := s.lists.findExecution(ctx, p.job, p.jobID, p.since); e != nil || err != nil {
			return e, err
		}
		*lost = false
	}
	if err := outside.Held(ctx); err != nil {
		return nil, err
	}
	answer, err := s.calls.Run(p.job, p.request).Context(ctx).Do()
	var begun run.GoogleCloudRunV2Execution
	if err == nil {
		err = json.Unmarshal(answer.Metadata, &begun)
	}
	if err == nil && !executionForm.MatchString(begun.Name) {
		err = fmt.Errorf("the answer names no execution: %.300s", answer.Metadata)
	}
	if err != nil {
		*lost = google.Status(err) != http.StatusTooManyRequests
		return nil, err
	}
	return executionOf(&begun), nil
}

// failureText returns the error of an attempt that could not start.
func failureText(err error) string {
	if status := google.Status(err); status != 0 {
		return fmt.Sprintf("Cloud Run job execution failed with status %d: %s", status, google.Text(err))
	}
	return google.Text(err)
}

// tidies are the delays of searches for an orphaned execution, because a sent request may be
// carried out a little later.
var tidies = []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second}

const tidyStays = time.Minute

// cancelOrphan cancels an execution that started while its attempt ended, so that the task does not
// know it. If begun is nil, it is unknown whether there is one. If only the member is stopping, the
// next owner of the task takes the execution over.
func (s *Service) cancelOrphan(p *executionPlan, begun *runExecution) {
	for _, pause := range tidies {
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		if s.tidyOnce(p, begun) {
			return
		}
	}
}

// tidyOnce reports whether nothing is left to do.
func (s *Service) tidyOnce(p *executionPlan, e *runExecution) (done bool) {
	ctx, cancel := context.WithTimeout(s.ctx, tidyStays)
	defer cancel()
	if live, err := s.opts.Tools.Live(ctx, p.jobID); err != nil || live {
		return live
	}
	var err error
	if e == nil {
		e, err = s.lists.findExecution(ctx, p.job, p.jobID, p.since)
	}
	if err == nil && e != nil && !e.status.Ended {
		err = s.cancelExecution(ctx, e.name)
	}
	if err != nil {
		s.opts.Tools.Logger.WarnContext(ctx, "an abandoned execution may still run", "job", p.jobID, "error", google.Text(err))
	}
	return err == nil && e != nil
}
