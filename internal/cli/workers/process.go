package workers

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/job"
	"github.com/troupe-engine/troupe/worker"
)

// programService is the service that a worker with --process offers by default.
const programService = "process"

// programHandler runs the programs that jobs name in their params, as a member does.
func programHandler(r *program.Runner) worker.Handler {
	return func(ctx context.Context, j worker.Job) (any, error) {
		named, input, err := programOf(&j)
		if err != nil {
			return nil, worker.Fatal(err)
		}
		res := r.Run(ctx, program.Job{Type: named.Type, Program: &named.Program, Input: input,
			Facts: program.Facts{Run: j.Task, Flow: j.Flow, Step: j.Step, Unit: j.Unit,
				Units: j.Units, Many: j.Units > 1, Attempt: j.Attempt, Retries: -1,
				Task: j.Key(), Execution: j.ID, Own: jobVariables(j)},
			Stdout: job.OpenOutput(j.Log, lines.Stdout), Stderr: job.OpenOutput(j.Log, lines.Stderr)})
		job.Tell(ctx, res.Metrics...)
		if res.Error == "" {
			return res.Output, nil
		}
		err = worker.Detailed(errors.New(res.Error), res.Details)
		if res.Fatal {
			err = worker.Fatal(err)
		}
		return nil, err
	}
}

// namedProgram is a program in params.
type namedProgram struct {
	Type flow.ExecType `json:"type"`
	flow.Program
}

// programOf returns the program that a job names, and its input. If the input is null, the other
// params are the input.
func programOf(j *worker.Job) (p namedProgram, input json.RawMessage, err error) {
	var params map[string]json.RawMessage
	if err := json.Unmarshal(j.Params, &params); err != nil || params[flow.ProgramParam] == nil {
		return p, nil, errors.New("the job has no program: its node needs exec: {type: process, service: …, command: …}")
	}
	if err := json.Unmarshal(params[flow.ProgramParam], &p); err != nil || !p.Type.Started() {
		return p, nil, errors.New("unknown program in the job: the worker may be older than the member")
	}
	delete(params, flow.ProgramParam)
	if input = j.Input; string(input) == "null" || len(input) == 0 {
		input, err = json.Marshal(params)
	}
	return p, input, err
}
