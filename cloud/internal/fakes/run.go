package fakes

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Run is a fake of Cloud Run in which every requested job exists.
type Run struct {
	mu         sync.Mutex
	behave     map[string]Behavior // behavior of a job's executions, by its short name
	executions []*Execution        // of all jobs, oldest first
}

// Behavior is the behavior of a job's executions.
type Behavior struct {
	Looks int             // number of looks that show it unfinished
	Pends int             // number of these looks that show it pending
	Takes time.Duration   // minimal duration
	Until <-chan struct{} // the execution runs until it is closed; nil for no wait
	Fails string          // error message; "" for success
	Mute  bool            // it fails without a message
	Gone  bool            // it is deleted from outside
	// Work is called when the execution starts.
	Work func(env map[string]string)
}

// Execution is an execution of a job.
type Execution struct {
	Name      string // full name
	Job       string // full name
	Env       map[string]string
	TaskCount int
	Timeout   string
	Begun     time.Time
	Cancels   int // number of cancellations

	behavior Behavior
	looks    int
}

func newRun() *Run { return &Run{behave: map[string]Behavior{}} }

// Behave sets the behavior of a job's executions from now on.
func (f *Run) Behave(job string, b Behavior) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behave[job] = b
}

// Executions returns the executions of a job, oldest first.
func (f *Run) Executions(job string) (all []Execution) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.executions {
		if strings.HasSuffix(e.Job, "/"+job) {
			one := *e
			one.Env = maps.Clone(e.Env)
			all = append(all, one)
		}
	}
	return all
}

// ServeHTTP implements the parts of API v2 about jobs and executions.
func (f *Run) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	parts := strings.Split(path, "/")
	verb := ""
	if name, action, ok := strings.Cut(parts[len(parts)-1], ":"); ok {
		parts[len(parts)-1], verb = name, action
		path = strings.TrimSuffix(path, ":"+action)
	}
	collections := len(parts) >= 6 && parts[0] == "projects" && parts[2] == "locations" && parts[4] == "jobs"
	f.mu.Lock()
	defer f.mu.Unlock()
	switch what := r.Method + " " + strconv.Itoa(len(parts)) + verb; {
	case !collections || len(parts) > 6 && parts[6] != "executions":
		http.NotFound(w, r)
	case what == "POST 6run":
		f.runJob(w, r, path)
	case what == "GET 7":
		f.listExecutions(w, r, path)
	case what == "GET 8":
		f.getExecution(w, path)
	case what == "POST 8cancel":
		f.cancelExecution(w, path)
	default:
		http.NotFound(w, r)
	}
}

// runRequest is an accepted request. Any other field is refused, as by the vendor.
type runRequest struct {
	Etag         string `json:"etag"`
	ValidateOnly bool   `json:"validateOnly"`
	Overrides    struct {
		ContainerOverrides []struct {
			Name      string   `json:"name"`
			Args      []string `json:"args"`
			ClearArgs bool     `json:"clearArgs"`
			Env       []struct {
				Name  string `json:"name"`
				Value string `json:"value"`
			} `json:"env"`
		} `json:"containerOverrides"`
		TaskCount int    `json:"taskCount"`
		Timeout   string `json:"timeout"`
	} `json:"overrides"`
}

// maxValue is the maximal length of a variable's value.
const maxValue = 32768

