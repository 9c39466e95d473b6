package fakes

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kubernetes is a fake API server with jobs and their pods. A pod behaves as configured for its
// image.
type Kubernetes struct {
	URL    string
	server *httptest.Server
	requestRecorder

	held   sync.Mutex
	images map[string]Image
	jobs   []*kubeJob
	bodies [][]byte // bodies of requests that create jobs
}

// Image is the behavior of an image's containers.
type Image struct {
	Prints  []string        // printed lines
	Takes   time.Duration   // time from the first line to the end
	Until   <-chan struct{} // the container runs until it is closed; nil for no wait
	Exit    int
	OOM     bool
	Waits   string // reason why it never starts
	Evicted bool   // its node is lost
	Work    func(env map[string]string)
}

// kubeJob is a job with its pod.
type kubeJob struct {
	namespace string
	body      map[string]any // as it was sent
	env       map[string]string
	args      []string
	image     Image
	startedAt time.Time
	deleted   bool
}

const kubeToken = "kube-token"

// NewKubernetes starts a server that runs until the test ends.
func NewKubernetes(t testing.TB) *Kubernetes {
	k := &Kubernetes{images: map[string]Image{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/batch/v1/namespaces/{namespace}/jobs", k.createJob)
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/jobs", k.listJobs)
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/jobs/{job}", k.getJob)
	mux.HandleFunc("DELETE /apis/batch/v1/namespaces/{namespace}/jobs/{job}", k.deleteJob)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", k.listPods)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{pod}/log", k.serveLog)
	k.isAuthorized = func(authorization string) bool { return authorization == "Bearer "+kubeToken }
	k.refuse = func(w http.ResponseWriter, status int, text string) { kubeRefuse(w, status, reasons[status], text) }
	k.server = httptest.NewTLSServer(k.recordFirst(mux))
	k.URL = k.server.URL
	t.Cleanup(func() {
		k.server.CloseClientConnections()
		k.server.Close()
	})
	return k
}

// Config writes a kubeconfig with a valid account and returns the path of the file.
func (k *Kubernetes) Config(t testing.TB) string {
	t.Helper()
	return k.writeConfig(t, "token: "+kubeToken)
}

// LoginConfig writes a kubeconfig whose user gets a token from another program, a script beside it.
func (k *Kubernetes) LoginConfig(t testing.TB) string {
	t.Helper()
	path := k.writeConfig(t, "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}")
	script := `#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "` + kubeToken + `"}}'
`
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "login"), []byte(script), 0o700))
	return path
}

func (k *Kubernetes) writeConfig(t testing.TB, user string) string {
	dir := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), authority, 0o600))
	path := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: elsewhere, context: {cluster: elsewhere, user: member}}
