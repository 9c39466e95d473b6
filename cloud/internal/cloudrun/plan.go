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

// execSpec is what a node says of its job, in the field exec of its params.
type execSpec struct {
	Job    string `json:"job"`
	Config struct {
		Project   string `json:"project"`
		Region    string `json:"region"`
		Container string `json:"container"` // which one gets the variables; "" = the only one
	} `json:"config"`
	Env map[string]json.RawMessage `json:"env"`
}

// executionPlan is an execution that is to be begun.
type executionPlan struct {
	job, jobID string    // the full name of the job there, and the id of ours
	since      time.Time // no execution of it is older
	request    *run.GoogleCloudRunV2RunJobRequest
	files      *outside.Files
}

// clocks is by how much Google's clock and ours may differ.
const clocks = 10 * time.Minute

// planExecution says what to begin. An error of a kind will stay, whoever tries again.
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

// local is what Ork calls a project that there is not.
const local = "local"

// fullName is the job's name there.
func (s *Service) fullName(w *execSpec) (string, error) {
	name := w.Job
	if !strings.Contains(name, "/") {
		project := w.Config.Project
		if project == local {
			project = ""
		}
		if project = cmp.Or(project, s.opts.Project); project == "" {
			return "", flow.Errorf(flow.Invalid, "the job %.100q has no project: say config: {project: ID}, or have the operator say --cloud-project", w.Job)
		}
		name = fmt.Sprintf("projects/%s/locations/%s/jobs/%s", project, cmp.Or(w.Config.Region, s.opts.Region), name)
	}
	if !jobForm.MatchString(name) {
		return "", flow.Errorf(flow.Invalid, "%.300q is no job of Cloud Run: it has a name, or a full one such as projects/P/locations/R/jobs/J", name)
	}
	return name, nil
}

// maxVariable is how large a variable may be there.
const maxVariable = 32768

// maxTimeout is how long a task of Cloud Run may take.
const maxTimeout = 168 * time.Hour

// executionTimeout is what the execution may take, if the node says how long it waits: else its own
// definition says it.
func executionTimeout(job *flow.Job) string {
	seconds := outside.Seconds(job)
	if seconds == 0 {
		return ""
	}
	return strconv.FormatInt(min(seconds, int64(maxTimeout/time.Second)), 10) + "s"
}
