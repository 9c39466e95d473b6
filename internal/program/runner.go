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

// Options of a Runner.
type Options struct {
	// Dir is the folder that everything is started in, or below. "" = anywhere.
	Dir string
	// Env names what programs see of this process's environment beside the little that all of them
	// do.
	Env []string
	// Secrets are those that programs may be given; nil = none.
	Secrets *secrets.Store
	// MaxOutput bounds an output; 0 = 1 MiB. More fails its attempt.
	MaxOutput int
	// Logger hears of interpreters that cannot be kept warm; nil = slog.Default().
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
	pythons  sync.Map // the interpreter itself of a root and a command where a version manager says which
}

// New returns a runner whose programs see what they may of the environment this process has now.
func New(opts Options) *Runner {
	opts.MaxOutput = cmp.Or(opts.MaxOutput, defaultMaxOutput)
	inputFiles.Sweep()
	return &Runner{opts: opts, env: child.Environment(opts.Env), patience: child.NewPatience(), warmPool: warmPool{logger: cmp.Or(opts.Logger, slog.Default())}}
}

// Close ends the interpreters that are kept warm. What they have forked ends with them; all else
// goes on.
func (r *Runner) Close() { r.warmPool.close() }

// Job is a program that is to run once.
type Job struct {
	Type    flow.ExecType
	Program *flow.Program
	Input   json.RawMessage
	Facts   Facts
	Inspect bool // of Python: what the functions of the file take and return is told instead; none is called
	// What it prints goes there, too, as it comes.
	Stdout, Stderr io.Writer
}

// Result is what has become of a job. Without an Error it went well.
type Result struct {
	Output  json.RawMessage
	Error   string
	Details json.RawMessage // what the program itself says of its error
	Metrics []job.Number    // that it has told, whatever became of it
	Fatal   bool            // trying again is of no use
	PID     int             // 0 = it was never started

	hide *redact.Redactor // its secrets
}

// Run starts the program and returns when it has ended, with all that it had started.
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

// Inspect tells what the functions of a Python program take and return, each in the words of
// workflow files of Ork, and the types that they name: {types, functions: {NAME: {input_type,
// required, more, output_type}}}. The program is imported for that, so what it does then is done.
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

// outputWriters are who listens to a program.
type outputWriters struct{ stdout, stderr io.Writer }

// teeOutput has those listen who look for an output or an error, and those who keep all that is
// said, without the values of secrets. An output is heard as it is: they are hidden inside of its
// texts later. End says that nothing more is said.
func (j *Job) teeOutput(h *outputParser, hide *redact.Redactor) (to outputWriters, end func()) {
	out, err := hide.Writer(orDiscard(j.Stdout)), hide.Writer(io.MultiWriter(h.stderrWriter(), orDiscard(j.Stderr)))
	return outputWriters{io.MultiWriter(h.stdoutWriter(), out), err}, func() {
		_, _ = out.Close(), err.Close() // who only listens never fails
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// runProcess returns when the program, its process group and its family have ended and everything
// was read. One that nobody waits for any longer is asked to end, and killed after a grace.
func (r *Runner) runProcess(ctx context.Context, path string, start func() (*child.Process, error), grace time.Duration, to outputWriters) (pid int, err error) {
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

// exitCause says why a program has failed; nil = it went well. What ended because nobody waits for
// it any longer says why that is.
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

// exitError is how a program ended by itself.
type exitError string

func (e exitError) Error() string { return string(e) }

// errorCause is an error of starting without the words of the system call.
func errorCause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

const readSize = 32 << 10

var chunks = sync.Pool{New: func() any { return new([readSize]byte) }}

// copyAll reads to the end.
func copyAll(to io.Writer, from io.Reader) {
	b := chunks.Get().(*[readSize]byte)
	defer chunks.Put(b)
	for {
		n, err := from.Read(b[:])
		_, _ = to.Write(b[:n]) // what is only listened to never fails
		if err != nil {
			return
		}
	}
}

func tooLarge(most int) string {
	return "the output has more than " + strconv.Itoa(most) +
		" bytes, the limit of a value (--max-value); keep large data elsewhere and pass a reference"
}
