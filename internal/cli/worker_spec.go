package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/program"
)

// specFlags makes a worker carry out one attempt that is described by files only.
type specFlags struct {
	Spec      string        `placeholder:"FILE" group:"Object store" help:"Carry out the attempt that this file says, by the command of --exec, and report in files beside it. Then end: 0 if it went well. A path, or a URL as --object-store takes them."`
	Heartbeat time.Duration `default:"10s" group:"Object store" help:"How often to say that it goes on (${default})."`
}

// carryOut carries out the attempt that a file describes.
func (c *workerRunCmd) carryOut(ctx context.Context, a *app) error {
	switch {
	case len(c.Exec) != 1:
		return newUsageError("--spec: give the command that carries it out, by --exec COMMAND")
	case c.Heartbeat <= 0:
		return newUsageError("--heartbeat is no time such as 10s")
	}
	bucket, err := a.specBucket(ctx, c.Spec)
	if err != nil {
		return err
	}
	job, err := objects.Take(ctx, bucket, "")
	if err != nil {
		return fmt.Errorf("--spec %s: %w", shownSpec(c.Spec), err)
	}
	return job.Do(ctx, c.Heartbeat, func(ctx context.Context) (json.RawMessage, error) { return c.runSpec(ctx, a, &job.Spec) })
}

// specBucket returns the bucket with the file of a path or URL, and with all other files of its
// attempt.
func (e programVariant) specBucket(ctx context.Context, spec string) (objects.Bucket, error) {
	u, name := specURL(spec), filepath.Base(spec)
	if u != nil {
		name = path.Base(u.Path)
	}
	if name != objects.SpecFile {
		return nil, newUsageError("--spec %s: what an attempt has to do is in a file %s", shownSpec(spec), objects.SpecFile)
	}
	if u == nil {
		return objects.OpenDir(filepath.Dir(spec))
	}
	known, err := e.bucketOpeners()
	if err != nil {
		return nil, err
	}
	u.Path, u.RawPath = path.Dir(u.Path), ""
	bucket, err := objects.Open(ctx, u.String(), known)
	if err != nil && known[u.Scheme] == nil {
		return nil, usageError{fmt.Errorf("--spec: %w", err)}
	}
	return bucket, err
}

// specURL returns the URL of a file; nil if spec is a path.
func specURL(spec string) *url.URL {
	u, err := url.Parse(spec)
	if err != nil || len(u.Scheme) < 2 { // a drive of Windows
		return nil
	}
	return u
}

func shownSpec(spec string) string {
	if specURL(spec) == nil {
		return spec
	}
	return objects.Shown(spec)
}

// bucketOpeners returns the buckets that this program's additions can open.
func (e programVariant) bucketOpeners() (map[string]objects.Opener, error) {
	var cfg troupe.Config
	for _, add := range e.additions {
		if err := add.Extend(&cfg); err != nil {
			return nil, err
		}
	}
	return cfg.Buckets, nil
}

// runSpec runs the command as a member would. Its input is on stdin; its output is a marked line,
// or everything it prints if that is JSON.
func (c *workerRunCmd) runSpec(ctx context.Context, a *app, s *objects.Spec) (json.RawMessage, error) {
	runner := program.New(program.Options{Dir: c.ScriptDir, Env: c.ChildEnv})
	job := program.Job{Type: flow.ExecProcess,
		Program: &flow.Program{Command: strings.TrimSpace(c.Exec[0]),
			GraceMS: max(c.StopGrace.Milliseconds(), 1)}, Input: s.Input,
		Facts: program.Facts{Run: s.Run, Flow: s.Workflow, Step: s.TaskName, Attempt: s.Attempt,
			Task: s.Task, Execution: s.Execution, Retries: -1,
			TimeoutMS: int64(s.TimeoutSeconds * 1000),
			Own: map[string]string{"TASK_SPEC_PATH": c.Spec, "TROUPE_JOB": s.Execution,
				"TROUPE_KEY": s.Key}},
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
