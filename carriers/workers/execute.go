package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow"
)

// Executor returns the carrier for programs on Ork workers. The job names the worker's URL, so the
// worker need not be registered. The URL must be in the networks that are allowed for workers.
func (r *Registry) Executor() *Executor { return &Executor{r} }

// Executor calls Ork workers.
type Executor struct{ registry *Registry }

// executeRequest is the request to an Ork worker.
type executeRequest struct {
	TaskID   string         `json:"task_id"`
	TaskName string         `json:"task_name"`
	Executor string         `json:"executor_type"`
	Params   map[string]any `json:"params"`
}

// executeAnswer is the answer of an Ork worker.
type executeAnswer struct {
	Status   string          `json:"status"`
	Output   json.RawMessage `json:"output"`
	Error    string          `json:"error"`
	Deferred json.RawMessage `json:"deferred"`
}

// Carry calls the job's worker once. The job has its own time limit.
func (x *Executor) Carry(ctx context.Context, job flow.Job) flow.Report {
	p := job.Exec.Program
	rep := flow.Report{URL: p.URL, Worker: "worker"}
	if job.TimeoutMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flow.Milliseconds(job.TimeoutMS))
		defer cancel()
	}
	status, body, err := x.sendJob(ctx, &job)
	switch {
	case ctx.Err() != nil:
		failed := failureReport(ctx, "")
		rep.Error, rep.TimedOut = failed.Error, failed.TimedOut
	case err != nil:
		rep.Error = fmt.Sprintf("the worker %s gives no answer: %v", p.URL, errorCause(err))
	default:
		readExecuted(&rep, status, body)
	}
	return rep
}

// errorCause returns the error of a call without its method and address.
func errorCause(err error) error {
	var called *url.Error
	if errors.As(err, &called) {
		return called.Err
	}
	return err
}

// sendJob sends the job, and reads the answer.
func (x *Executor) sendJob(ctx context.Context, job *flow.Job) (status string, body []byte, err error) {
	p := job.Exec.Program
	text, err := json.Marshal(executeRequest{TaskID: job.ID(), TaskName: nodeName(job), Executor: p.Executor, Params: paramsOf(job)})
	if err != nil {
		return "", nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(p.URL, "/")+"/execute", bytes.NewReader(text))
	if err != nil {
		return "", nil, err
	}
	req.Header = jobHeader(job)
	resp, err := x.registry.client.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	most := int64(x.registry.opts.MaxAnswer)
	body, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	if resp.StatusCode == http.StatusOK {
		return "", body, err
	}
	return resp.Status, body, err
}

// paramsOf returns the program and its parameters.
func paramsOf(job *flow.Job) map[string]any {
	p := job.Exec.Program
	params := map[string]any{"task_input": orNull(jobInput(job)), "attempt": job.Attempt,
		"run_id": job.Task, "task_name": nodeName(job), "task_index": job.Unit, "key": job.Key()}
	for name, text := range map[string]string{"command": p.Command, "task_file": p.File,
		"task_module": p.Module, "task_function": p.Function, "python_path": p.Python} {
		if text != "" {
			params[name] = text
		}
	}
	if p.Executor == "library" && p.File != "" {
		params["library_path"] = p.File
	}
	if p.Args != nil {
		params["command"] = p.Args
	}
	if len(p.Env) > 0 {
		params["env"] = p.Env
	}
	if job.TimeoutMS > 0 {
		params["timeout_seconds"] = float64(job.TimeoutMS) / 1000
	}
	if job.Plan != nil && job.Plan.FlowSlug != "" {
		params["workflow_name"] = job.Plan.FlowSlug
	}
	return params
}

// nodeName returns the display name of the job's node.
func nodeName(job *flow.Job) string {
	if job.Plan != nil {
		if scope := job.Plan.ScopeOf(job.Scope); scope != nil && scope.Nodes[job.Node] != nil && scope.Nodes[job.Node].Name != "" {
			return scope.Nodes[job.Node].Name
		}
	}
	return job.Step()
}

// jobInput returns the input of a job. For null input, as in a graph node without prep, it returns
// the params.
func jobInput(job *flow.Job) json.RawMessage {
	if text := bytes.TrimSpace(job.Input); len(text) > 0 && string(text) != "null" || len(job.Params) == 0 {
		return job.Input
	}
	return job.Params
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// readExecuted fills in a worker's answer. status is the HTTP status, or "" for 200.
func readExecuted(rep *flow.Report, status string, body []byte) {
	var answer executeAnswer
	err := json.Unmarshal(body, &answer)
	switch {
	case answer.Status == "failed" && answer.Error != "":
		rep.Error = answer.Error
	case status != "":
		rep.Error = "the worker answered " + status + answerExcerpt(body)
	case err != nil:
		rep.Error = "the worker answered without a JSON object" + answerExcerpt(body)
	case answer.Status == "failed":
		rep.Error = "the worker says that it failed, and not why"
	case answer.Status != "success":
		rep.Error = fmt.Sprintf("the worker answered with the status %.80q, which is neither success nor failed", answer.Status)
	case len(answer.Deferred) > 0 && string(answer.Deferred) != "null":
		// in the form of a program's output
		rep.Output = slices.Concat([]byte(`{"deferred":`), answer.Deferred, []byte(`}`))
	default:
		rep.Output = orNull(answer.Output)
	}
}

// answerExcerpt returns the start of a worker's answer.
func answerExcerpt(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 500)]), string(utf8.RuneError)))
	if text == "" {
		return ""
	}
	return ": " + text
}
