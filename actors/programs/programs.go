package programs

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/actors/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
	jobs "github.com/troupe-engine/troupe/job"
)

// Options of a Carrier. The zero value starts nothing.
type Options struct {
	// Allow lets programs run. Whoever may create flows may then run programs as this process's
	// user.
	Allow bool
	// Logs keeps what programs print, while they do. nil = nobody does.
	Logs *logs.Book
	// Files are how programs with report: object_store do so.
	Files Files

	program.Options
}

// Carrier starts programs.
type Carrier struct {
	opts   Options
	runner *program.Runner
}

// New returns a carrier whose programs see what they may of the environment this process has now.
func New(opts Options) *Carrier {
	return &Carrier{opts: opts, runner: program.New(opts.Options)}
}

// Close ends what is kept ready for jobs. Nobody has one carried out any more.
func (c *Carrier) Close() {
	if c != nil {
		c.runner.Close()
	}
}

// Inspect tells what the functions of a Python program take and return; the program is imported for
// that.
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
	p := program.Job{Type: job.Exec.Type, Program: job.Exec.Program, Input: carry.Input(&job), Facts: Facts(&job),
		Stdout: log.Stream(lines.Stdout), Stderr: log.Stream(lines.Stderr)}
	var res program.Result
	if job.Exec.ByFiles() {
		res = c.reported(ctx, &job, p)
	} else {
		res = c.runner.Run(ctx, p)
	}
	rep := flow.Report{Output: res.Output, Error: res.Error, Details: res.Details, Metrics: jobs.NumbersJSON(res.Metrics), Fatal: res.Fatal, URL: "local", Log: log.Close()}
	if res.PID > 0 {
		rep.Worker = string(job.Exec.Type) + ":" + strconv.Itoa(res.PID)
	}
	return rep
}

// Facts are what a program is told of its job.
func Facts(job *flow.Job) program.Facts {
	f := program.Facts{
		Run: job.Task, Step: job.Step(), Unit: job.Unit, Units: max(job.Units, 1), PerItem: job.PerItem, Many: !job.Single, Attempt: job.Attempt,
		Task: job.Key(), Execution: job.ID(), TimeoutMS: job.TimeoutMS, Own: carry.Variables(job),
	}
	if job.Plan == nil {
		return f
	}
	f.Flow = job.Plan.FlowSlug
	if n := carry.NodeOf(job); n != nil {
		f.Retries = n.Retry.Max
	}
	if p := job.Exec.Program; p != nil && p.Upstream {
		f.Upstream = carry.Upstream(job)
	}
	return f
}
