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

// Start begins an execution, or takes over the one that was begun for the attempt before.
func (s *Service) Start(ctx context.Context, job flow.Job, lost bool) flow.Report {
	p, err := s.planExecution(ctx, &job)
	var e *runExecution
	if err == nil {
		e, err = s.beginExecution(ctx, p, lost)
	}
	if e != nil || p != nil && ctx.Err() != nil {
		s.work.Go(func() { s.cancelOrphan(p, e) }) // nobody may wait for it any longer
	}
	if err != nil {
		return flow.Report{Error: failureText(err), Fatal: flow.ErrorKindOf(err) != ""}
	}
	data, err := json.Marshal(executionNote{Execution: e.name, Files: p.files})
	if err != nil {
		return flow.Report{Error: err.Error()}
	}
	return flow.Report{Worker: e.name, URL: e.logs, Deferred: []flow.External{{Service: Name, ID: e.name, Data: data, Pending: e.status.BeganAt == 0}}}
}

// beginExecution tries until an execution is begun, or Cloud Run says that it will not be.
func (s *Service) beginExecution(ctx context.Context, p *executionPlan, lost bool) (e *runExecution, err error) {
	err = outside.Try(ctx, func() (err error) {
		e, err = s.tryOnce(ctx, p, &lost)
		return err
	}, google.Passing, google.RetryAfter)
	return e, err
}

// tryOnce looks for an execution that may have been begun before it begins one. lost says so, also
// the next time.
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

// failureText are what is said of an attempt that could not begin.
func failureText(err error) string {
	if status := google.Status(err); status != 0 {
		return fmt.Sprintf("Cloud Run job execution failed with status %d: %s", status, google.Text(err))
	}
	return google.Text(err)
}

// tidies are when it is looked for an execution that nobody may wait for: what was sent may be
// carried out a little later.
var tidies = []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second}

const tidyStays = time.Minute

// cancelOrphan cancels an execution that was begun while its attempt came to an end, so that nobody
// has heard of it. begun = nil: it is not known whether there is one. When it is the member that
// goes, whoever has the task next takes it over.
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

// tidyOnce reports whether there is nothing left to do.
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
		s.opts.Tools.Logger.WarnContext(ctx, "an execution that nobody waits for may go on", "job", p.jobID, "error", google.Text(err))
	}
	return err == nil && e != nil
}
