package cloudrun

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	run "google.golang.org/api/run/v2"

	"github.com/troupe-engine/troupe/cloud/internal/outside"
	"github.com/troupe-engine/troupe/flow"
)

// execSpec is the description of a job in a node, in the field exec of its params.
type execSpec struct {
	Job    string `json:"job"`
	Config struct {
		Project string `json:"project"`
		Region  string `json:"region"`
		// container that gets the variables; "" for the only one
		Container string `json:"container"`
	} `json:"config"`
	Env map[string]json.RawMessage `json:"env"`
}

// executionPlan describes an execution to be started.
type executionPlan struct {
	job, jobID string    // full name of the Cloud Run job, and the id of our job
	since      time.Time // no execution of it is older
	request    *run.GoogleCloudRunV2RunJobRequest
	files      *outside.Files
}

// clocks is the assumed maximal difference between Google's clock and ours.
const clocks = 10 * time.Minute

// planExecution returns the execution to be started. An error with a kind is permanent, so retries
// do not help.
func (s *Service) planExecution(ctx context.Context, job *flow.Job) (*executionPlan, error) {
	var params struct {
		Exec execSpec `json:"exec"`
	}
	if err := json.Unmarshal(job.Params, &params); err != nil {
		return nil, flow.Errorf(flow.Invalid, "the node has no params such as {exec: {job: NAME}}: %v", err)
	}
	name, err := s.fullName(&params.Exec)
	if err != nil {
		return nil, err
	}
	p := &executionPlan{job: name, jobID: job.ID(), since: time.UnixMilli(job.EnqueuedAt).Add(-clocks)}
	place := outside.Place{Name: "Cloud Run", Most: maxVariable, Tools: s.opts.Tools}
	vars, files, err := place.Variables(ctx, job, params.Exec.Env)
	if err != nil {
		return nil, err
	}
	p.files = files
	override := &run.GoogleCloudRunV2ContainerOverride{Name: params.Exec.Config.Container}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		override.Env = append(override.Env, &run.GoogleCloudRunV2EnvVar{Name: name, Value: vars[name], ForceSendFields: []string{"Value"}})
	}
	p.request = &run.GoogleCloudRunV2RunJobRequest{Overrides: &run.GoogleCloudRunV2Overrides{
		ContainerOverrides: []*run.GoogleCloudRunV2ContainerOverride{override}, TaskCount: 1, Timeout: executionTimeout(job)}}
	return p, nil
}

// local is Ork's name for a missing project.
const local = "local"

// fullName returns the full name of the Cloud Run job.
func (s *Service) fullName(w *execSpec) (string, error) {
	name := w.Job
	if !strings.Contains(name, "/") {
		project := w.Config.Project
		if project == local {
			project = ""
		}
		if project = cmp.Or(project, s.opts.Project); project == "" {
			return "", flow.Errorf(flow.Invalid,
				"the job %.100q has no project: say config: {project: ID}, or have the operator "+
					"say --cloud-project", w.Job)
		}
		name = fmt.Sprintf("projects/%s/locations/%s/jobs/%s", project, cmp.Or(w.Config.Region, s.opts.Region), name)
	}
	if !jobForm.MatchString(name) {
		return "", flow.Errorf(flow.Invalid,
			"%.300q is no job of Cloud Run: it has a name, or a full one such as "+
				"projects/P/locations/R/jobs/J", name)
	}
	return name, nil
}

// maxVariable is the largest size of a variable in Cloud Run.
const maxVariable = 32768

// maxTimeout is the largest timeout of a Cloud Run task.
const maxTimeout = 168 * time.Hour

// executionTimeout returns the timeout of an execution if the node has one; otherwise the job's own
// definition applies.
func executionTimeout(job *flow.Job) string {
	seconds := outside.Seconds(job)
	if seconds == 0 {
		return ""
	}
	return strconv.FormatInt(min(seconds, int64(maxTimeout/time.Second)), 10) + "s"
}
