package programs

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
	jobs "github.com/troupe-engine/troupe/job"
)

// Options configure a Carrier. The zero value starts nothing.
type Options struct {
	// Allow permits programs. Users who may create flows may then run programs as the user of this
	// process.
	Allow bool
	// Logs stores the output of programs while they run. May be nil.
	Logs *logs.Book
	// Files lets programs with `report: object_store` report through files.
	Files Files

	program.Options
}

// Carrier starts programs.
type Carrier struct {
	opts   Options
	runner *program.Runner
}

// New returns a carrier. Its programs get the permitted part of the current environment.
func New(opts Options) *Carrier {
	return &Carrier{opts: opts, runner: program.New(opts.Options)}
}

// Close ends the processes that are kept ready for jobs. Call it when no jobs run.
func (c *Carrier) Close() {
	if c != nil {
		c.runner.Close()
	}
}

// Inspect imports a Python program, and returns the parameters and results of its functions.
func (c *Carrier) Inspect(ctx context.Context, p *flow.Program) (json.RawMessage, error) {
	if !c.opts.Allow {
		return nil, errors.New(notAllowed)
	}
	return c.runner.Inspect(ctx, p, nil)
}

const notAllowed = "programs are not allowed on this server; its operator can allow them with --allow-scripts"

// Carry runs the job's program once.
func (c *Carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	if !c.opts.Allow {
		return flow.Report{Fatal: true, Error: notAllowed}
	}
	log := c.opts.Logs.Open(job.Task, job.ID())
	p := program.Job{Type: job.Exec.Type, Program: job.Exec.Program, Input: carriers.Input(&job), Facts: Facts(&job),
		Stdout: log.Stream(lines.Stdout), Stderr: log.Stream(lines.Stderr)}
	var res program.Result
	if job.Exec.ByFiles() {
		res = c.reported(ctx, &job, p)
	} else {
		res = c.runner.Run(ctx, p)
	}
	rep := flow.Report{Output: res.Output, Error: res.Error, Details: res.Details,
		Metrics: jobs.NumbersJSON(res.Metrics), Fatal: res.Fatal, URL: "local", Log: log.Close()}
	if res.PID > 0 {
		rep.Worker = string(job.Exec.Type) + ":" + strconv.Itoa(res.PID)
	}
	return rep
}

// Facts returns the information about a job for its program.
func Facts(job *flow.Job) program.Facts {
	f := program.Facts{
		Run: job.Task, Step: job.Step(), Unit: job.Unit, Units: max(job.Units, 1),
		PerItem: job.PerItem, Many: !job.Single, Attempt: job.Attempt,
		Task: job.Key(), Execution: job.ID(), TimeoutMS: job.TimeoutMS, Own: carriers.Variables(job),
	}
	if job.Plan == nil {
		return f
	}
	f.Flow = job.Plan.FlowSlug
	if n := carriers.NodeOf(job); n != nil {
		f.Retries = n.Retry.Max
	}
	if p := job.Exec.Program; p != nil && p.Upstream {
		f.Upstream = carriers.Upstream(job)
	}
	return f
}
