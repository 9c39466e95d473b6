package kube

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/cloud/internal/outside"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// execSpec is the description of a job in a node, in the field exec of its params.
type execSpec struct {
	Image string `json:"image"`
	// a list is passed to the image's entrypoint, a string to its shell
	Command   json.RawMessage `json:"command"`
	Resources struct {
		CPU    json.RawMessage `json:"cpu"`
		Memory json.RawMessage `json:"memory"`
	} `json:"resources"`
	Config struct {
		Namespace      string `json:"namespace"`
		ServiceAccount string `json:"service_account"`
		Pull           string `json:"pull"`
	} `json:"config"`
	Env map[string]json.RawMessage `json:"env"`
}

// Start starts a job, or takes over the one started for the previous attempt.
func (s *Service) Start(ctx context.Context, job flow.Job, _ bool) flow.Report {
	j, n, err := s.planJob(ctx, &job)
	if err == nil {
		err = s.beginJob(ctx, j)
	}
	if ctx.Err() != nil {
		s.scheduleSweep() // the job may no longer be needed
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(n)
	}
	if err != nil {
		return flow.Report{Error: err.Error(), Fatal: flow.ErrorKindOf(err) != ""}
	}
	return flow.Report{Worker: "kubernetes:" + n.Namespace + "/" + j.Metadata.Name, Log: s.opts.Tools.Logs != nil,
		Deferred: []flow.External{{Service: Name, ID: j.Metadata.Name, Data: data, Pending: true}}}
}

// beginJob tries until the job exists. A repeated call finds the existing job.
func (s *Service) beginJob(ctx context.Context, j *kubeJob) error {
	c, err := s.apiClient()
	if err != nil {
		return err
	}
	return outside.Try(ctx, func() error {
		if err := outside.Held(ctx); err != nil {
			return err
		}
		_, err := c.createJob(ctx, j.Metadata.Namespace, j)
		if codeOf(err) == http.StatusConflict {
			return s.adoptJob(ctx, c, j)
		}
		return err
	}, isTransient, retryAfter)
}

// errForeign reports that another job has the name. errGoing reports that the job is being deleted.
var (
	errForeign = &apiError{code: http.StatusConflict, text: "there is a job of that name that is not ours"}
	errGoing   = &apiError{code: http.StatusConflict, text: "somebody deletes the job"}
)

// adoptJob takes over an existing job if it belongs to the attempt.
func (s *Service) adoptJob(ctx context.Context, c *kubeClient, j *kubeJob) error {
	there, err := c.getJob(ctx, j.Metadata.Namespace, j.Metadata.Name)
	switch {
	case err != nil:
		return err
	case there.Metadata.Labels[labelStore] != s.opts.Tools.Store ||
		there.Metadata.Annotations[annotationJob] != j.Metadata.Annotations[annotationJob]:
		return errForeign
	case there.Metadata.DeletionTimestamp != nil:
		return errGoing
	}
	return nil
}

// planJob returns the job to be started. An error with a kind is permanent, so retries do not help.
func (s *Service) planJob(ctx context.Context, of *flow.Job) (*kubeJob, jobNote, error) {
	var params struct {
		Exec execSpec `json:"exec"`
	}
	if len(s.opts.Namespaces) == 0 {
		return nil, jobNote{}, flow.Errorf(flow.Denied, refusal)
	}
	w := &params.Exec
	if err := json.Unmarshal(of.Params, &params); err != nil || w.Image == "" {
		return nil, jobNote{}, flow.Errorf(flow.Invalid, "the node has no params such as {exec: {image: NAME, command: …}}")
	}
	n := jobNote{Namespace: w.Config.Namespace, Memory: toText(w.Resources.Memory)}
	if n.Namespace == "" {
		n.Namespace = s.opts.Namespaces[0]
	}
	if !slices.Contains(s.opts.Namespaces, n.Namespace) {
		return nil, n, flow.Errorf(flow.Denied,
			"the namespace %.100q is not allowed; the operator of this server can name it with "+
				"--kubernetes-namespace", n.Namespace)
	}
	place := outside.Place{Name: "a job", Most: maxVariable, Tools: s.opts.Tools}
	vars, files, err := place.Variables(ctx, of, w.Env)
	if err != nil {
		return nil, n, err
	}
	n.Files = files
	c, err := w.buildContainer(vars)
	if err != nil {
		return nil, n, err
	}
	return s.buildJob(of, n.Namespace, podSpec{RestartPolicy: "Never",
		ServiceAccountName: w.Config.ServiceAccount, Containers: []podContainer{c}}), n, nil
}

// maxVariable is the largest size of a variable. The kernel accepts at most 128 KiB per variable.
const maxVariable = 96 << 10

// slack is how many seconds longer than Troupe Kubernetes waits before it ends a job, in case no
// member is there to do so.
const slack = 60

func (s *Service) buildJob(of *flow.Job, namespace string, spec podSpec) *kubeJob {
	name := s.jobName(of.ID())
	labels := map[string]string{labelStore: s.opts.Tools.Store, labelName: name}
	j := &kubeJob{APIVersion: "batch/v1", Kind: "Job",
		Metadata: objectMeta{Name: name, Namespace: namespace, Labels: labels,
			Annotations: map[string]string{annotationJob: of.ID(), "troupe.member": s.opts.Tools.Member}},
		Spec: jobSpec{Template: podTemplate{Metadata: objectMeta{Labels: labels}, Spec: spec}}}
	if seconds := outside.Seconds(of); seconds > 0 {
		j.Spec.ActiveDeadlineSeconds = seconds + slack
	}
	return j
}

// pulls maps the pull policies of flows to those of Kubernetes.
var pulls = map[string]string{"": "", flow.PullMissing: "IfNotPresent", flow.PullAlways: "Always", flow.PullNever: "Never"}

func (w *execSpec) buildContainer(vars map[string]string) (podContainer, error) {
	pull, known := pulls[w.Config.Pull]
	if !known {
		return podContainer{}, flow.Errorf(flow.Invalid, "config.pull: unknown word %.80q: write missing, always or never", w.Config.Pull)
	}
	c := podContainer{Name: taskContainer, Image: w.Image, ImagePullPolicy: pull}
	if line, isText := expr.String(w.Command); isText {
		c.Command = []string{"/bin/sh", "-c", escapeDollars(line)}
	} else if len(w.Command) > 0 && json.Unmarshal(w.Command, &c.Args) != nil {
		return podContainer{}, flow.Errorf(flow.Invalid, "the command is neither a text nor a list of texts")
	}
	for i := range c.Args {
		c.Args[i] = escapeDollars(c.Args[i])
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		c.Env = append(c.Env, envVariable{name, escapeDollars(vars[name])})
	}
	for name, v := range map[string]json.RawMessage{"cpu": w.Resources.CPU, "memory": w.Resources.Memory} {
		if amount := toText(v); amount != "" {
			if c.Resources.Limits == nil {
				c.Resources.Limits = map[string]string{}
			}
			c.Resources.Limits[name] = amount
		}
	}
	return c, nil
}

// escapeDollars escapes a text so that Kubernetes expands nothing in it.
func escapeDollars(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// toText converts a string or a number to text.
func toText(v json.RawMessage) string {
	if s, ok := expr.String(v); ok {
		return s
	}
	return string(v)
}
