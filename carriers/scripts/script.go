package scripts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/internal/lines"
)

// Options configure a Carrier. The zero value starts nothing.
type Options struct {
	// Allow permits scripts. Users who may create flows may then run programs as the user of this
	// process.
	Allow bool
	// Dir is the directory that must contain each script's work_dir. If empty, there is no
	// restriction.
	Dir string
	// Logs stores the output of scripts while they run. May be nil.
	Logs *logs.Book
	// MaxOutput bounds the output of a script, and its encoded result. 0 means 1 MiB. A larger
	// output fails the attempt.
	MaxOutput int
	// Env names additional environment variables of this process for scripts.
	Env []string
}

const (
	defaultMaxOutput = 1 << 20
	defaultTimeout   = 10 * time.Second
)

// Carrier starts scripts.
type Carrier struct {
	opts     Options
	env      []string
	patience child.Patience
}

// New returns a carrier. Its scripts get the permitted part of the current environment. It removes
// code files that a killed process has left.
func New(opts Options) *Carrier {
	if opts.Allow {
		codeFiles.Sweep()
	}
	opts.MaxOutput = cmp.Or(opts.MaxOutput, defaultMaxOutput)
	return &Carrier{opts: opts, env: child.Environment(opts.Env), patience: child.NewPatience()}
}

// Carry runs the job's script, with retries up to the job's limit.
func (c *Carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	cmd, cleanup, err := c.prepareCommand(ctx, &job)
	if err != nil {
		hopeless := flow.ErrorKindOf(err) != ""
		return flow.Report{Error: failureText(err, ""), Fatal: hopeless}
	}
	defer cleanup()
	printed := takeBuffer()
	defer giveBuffer(printed)
	log := c.opts.Logs.Open(job.Task, job.ID())
	printed.copyTo, cmd.stderr.copyTo = log.Stream(lines.Stdout), log.Stream(lines.Stderr)
	rep := c.runTries(ctx, &job, cmd, printed)
	if rep.Error == "" {
		rep.Worker, rep.URL = "local-script:"+job.Exec.Script.Cmd, "local"
	}
	rep.Log = log.Close()
	return rep
}

// runTries runs the script until it succeeds or no retries are left, and returns the last report.
func (c *Carrier) runTries(ctx context.Context, job *flow.Job, cmd *scriptCommand, printed *outputBuffer) flow.Report {
	for try := 1; ; try++ {
		printed.Reset()
		printed.tail, cmd.stderr.kept = nil, nil
		out, err := c.runCommand(ctx, cmd, printed)
		if err == nil {
			return c.outputReport(printed.Bytes(), out.cut, job.Exec.Script.OutputMode == "json")
		}
		last := cmp.Or(lastLine(cmd.stderr.kept), lastLine(printed.lastOutput()))
		if try >= job.Exec.MaxAttempts || !carriers.Pause(ctx, job.Exec.TryDelayMS) {
			return flow.Report{Error: failureText(err, last), TimedOut: out.timedOut}
		}
	}
}

// outputReport returns the report with the complete output of a script, or an error.
func (c *Carrier) outputReport(printed []byte, cut, asJSON bool) flow.Report {
	var output json.RawMessage
	if !cut {
		output = encodeOutput(printed, asJSON)
	}
	if cut || len(output) > c.opts.MaxOutput {
		return flow.Report{Fatal: true, Error: fmt.Sprintf(
			"failed: the output has more than %d bytes, the limit of a value (--max-value); "+
				"keep large data elsewhere and pass a reference", c.opts.MaxOutput)}
	}
	return flow.Report{Output: output}
}

func failureText(err error, last string) string {
	if last == "" {
		return fmt.Sprintf("failed: %v", err)
	}
	return fmt.Sprintf("failed: %v: %s", err, last)
}
