package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// orkExecution is a request to run a program.
type orkExecution struct {
	TaskID   string `json:"task_id"`
	TaskName string `json:"task_name"`
	Executor string `json:"executor_type"`
	Params   struct {
		Input    json.RawMessage            `json:"task_input"`
		Env      map[string]json.RawMessage `json:"env"`
		Command  json.RawMessage            `json:"command"`
		File     string                     `json:"task_file"`
		Module   string                     `json:"task_module"`
		Function string                     `json:"task_function"`
		Python   string                     `json:"python_path"`
		Library  string                     `json:"library_path"`
		Workflow string                     `json:"workflow_name"`
		Run      string                     `json:"run_id"`
		Attempt  int                        `json:"attempt"`
		Key      string                     `json:"key"` // "" in requests from Ork itself
		Timeout  float64                    `json:"timeout_seconds"`
	} `json:"params"`
}

// orkResult is the answer to an orkExecution.
type orkResult struct {
	Status string          `json:"status"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// handleExecute runs a program to its end, or until the caller is gone.
func (w *orkWorker) handleExecute(out http.ResponseWriter, r *http.Request) {
	var asked orkExecution
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(out, "the body is not an execute request: "+err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-r.Context().Done():
		return
	}
	output, err := w.runProgram(r.Context(), &asked)
	if err != nil {
		answerJSON(out, orkResult{Status: "failed", Error: err.Error()})
		return
	}
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	answerJSON(out, orkResult{Status: "success", Output: output})
}

func (w *orkWorker) runProgram(ctx context.Context, asked *orkExecution) (json.RawMessage, error) {
	kind, p, err := asked.buildProgram()
	if err != nil {
		return nil, err
	}
	if seconds := asked.Params.Timeout; seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(min(seconds, 1e9)*float64(time.Second)), errors.New(flow.ProgramTimeout))
		defer cancel()
	}
	var own map[string]string
	if asked.Params.Key != "" {
		own = map[string]string{"TROUPE_KEY": asked.Params.Key}
	}
	res := w.runner.Run(ctx, program.Job{Type: kind, Program: p, Input: asked.Params.Input, Facts: program.Facts{
		Run: asked.Params.Run, Flow: asked.Params.Workflow, Step: asked.TaskName, Units: 1,
		Attempt: max(asked.Params.Attempt, 1), Retries: -1,
		Task: asked.TaskID, Execution: asked.TaskID, TimeoutMS: int64(min(asked.Params.Timeout, 1e9) * 1000), Own: own}})
	if res.Error != "" {
		return nil, errors.New(res.Error)
	}
	return res.Output, nil
}

// orkRefusal is an error text that clients of Ork's workers know.
type orkRefusal string

func (r orkRefusal) Error() string { return string(r) }

// buildProgram returns the program to run and its type. Its error texts are those of Ork's workers.
func (e *orkExecution) buildProgram() (kind flow.ExecType, p *flow.Program, err error) {
	p = &flow.Program{File: e.Params.File, Module: e.Params.Module, Function: e.Params.Function,
		Python: e.Params.Python, Env: e.envVariables(), LooseMarks: true}
	switch strings.ToLower(e.Executor) {
	case "process", "shell":
		kind = flow.ExecProcess
	case "python":
		kind = flow.ExecPython
	case "cloudrun", "cloud_run":
		return "", nil, orkRefusal("CloudRun executor not supported in worker")
	case "library":
		if e.Params.Library == "" {
			return "", nil, orkRefusal("Missing library_path in task parameters")
		}
		kind, p.File, p.LooseMarks = flow.ExecLibrary, e.Params.Library, false
	default:
		return "", nil, orkRefusal(fmt.Sprintf("Unsupported executor type: %.80s", e.Executor))
	}
	if kind == flow.ExecProcess && p.File == "" && e.setCommand(p) != nil {
		return "", nil, errors.New("the task has neither a command nor a task_file")
	}
	if kind == flow.ExecPython && p.File == "" && p.Module == "" {
		return "", nil, errors.New("the task has neither a task_file nor a task_module")
	}
	return kind, p, nil
}

// setCommand reads a command line, or a list of a program and its arguments.
func (e *orkExecution) setCommand(p *flow.Program) error {
	if json.Unmarshal(e.Params.Command, &p.Args) == nil && len(p.Args) > 0 {
		return nil
	}
	p.Args = nil
	if err := json.Unmarshal(e.Params.Command, &p.Command); err != nil || strings.TrimSpace(p.Command) == "" {
		return errors.New("the command is empty")
	}
	return nil
}

// envVariables returns texts unchanged, and numbers and booleans as they are written.
func (e *orkExecution) envVariables() map[string]string {
	all := map[string]string{}
	for name, value := range e.Params.Env {
		var text string
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
		case json.Unmarshal(value, &text) == nil && value[0] == '"':
			all[name] = text
		case value[0] != '{' && value[0] != '[' && string(value) != "null":
			all[name] = string(value)
		}
	}
	return all
}