func (f *Run) runJob(w http.ResponseWriter, r *http.Request, job string) {
	var asked runRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil {
		writeRefusal(w, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
		return
	}
	e := &Execution{Job: job, Env: map[string]string{}, TaskCount: asked.Overrides.TaskCount,
		Timeout: asked.Overrides.Timeout, Begun: time.Now()}
	for _, c := range asked.Overrides.ContainerOverrides {
		for _, v := range c.Env {
			if len(v.Value) > maxValue {
				writeRefusal(w, http.StatusBadRequest, "INVALID_ARGUMENT", "the value of "+v.Name+" is too long")
				return
			}
			e.Env[v.Name] = v.Value
		}
	}
	short := job[strings.LastIndexByte(job, '/')+1:]
	e.Name = fmt.Sprintf("%s/executions/%s-%05d", job, short, len(f.executions))
	e.behavior = f.behave[short]
	f.executions = append(f.executions, e)
	if e.behavior.Work != nil {
		e.behavior.Work(maps.Clone(e.Env))
	}
	metadata := e.executionJSON(true)
	metadata["@type"] = "type.googleapis.com/google.cloud.run.v2.Execution"
	writeJSON(w, http.StatusOK, map[string]any{"name": job[:strings.Index(job, "/jobs/")] + "/operations/o", "metadata": metadata})
}

func (f *Run) findExecution(name string) *Execution {
	i := slices.IndexFunc(f.executions, func(e *Execution) bool { return e.Name == name && !e.behavior.Gone })
	if i < 0 {
		return nil
	}
	return f.executions[i]
}

func (f *Run) getExecution(w http.ResponseWriter, name string) {
	e := f.findExecution(name)
	if e == nil {
		writeRefusal(w, http.StatusNotFound, "NOT_FOUND", "Resource '"+name+"' was not found")
		return
	}
	writeJSON(w, http.StatusOK, e.lookJSON())
}

func (f *Run) listExecutions(w http.ResponseWriter, r *http.Request, path string) {
	var all []*Execution
	for _, e := range slices.Backward(f.executions) {
		if e.Job+"/executions" == path && !e.behavior.Gone {
			all = append(all, e)
		}
	}
	size, _ := strconv.Atoi(r.FormValue("pageSize"))
	from, _ := strconv.Atoi(r.FormValue("pageToken"))
	if size <= 0 || size > 100 {
		size = 100
	}
	page := map[string]any{}
	if to := from + size; to < len(all) {
		page["nextPageToken"] = strconv.Itoa(to)
		all = all[:to]
	}
	told := []any{}
	for _, e := range all[min(from, len(all)):] {
		told = append(told, e.lookJSON())
	}
	page["executions"] = told
	writeJSON(w, http.StatusOK, page)
}

func (f *Run) cancelExecution(w http.ResponseWriter, name string) {
	e := f.findExecution(name)
	switch {
	case e == nil:
		writeRefusal(w, http.StatusNotFound, "NOT_FOUND", "Resource '"+name+"' was not found")
		return
	case e.isOver():
		writeRefusal(w, http.StatusBadRequest, "FAILED_PRECONDITION", "the execution has completed")
		return
	}
	e.Cancels++
	writeJSON(w, http.StatusOK, map[string]any{"name": "projects/p/locations/r/operations/c", "metadata": e.executionJSON(false)})
}

func (e *Execution) isOver() bool {
	return e.Cancels > 0 || e.looks >= e.behavior.Looks && time.Since(e.Begun) >= e.behavior.Takes && isClosed(e.behavior.Until)
}

// isClosed reports whether a channel is closed; true if it is nil.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return c == nil
	}
}

// lookJSON returns the status of an execution and counts the look.
func (e *Execution) lookJSON() map[string]any {
	told := e.executionJSON(e.looks < e.behavior.Pends)
	e.looks++
	return told
}

func (e *Execution) executionJSON(pending bool) map[string]any {
	env := []any{map[string]any{"name": "OF_THE_JOB", "value": "1"}}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		env = append(env, map[string]any{"name": name, "value": e.Env[name]})
	}
	pending = pending && !e.isOver()
	started := map[string]any{"type": "Started", "state": "CONDITION_PENDING"}
	completed := map[string]any{"type": "Completed", "state": "CONDITION_PENDING",
		"lastTransitionTime": e.Begun.UTC().Format(time.RFC3339Nano)}
	if !pending {
		started["state"], completed["state"] = "CONDITION_SUCCEEDED", "CONDITION_RECONCILING"
	}
	told := map[string]any{
		"name": e.Name, "uid": "u", "generation": "1",
		"job": e.Job[strings.LastIndexByte(e.Job, '/')+1:], "taskCount": 1, "parallelism": 1,
		"reconciling": true,
		"createTime":  e.Begun.UTC().Format(time.RFC3339Nano),
		"logUri":      "https://console.cloud.google.com/logs/viewer?execution=" + e.Name,
		"template": map[string]any{"containers": []any{map[string]any{"image": "gcr.io/p/i",
			"env": env}}, "maxRetries": 0, "timeout": "600s"},
		"conditions": []any{started, map[string]any{"type": "ResourcesAvailable", "state": "CONDITION_SUCCEEDED"}, completed},
	}
	if !pending {
		told["startTime"] = e.Begun.UTC().Format(time.RFC3339Nano)
	}
	if !e.isOver() {
		return told
	}
	told["reconciling"], told["completionTime"] = false, time.Now().UTC().Format(time.RFC3339Nano)
	switch {
	case e.Cancels > 0:
		completed["state"], completed["executionReason"], completed["message"],
			told["cancelledCount"] = "CONDITION_FAILED", "CANCELLED", "The execution was cancelled.", 1
	case e.behavior.Fails != "" || e.behavior.Mute:
		completed["state"], completed["executionReason"], told["failedCount"] = "CONDITION_FAILED", "NON_ZERO_EXIT_CODE", 1
		if e.behavior.Fails != "" {
			completed["message"] = e.behavior.Fails
		}
	default:
		completed["state"], told["succeededCount"] = "CONDITION_SUCCEEDED", 1
	}
	return told
}

// Cancel cancels all executions of a job, as another user could.
func (f *Run) Cancel(job string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.executions {
		if strings.HasSuffix(e.Job, "/"+job) && !e.isOver() {
			e.Cancels++
		}
	}
}
