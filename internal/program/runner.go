package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/internal/redact"
	"github.com/troupe-engine/troupe/internal/secrets"
	"github.com/troupe-engine/troupe/job"
)

// Options configure a Runner.
type Options struct {
	// Dir is the folder in or below which everything is started; "" means anywhere.
	Dir string
	// Env names further variables of this process's environment that programs see.
	Env []string
	// Secrets are the secrets that programs may receive; nil means none.
	Secrets *secrets.Store
	// MaxOutput is the largest size of an output; 0 means 1 MiB. A larger output fails its attempt.
	MaxOutput int
	// Logger logs interpreters that cannot be kept warm; nil means slog.Default().
	Logger *slog.Logger
}

const (
	defaultMaxOutput = 1 << 20
	defaultGrace     = 10 * time.Second
)

// Runner starts programs.
type Runner struct {
	opts     Options
	env      []string
	patience child.Patience
	warmPool warmPool
	// the real interpreter for a root and a command, if a version manager chooses it
	pythons sync.Map
}

// New returns a Runner. Its programs see the permitted part of this process's environment at the
// time of the call.
func New(opts Options) *Runner {
	opts.MaxOutput = cmp.Or(opts.MaxOutput, defaultMaxOutput)
	inputFiles.Sweep()
	return &Runner{opts: opts, env: child.Environment(opts.Env), patience: child.NewPatience(),
		warmPool: warmPool{logger: cmp.Or(opts.Logger, slog.Default())}}
}

// Close ends the warm interpreters and the processes they have forked. Other programs keep running.
func (r *Runner) Close() { r.warmPool.close() }

// Job is a program to run once.
type Job struct {
	Type    flow.ExecType
	Program *flow.Program
	Input   json.RawMessage
	Facts   Facts
	// Python only: return the parameter and result types of the file's functions without calling
	// them
	Inspect bool
	// Stdout and Stderr receive a copy of the output as it arrives.
	Stdout, Stderr io.Writer
}

// Result is the result of a job. An empty Error means success.
type Result struct {
	Output  json.RawMessage
	Error   string
	Details json.RawMessage // details of the error reported by the program
	Metrics []job.Number    // reported by the program, whether it succeeded or failed
	Fatal   bool            // retries do not help
	PID     int             // 0 if it was never started

	hide *redact.Redactor // hides the job's secrets
}

// Run runs the program and returns when it and all its descendants have ended.
func (r *Runner) Run(ctx context.Context, job Job) Result {
	given, removed, err := r.giveSecrets(&job)
	defer removed()
	if err != nil {
		return Result{Error: err.Error()}
	}
	cmd, cleanup, err := r.prepareCommand(ctx, &job)
	defer cleanup()
	if err != nil {
		return Result{Error: err.Error(), Fatal: flow.ErrorKindOf(err) != ""}
	}
	heard := newOutputParser(r.opts.MaxOutput, job.Program)
	said, end := job.teeOutput(heard, given.Hide)
	warm, want := r.warmCommand(&job, cmd)
	start := func() (*child.Process, error) { return r.startCommand(ctx, cmd, warm, want) }
	pid, err := r.runProcess(ctx, cmd.Path, start, gracePeriod(job.Program), said)
	end()
	res := heard.finishResult(err)
	res.PID, res.hide = pid, given.Hide
	return res.Hide(res)
}

// Inspect returns the parameter and result types of a Python program's functions, in the notation
// of Ork's workflow files, and the types they name: {types, functions: {NAME: {input_type,
// required, more, output_type}}}. It imports the program, so the program's top-level code runs.
func (r *Runner) Inspect(ctx context.Context, p *flow.Program, stderr io.Writer) (json.RawMessage, error) {
	asked := *p
	asked.OutputMode = flow.OutputMarker
	res := r.Run(ctx, Job{Type: flow.ExecPython, Inspect: true, Stderr: stderr, Program: &asked})
	if res.Error != "" {
		return nil, fmt.Errorf("its functions cannot be told: %s", res.Error)
	}
	return res.Output, nil
}

func gracePeriod(p *flow.Program) time.Duration {
	if p.GraceMS > 0 {
		return flow.Milliseconds(p.GraceMS)
	}
	return defaultGrace
}

// outputWriters receive the output of a program.
type outputWriters struct{ stdout, stderr io.Writer }

// teeOutput copies the output to the parser, and with secrets masked to the log writers. The parser
// sees the output unmasked; secrets are masked inside its strings later. The function end flushes
// the writers after the last output.
func (j *Job) teeOutput(h *outputParser, hide *redact.Redactor) (to outputWriters, end func()) {
	out, err := hide.Writer(orDiscard(j.Stdout)), hide.Writer(io.MultiWriter(h.stderrWriter(), orDiscard(j.Stderr)))
	return outputWriters{io.MultiWriter(h.stdoutWriter(), out), err}, func() {
		_, _ = out.Close(), err.Close() // these writers never fail
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// runProcess returns when the program, its process group and its family have ended and all output
// was read. A canceled program receives a termination signal, and is killed after the grace period.
func (r *Runner) runProcess(ctx context.Context, path string, start func() (*child.Process, error),
	grace time.Duration, to outputWriters) (pid int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	var p *child.Process
	err = r.patience.Do(ctx, func() (err error) {
		p, err = start()
		return err
	})
	var gone *child.ForkerGone
	switch {
	case errors.As(err, &gone):
		return 0, errInterpreterGone(gone)
	case err != nil:
		return 0, fmt.Errorf("failed to start %s: %w", path, errorCause(err))
	}
	defer p.Close()
	defer context.AfterFunc(ctx, func() {
		p.Ask()
		time.AfterFunc(grace, p.Kill)
	})()
	var reading sync.WaitGroup
	reading.Go(func() { copyAll(to.stderr, p.Stderr) })
	reading.Go(func() { copyAll(to.stdout, p.Stdout) })
	state, err := p.Wait()
	reading.Wait()
	return p.Pid, exitCause(ctx, state, err)
}

// exitCause returns the reason for a failed program, or nil for success. For a canceled program it
// returns the cause of the cancellation.
func exitCause(ctx context.Context, state child.State, err error) error {
	var gone *child.ForkerGone
	switch {
	case err == nil && state.Success():
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &gone):
		return errInterpreterGone(gone)
	case err != nil:
		return err
	}
	return exitError(state.String())
}

func errInterpreterGone(gone *child.ForkerGone) error {
	return fmt.Errorf("the warm interpreter of this attempt is gone: %s", gone.How)
}

// exitError describes how a program ended by itself.
type exitError string

func (e exitError) Error() string { return string(e) }

// errorCause returns an error of a start without the name of the system call.
func errorCause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

const readSize = 32 << 10

var chunks = sync.Pool{New: func() any { return new([readSize]byte) }}

// copyAll copies until the end of from. It ignores write errors.
func copyAll(to io.Writer, from io.Reader) {
	b := chunks.Get().(*[readSize]byte)
	defer chunks.Put(b)
	for {
		n, err := from.Read(b[:])
		_, _ = to.Write(b[:n]) // these writers never fail
		if err != nil {
			return
		}
	}
}

func tooLarge(most int) string {
	return "the output has more than " + strconv.Itoa(most) +
		" bytes, the limit of a value (--max-value); keep large data elsewhere and pass a reference"
}
