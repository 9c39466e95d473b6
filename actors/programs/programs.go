package programs

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/actors/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
)

// Options of a Carrier. The zero value starts nothing.
type Options struct {
	// Allow lets programs run. Whoever may create flows may then run programs as this process's user.
	Allow bool
	// Logs keeps what programs print, while they do. nil = nobody does.
	Logs *logs.Book

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

// Carry runs the job's program once.
func (c *Carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	if !c.opts.Allow {
		return flow.Report{Fatal: true, Error: "programs are not allowed on this server; its operator can allow them with --allow-scripts"}
	}
	log := c.opts.Logs.Open(job.Task, job.ID())
	res := c.runner.Run(ctx, program.Job{Type: job.Exec.Type, Program: job.Exec.Program, Input: input(&job), Facts: facts(&job),
		Stdout: log.Stream(lines.Stdout), Stderr: log.Stream(lines.Stderr)})
	rep := flow.Report{Output: res.Output, Error: res.Error, Fatal: res.Fatal, URL: "local", Log: log.Close()}
	if res.PID > 0 {
		rep.Worker = string(job.Exec.Type) + ":" + strconv.Itoa(res.PID)
	}
	return rep
}

// input is the node's, or where that is null, as it is of a graph's node without prep, its params.
func input(job *flow.Job) json.RawMessage {
	if expr.KindOf(job.Input) != expr.KindNull || len(job.Params) == 0 {
		return job.Input
	}
	return job.Params
}

func facts(job *flow.Job) program.Facts {
	unit := job.Address
	unit.Attempt = 0
	f := program.Facts{
		Run: job.Task, Step: job.Step(), Unit: job.Unit, Units: max(job.Units, 1), Many: !job.Single, Attempt: job.Attempt,
		Task: flow.JobID(job.Task, unit), Execution: job.ID(), TimeoutMS: job.TimeoutMS, Own: carry.Variables(job),
	}
	if job.Plan == nil {
		return f
	}
	f.Flow = job.Plan.FlowSlug
	if scope := job.Plan.ScopeOf(job.Scope); scope != nil && scope.Nodes[job.Node] != nil {
		n := scope.Nodes[job.Node]
		f.Retries, f.Upstream = n.Retry.Max, upstream(n, job.Input)
	}
	return f
}

// upstream is what an input has of the node's dependencies.
func upstream(n *flow.PlanNode, input json.RawMessage) json.RawMessage {
	if n.Dag == nil || n.Exec.Program == nil || !n.Exec.Program.Upstream {
		return nil
	}
	b := []byte{'{'}
	for _, seen := range n.Dag.Sees {
		if output, ok := expr.Field(input, seen.Name); ok {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(expr.AppendQuote(b, seen.Name), ':'), output...)
		}
	}
	return append(b, '}')
}