- {name: here, context: {cluster: fake, user: member, namespace: flows}}
clusters:
- {name: elsewhere, cluster: {server: "https://127.0.0.1:1"}}
- {name: fake, cluster: {server: "`+k.URL+`", certificate-authority: ca.pem}}
users:
- {name: member, user: {`+user+`}}
`), 0o600))
	return path
}

// Behave sets the behavior of an image's containers from now on.
func (k *Kubernetes) Behave(image string, i Image) {
	k.held.Lock()
	defer k.held.Unlock()
	k.images[image] = i
}

// KubernetesJob is the external view of a job.
type KubernetesJob struct {
	Namespace, Name string
	Body            map[string]any
	Env             map[string]string
	Args            []string
	Gone            bool
}

// Made returns all jobs ever created, including deleted ones.
func (k *Kubernetes) Made() (all []KubernetesJob) {
	k.held.Lock()
	defer k.held.Unlock()
	for _, j := range k.jobs {
		all = append(all, KubernetesJob{j.namespace, j.objectName(), j.body, maps.Clone(j.env), slices.Clone(j.args), j.deleted})
	}
	return all
}

// Bodies returns the bodies of requests that create jobs.
func (k *Kubernetes) Bodies() [][]byte {
	k.held.Lock()
	defer k.held.Unlock()
	return slices.Clone(k.bodies)
}

// reasons are the status reasons used by API servers.
var reasons = map[int]string{http.StatusUnauthorized: "Unauthorized",
	http.StatusForbidden: "Forbidden", http.StatusTooManyRequests: "TooManyRequests"}

// kubeRefuse writes an error in the format of API servers.
func kubeRefuse(w http.ResponseWriter, code int, reason, text string) {
	writeJSON(w, code, map[string]any{"kind": "Status", "apiVersion": "v1",
		"metadata": map[string]any{}, "status": "Failure", "message": text, "reason": reason, "code": code})
}

func (k *Kubernetes) createJob(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	j := &kubeJob{namespace: r.PathValue("namespace"), startedAt: time.Now(), env: map[string]string{}}
	if err == nil {
		err = j.parseJob(text)
	}
	k.held.Lock()
	defer k.held.Unlock()
	k.bodies = append(k.bodies, text)
	switch {
	case err != nil:
		kubeRefuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	case k.findJob(j.namespace, j.objectName()) != nil:
		kubeRefuse(w, http.StatusConflict, "AlreadyExists", fmt.Sprintf("jobs.batch %q already exists", j.objectName()))
		return
	}
	j.image = k.images[j.firstContainer()["image"].(string)]
	k.jobs = append(k.jobs, j)
	if j.image.Work != nil {
		j.image.Work(maps.Clone(j.env))
	}
	writeJSON(w, http.StatusCreated, j.jobJSON())
}

// parseJob parses a job. The vendor's own types validate it elsewhere.
func (j *kubeJob) parseJob(text []byte) error {
	if err := json.Unmarshal(text, &j.body); err != nil {
		return err
	}
	if j.body["kind"] != "Job" && j.body["kind"] != nil {
		return fmt.Errorf("the object provided is no Job")
	}
	env, _ := j.firstContainer()["env"].([]any)
	for _, v := range env {
		value, _ := v.(map[string]any)["value"].(string)
		j.env[v.(map[string]any)["name"].(string)] = expandText(value)
	}
	args, _ := j.firstContainer()["args"].([]any)
	command, _ := j.firstContainer()["command"].([]any)
	for _, a := range append(command, args...) {
		j.args = append(j.args, expandText(a.(string)))
	}
	return nil
}

// expandText returns a text as a container sees it: Kubernetes expands $(NAME) and replaces $$ by
// $.
func expandText(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '$' && i+1 < len(text) && text[i+1] == '$' {
			i++
		} else if text[i] == '$' && i+1 < len(text) && text[i+1] == '(' {
			b.WriteString("FILLED-IN")
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func (j *kubeJob) objectMeta() map[string]any { return j.body["metadata"].(map[string]any) }

func (j *kubeJob) objectName() string { return j.objectMeta()["name"].(string) }

func (j *kubeJob) firstContainer() map[string]any {
	template := j.body["spec"].(map[string]any)["template"].(map[string]any)
	return template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
}

func (j *kubeJob) isOver() bool {
	return j.image.Waits == "" && time.Since(j.startedAt) >= j.image.Takes && isClosed(j.image.Until)
}

func (k *Kubernetes) findJob(namespace, name string) *kubeJob {
	for _, j := range k.jobs {
		if j.namespace == namespace && !j.deleted && j.objectName() == name {
			return j
		}
	}
	return nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// jobJSON returns the job with the fields added by the cluster.
func (j *kubeJob) jobJSON() map[string]any {
	body := maps.Clone(j.body)
	meta := maps.Clone(j.objectMeta())
	meta["namespace"], meta["uid"], meta["resourceVersion"],
		meta["creationTimestamp"] = j.namespace, "uid-"+j.objectName(), "7", formatTime(j.startedAt)
	status := map[string]any{"startTime": formatTime(j.startedAt), "active": 1, "ready": 1,
		"terminating": 0, "uncountedTerminatedPods": map[string]any{}}
	if j.isOver() {
		kind, reason, text := "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
		if j.image.Exit != 0 || j.image.OOM || j.image.Evicted {
			kind, reason, text = "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
		}
		now := formatTime(j.startedAt.Add(j.image.Takes))
		status = map[string]any{"startTime": formatTime(j.startedAt),
			"conditions": []any{map[string]any{"type": kind, "status": "True", "reason": reason,
				"message":       text,
				"lastProbeTime": now, "lastTransitionTime": now}}}
	}
	body["kind"], body["apiVersion"], body["metadata"], body["status"] = "Job", "batch/v1", meta, status
	return body
}

func (k *Kubernetes) getJob(w http.ResponseWriter, r *http.Request) {
	k.held.Lock()
	defer k.held.Unlock()
	if j := k.findJob(r.PathValue("namespace"), r.PathValue("job")); j != nil {
		writeJSON(w, http.StatusOK, j.jobJSON())
		return
	}
	kubeRefuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("jobs.batch %q not found", r.PathValue("job")))
}

func (k *Kubernetes) listJobs(w http.ResponseWriter, r *http.Request) {
	k.held.Lock()
	defer k.held.Unlock()
	items := []any{}
	for _, j := range k.jobs {
		if j.namespace == r.PathValue("namespace") && !j.deleted && matchesSelector(j.objectMeta(), r.FormValue("labelSelector")) {
			items = append(items, j.jobJSON())
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"kind": "JobList", "apiVersion": "batch/v1",
		"metadata": map[string]any{"resourceVersion": "9"}, "items": items})
}

// matchesSelector reports whether labels match a selector of the form NAME=VALUE.
func matchesSelector(meta map[string]any, selector string) bool {
	name, value, _ := strings.Cut(selector, "=")
	labels, _ := meta["labels"].(map[string]any)
	return selector == "" || labels[name] == value
}

func (k *Kubernetes) deleteJob(w http.ResponseWriter, r *http.Request) {
	k.held.Lock()
	defer k.held.Unlock()
	j := k.findJob(r.PathValue("namespace"), r.PathValue("job"))
	if j == nil {
		kubeRefuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("jobs.batch %q not found", r.PathValue("job")))
		return
	}
	j.deleted = true
	writeJSON(w, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success"})
}

func (k *Kubernetes) listPods(w http.ResponseWriter, r *http.Request) {
	k.held.Lock()
	defer k.held.Unlock()
	items := []any{}
	for _, j := range k.jobs {
		template := j.body["spec"].(map[string]any)["template"].(map[string]any)
		meta, _ := template["metadata"].(map[string]any)
		if j.namespace == r.PathValue("namespace") && !j.deleted && matchesSelector(meta, r.FormValue("labelSelector")) {
			items = append(items, j.podJSON(meta, template["spec"]))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"kind": "PodList", "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": "9"}, "items": items})
}

func (j *kubeJob) podJSON(of map[string]any, spec any) map[string]any {
	meta := maps.Clone(of)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["namespace"], meta["uid"],
		meta["creationTimestamp"] = j.objectName()+"-x7k2p", j.namespace, "pod-"+j.objectName(),
		formatTime(j.startedAt)
	phase, state, ended := "Running",
		map[string]any{"running": map[string]any{"startedAt": formatTime(j.startedAt)}},
		formatTime(j.startedAt.Add(j.image.Takes))
	status := map[string]any{"startTime": formatTime(j.startedAt)}
	switch {
	case j.image.Waits != "":
		phase, state = "Pending", map[string]any{"waiting": map[string]any{"reason": j.image.Waits, "message": "Back-off pulling image"}}
	case j.isOver() && j.image.Evicted:
		status["phase"], status["reason"], status["message"] = "Failed", "Evicted", "The node was low on resource: memory."
		return map[string]any{"metadata": meta, "spec": spec, "status": status}
	case j.isOver():
		code, reason := j.image.Exit, "Completed"
		if code != 0 {
			reason = "Error"
		}
		if j.image.OOM {
			code, reason = 137, "OOMKilled"
		}
		phase = "Succeeded"
		if code != 0 {
			phase = "Failed"
		}
		state = map[string]any{"terminated": map[string]any{"exitCode": code, "reason": reason,
			"startedAt": formatTime(j.startedAt), "finishedAt": ended}}
	}
	c := j.firstContainer()
	status["phase"] = phase
	status["containerStatuses"] = []any{map[string]any{"name": c["name"], "image": c["image"],
		"imageID": "", "ready": phase == "Running", "restartCount": 0, "state": state}}
	return map[string]any{"metadata": meta, "spec": spec, "status": status}
}

// serveLog writes the log of a pod: at once, or as it grows if the client follows it.
func (k *Kubernetes) serveLog(w http.ResponseWriter, r *http.Request) {
	k.held.Lock()
	var j *kubeJob
	for _, one := range k.jobs {
		if one.namespace == r.PathValue("namespace") && !one.deleted && one.objectName()+"-x7k2p" == r.PathValue("pod") {
			j = one
		}
	}
	k.held.Unlock()
	if j == nil {
		kubeRefuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("pods %q not found", r.PathValue("pod")))
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	n := len(j.image.Prints)
	for i, line := range j.image.Prints {
		if due := time.Until(j.startedAt.Add(j.image.Takes * time.Duration(i) / time.Duration(n))); due > 0 {
			if r.FormValue("follow") != "true" {
				return
			}
			select {
			case <-time.After(due):
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprintln(w, line)
		_ = http.NewResponseController(w).Flush() // a disconnected client does not matter
	}
	if r.FormValue("follow") != "true" {
		return
	}
	select {
	case <-time.After(time.Until(j.startedAt.Add(j.image.Takes))):
	case <-r.Context().Done():
		return
	}
	if j.image.Until != nil {
		select {
		case <-j.image.Until:
		case <-r.Context().Done():
		}
	}
}
