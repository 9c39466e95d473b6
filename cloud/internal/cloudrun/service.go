// Package cloudrun begins jobs of Cloud Run (API v2) and looks after their executions.
//
// Promises: an attempt has one execution, which has the id of its job among its variables. Cloud
// Run knows no names for what is begun, so whoever may have begun one before, or has not heard the
// answer, looks for it first. An execution that cannot be looked at goes on; only what Cloud Run
// says of it ends it. Many executions of one job are looked at with one list.
package cloudrun

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	run "google.golang.org/api/run/v2"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/internal/google"
	"github.com/troupe-engine/troupe/cloud/internal/outside"
	"github.com/troupe-engine/troupe/flow"
)

// Name is what the service is called in flows, and in lists of what is waited for.
const Name = "cloudrun"

// Options of a Service.
type Options struct {
	Client          *http.Client
	Endpoint        string // of the API; "" = where it always is
	Project, Region string // of jobs that do not say
	Tools           troupe.ServiceTools
}

// Service is what begins jobs and looks after their executions.
type Service struct {
	opts  Options
	calls *run.ProjectsLocationsJobsService
	lists listCache

	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

// New makes one. It is to be closed.
func New(o Options) (*Service, error) {
	o.Tools.Logger = cmp.Or(o.Tools.Logger, slog.Default())
	api, err := run.NewService(context.Background(), google.Options(o.Client, o.Endpoint)...)
	if err != nil {
		return nil, fmt.Errorf("the client of Cloud Run: %w", err)
	}
	s := &Service{opts: o, calls: api.Projects.Locations.Jobs}
	s.lists = listCache{calls: s.calls.Executions, of: map[string]*executionList{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close stops. Executions go on.
func (s *Service) Close() error {
	s.end()
	s.work.Wait()
	return nil
}

// executionNote is what has to be known of an execution: its full name, and where its files are.
// What a task has begun itself says it in Ork's words.
type executionNote struct {
	Execution string         `json:"execution,omitempty"`
	Files     *outside.Files `json:"files,omitempty"`
	Project   string         `json:"project,omitempty"`
	Region    string         `json:"region,omitempty"`
	Job       string         `json:"job_name,omitempty"`
	ID        string         `json:"execution_id,omitempty"`
}

var (
	jobForm       = regexp.MustCompile(`^projects/[\w.:-]+/locations/[\w-]+/jobs/[\w-]+$`)
	executionForm = regexp.MustCompile(`^projects/[\w.:-]+/locations/[\w-]+/jobs/[\w-]+/executions/[\w-]+$`)
)

// readNote says which execution a piece of work is.
func (s *Service) readNote(x flow.External) (n executionNote, err error) {
	if err := json.Unmarshal(x.Data, &n); err != nil {
		return n, fmt.Errorf("the execution %.100q has fields of the wrong type: %w", x.ID, err)
	}
	if n.Execution != "" {
		return n, s.checkForm(n.Execution)
	}
	n.Execution = cmp.Or(n.ID, x.ID)
	if !strings.Contains(n.Execution, "/") {
		n.Execution = fmt.Sprintf("projects/%s/locations/%s/jobs/%s/executions/%s", cmp.Or(n.Project, s.opts.Project), cmp.Or(n.Region, s.opts.Region), n.Job, n.Execution)
	}
	return n, s.checkForm(n.Execution)
}

func (s *Service) checkForm(execution string) error {
	if !executionForm.MatchString(execution) {
		return fmt.Errorf("%.300q is no execution of Cloud Run: it has a project, region, job_name and execution_id, or its full name", execution)
	}
	return nil
}

// How often an execution is looked at: while it is young, and later.
const (
	youngPause = 2 * time.Second
	oldPause   = 10 * time.Second
	youngFor   = 5 * time.Minute
)

// Poll tells how an execution is.
func (s *Service) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	n, err := s.readNote(x)
	if err != nil {
		return flow.ExternalStatus{Ended: true, Error: err.Error()}, nil
	}
	pause := youngPause
	if s.opts.Tools.Now()-x.StartedAt > youngFor.Milliseconds() {
		pause = oldPause
	}
	e, err := s.lists.findStatus(ctx, n.Execution, pause)
	switch {
	case google.Status(err) == http.StatusNotFound:
		return flow.ExternalStatus{Ended: true, Error: "the execution is gone"}, nil
	case err != nil:
		return flow.ExternalStatus{Again: max(pause, google.RetryAfter(err))}, fmt.Errorf("the execution of Cloud Run: %s", google.Text(err))
	case !e.status.Ended:
		return flow.ExternalStatus{Again: pause, BeganAt: e.status.BeganAt}, nil
	case e.status.Error == "" && n.Files != nil:
		status, err := s.opts.Tools.Files.Output(ctx, n.Files.Of(x))
		status.BeganAt = e.status.BeganAt
		return status, err
	}
	return e.status, nil
}

// Cancel has an execution end that nobody waits for any longer.
func (s *Service) Cancel(ctx context.Context, x flow.External) error {
	n, err := s.readNote(x)
	if err != nil {
		return nil // there is none
	}
	if n.Files != nil {
		_ = s.opts.Tools.Files.Cancel(ctx, n.Files.Of(x)) // for a worker that looks there
	}
	return s.cancelExecution(ctx, n.Execution)
}

func (s *Service) cancelExecution(ctx context.Context, execution string) error {
	_, err := s.calls.Executions.Cancel(execution, &run.GoogleCloudRunV2CancelExecutionRequest{}).Context(ctx).Do()
	switch google.Status(err) {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusConflict: // it is over
		return nil
	}
	return err
}
