// Package cloudrun starts jobs of Cloud Run (API v2) and tracks their executions.
//
// Promises:
//   - An attempt has one execution, which holds the id of its job in a variable. Cloud Run has no
//     names chosen by the caller. So a member that may have started an execution before, or has
//     lost the answer, searches for it first.
//   - An execution that cannot be read counts as running. Only an answer of Cloud Run ends it.
//   - Many executions of one job are read with one list.
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

// Name is the name of the service in flows, and in lists of external work.
const Name = "cloudrun"

// Options configure a Service.
type Options struct {
	Client          *http.Client
	Endpoint        string // "" for the default endpoint
	Project, Region string // defaults for jobs that do not specify them
	Tools           troupe.ServiceTools
}

// Service starts jobs and tracks their executions.
type Service struct {
	opts  Options
	calls *run.ProjectsLocationsJobsService
	lists listCache

	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

// New returns a Service; the caller has to close it.
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

// Close stops the tracking. Executions keep running.
func (s *Service) Close() error {
	s.end()
	s.work.Wait()
	return nil
}

// executionNote is the stored information about an execution: its full name, and the place of its
// files. For an execution started by a task itself, it has Ork's fields.
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

// readNote returns the execution of external work.
func (s *Service) readNote(x flow.External) (n executionNote, err error) {
	if err := json.Unmarshal(x.Data, &n); err != nil {
		return n, fmt.Errorf("the execution %.100q has fields of the wrong type: %w", x.ID, err)
	}
	if n.Execution != "" {
		return n, s.checkForm(n.Execution)
	}
	n.Execution = cmp.Or(n.ID, x.ID)
	if !strings.Contains(n.Execution, "/") {
		n.Execution = fmt.Sprintf("projects/%s/locations/%s/jobs/%s/executions/%s",
			cmp.Or(n.Project, s.opts.Project), cmp.Or(n.Region, s.opts.Region), n.Job, n.Execution)
	}
	return n, s.checkForm(n.Execution)
}

func (s *Service) checkForm(execution string) error {
	if !executionForm.MatchString(execution) {
		return fmt.Errorf("%.300q is no execution of Cloud Run: it has a project, region, "+
			"job_name and execution_id, or its full name", execution)
	}
	return nil
}

// Intervals between two looks at an execution: while it is young, and later.
const (
	youngPause = 2 * time.Second
	oldPause   = 10 * time.Second
	youngFor   = 5 * time.Minute
)

// Poll returns the status of an execution.
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
		return flow.ExternalStatus{Again: max(pause, google.RetryAfter(err))},
			fmt.Errorf("the execution of Cloud Run: %s", google.Text(err))
	case !e.status.Ended:
		return flow.ExternalStatus{Again: pause, BeganAt: e.status.BeganAt}, nil
	case e.status.Error == "" && n.Files != nil:
		status, err := s.opts.Tools.Files.Output(ctx, n.Files.Of(x))
		status.BeganAt = e.status.BeganAt
		return status, err
	}
	return e.status, nil
}

// Cancel ends an execution that is no longer needed.
func (s *Service) Cancel(ctx context.Context, x flow.External) error {
	n, err := s.readNote(x)
	if err != nil {
		return nil // there is none
	}
	if n.Files != nil {
		_ = s.opts.Tools.Files.Cancel(ctx, n.Files.Of(x)) // for a worker that checks for it
	}
	return s.cancelExecution(ctx, n.Execution)
}

func (s *Service) cancelExecution(ctx context.Context, execution string) error {
	_, err := s.calls.Executions.Cancel(execution, &run.GoogleCloudRunV2CancelExecutionRequest{}).Context(ctx).Do()
	switch google.Status(err) {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusConflict: // it has ended
		return nil
	}
	return err
}
