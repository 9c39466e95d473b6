package script

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/persistence"
)

// Options of a Carrier. The zero value starts nothing.
type Options struct {
	// Allow lets scripts run. Whoever may create flows may then run programs as this process's user.
	Allow bool
	// Dir is where scripts run and what their work_dir must be inside of. "" = anywhere.
	Dir string
	// Logs keeps what scripts print. nil = nobody does.
	Logs persistence.Logs
	// MaxOutput bounds what a script may print, and its encoded result; 0 = 1 MiB. More fails its attempt.
	MaxOutput int
	// Env names what scripts see of this process's environment beside the little that all of them do.
	Env []string
	// Logger hears of logs that could not be kept; nil = slog.Default().
	Logger *slog.Logger
}

const (
	defaultMaxOutput = 1 << 20
	// maxLog bounds what is kept of an attempt's log, however much may be printed.
	maxLog         = 1 << 20
	defaultTimeout = 10 * time.Second
)

// Carrier starts scripts.
type Carrier struct {
	opts Options
	env  []string
	turn chan struct{} // of those who wait for what a start needs
}

// New returns a carrier whose scripts see what they may of the environment this process has now.
func New(opts Options) *Carrier {
	opts.MaxOutput = cmp.Or(opts.MaxOutput, defaultMaxOutput)
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	return &Carrier{opts: opts, env: child.Environment(opts.Env), turn: make(chan struct{}, 1)}
}

// Carry runs the job's script until it succeeds or its tries are used up.
func (c *Carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	cmd, cleanup, err := c.prepare(ctx, &job)
	if err != nil {
		hopeless := flow.ErrorKindOf(err) != ""
		return flow.Report{Error: failure(err, ""), Fatal: hopeless}
	}
	defer cleanup()
	log := takeBuffer()
	defer giveBuffer(log)
	rep := c.tries(ctx, &job, cmd, log)
	if rep.Error == "" {
		rep.Worker, rep.URL = "local-script:"+job.Exec.Script.Cmd, "local"
	}
	rep.Log = c.keep(ctx, &job, log.Bytes())
	return rep
}

// tries leaves in log what the tries printed: all of it, or the last ones if it is too much.
func (c *Carrier) tries(ctx context.Context, job *flow.Job, cmd *command, log *buffer) flow.Report {
	for try := 1; ; try++ {
		if log.Len() > c.opts.MaxOutput {
			log.Reset()
		}
		from := log.Len()
		out, err := c.run(ctx, cmd, log)
		if err == nil {
			return c.result(log.Bytes()[from:], out.cut, job.Exec.Script.OutputMode == "json")
		}
		last := lastLine(log.Bytes()[from:])
		if try >= job.Exec.MaxAttempts || !carry.Pause(ctx, job.Exec.TryDelayMS) {
			return flow.Report{Error: failure(err, last), TimedOut: out.timedOut}
		}
	}
}

// result is what a script printed, all of it or nothing.
func (c *Carrier) result(printed []byte, cut, asJSON bool) flow.Report {
	var output json.RawMessage
	if !cut {
		output = encode(printed, asJSON)
	}
	if cut || len(output) > c.opts.MaxOutput {
		return flow.Report{Fatal: true, Error: fmt.Sprintf(
			"failed: the output has more than %d bytes, the limit of a value (--max-value); keep large data elsewhere and pass a reference", c.opts.MaxOutput)}
	}
	return flow.Report{Output: output}
}

func failure(err error, last string) string {
	if last == "" {
		return fmt.Sprintf("failed: %v", err)
	}
	return fmt.Sprintf("failed: %v: %s", err, last)
}

// keep stores an attempt's log. A script that printed nothing has none.
func (c *Carrier) keep(ctx context.Context, job *flow.Job, content []byte) bool {
	if c.opts.Logs == nil || len(content) == 0 {
		return false
	}
	id := job.ID()
	if len(content) > maxLog {
		content = fmt.Appendf(slices.Clip(content[:maxLog]), leftOut, maxLog)
	}
	// The log of a script that was stopped is wanted most.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.opts.Logs.PutLog(ctx, job.Task, id, content); err != nil {
		c.opts.Logger.Warn("a script's log could not be kept", "job", id, "error", err)
		return false
	}
	return true
}
