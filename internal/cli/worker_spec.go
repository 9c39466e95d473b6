package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/program"
)

// specFlags have a worker carry out one attempt by files alone.
type specFlags struct {
	Spec      string        `placeholder:"FILE" group:"Object store" help:"Carry out the attempt that this file says, by the command of --exec, and report in files beside it. Then end: 0 if it went well."`
	Heartbeat time.Duration `default:"10s" group:"Object store" help:"How often to say that it goes on (${default})."`
}

// carryOut carries out the attempt of a file.
func (c *workerRunCmd) carryOut(ctx context.Context, a *app) error {
	switch {
	case len(c.Exec) != 1:
		return usagef("--spec: give the command that carries it out, by --exec COMMAND")
	case c.Heartbeat <= 0:
		return usagef("--heartbeat is no time such as 10s")
	}
	folder, err := specFolder(c.Spec)
	if err != nil {
		return err
	}
	bucket, err := objects.OpenDir(folder)
	if err != nil {
		return err
	}
	job, err := objects.Take(ctx, bucket, "")
	if err != nil {
		return fmt.Errorf("--spec %s: %w", c.Spec, err)
	}
	return job.Do(ctx, c.Heartbeat, func(ctx context.Context) (json.RawMessage, error) { return c.runSpec(ctx, a, &job.Spec) })
}

// specFolder is where the file of a path, or of a URL of files, is.
func specFolder(path string) (string, error) {
	if u, err := url.Parse(path); err == nil && len(u.Scheme) > 1 { // not a drive of Windows
		if u.Scheme != "file" {
			return "", usagef("--spec %s: this program reads files only: file:///… or a path", objects.Shown(path))
		}
		path = filepath.FromSlash(u.Path)
	}
	if filepath.Base(path) != objects.SpecFile {
		return "", usagef("--spec %s: what an attempt has to do is in a file %s", path, objects.SpecFile)
	}
	return filepath.Dir(path), nil
}

// runSpec runs the command as a member would: its input on stdin, its output a marked line, or all that it prints if that is JSON.
func (c *workerRunCmd) runSpec(ctx context.Context, a *app, s *objects.Spec) (json.RawMessage, error) {
	runner := program.New(program.Options{Dir: c.ScriptDir, Env: c.ChildEnv})
	job := program.Job{Type: flow.ExecProcess, Program: &flow.Program{Command: strings.TrimSpace(c.Exec[0]), GraceMS: max(c.StopGrace.Milliseconds(), 1)}, Input: s.Input,
		Facts: program.Facts{Run: s.Run, Flow: s.Workflow, Step: s.TaskName, Attempt: s.Attempt, Task: s.Task, Execution: s.Execution, Retries: -1,
			TimeoutMS: int64(s.TimeoutSeconds * 1000), Own: map[string]string{"TASK_SPEC_PATH": c.Spec}},
		Stdout: a.stdout, Stderr: a.stderr}
	if s.ParallelIndex != nil && s.ParallelCount != nil {
		job.Facts.Many, job.Facts.Unit, job.Facts.Units = true, *s.ParallelIndex, *s.ParallelCount
	}
	res := runner.Run(ctx, job)
	if res.Error != "" {
		return nil, errors.New(res.Error)
	}
	return res.Output, nil
}
