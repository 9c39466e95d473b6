package workers

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
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/program"
)

// specFlags makes a worker carry out one attempt that is described by files only.
type specFlags struct {
	Spec      string        `placeholder:"FILE" group:"Object store" help:"Run one attempt described by this file with the command of --exec, write its report beside the file, and exit with 0 on success. A path, or a URL as in --object-store."`
	Heartbeat time.Duration `default:"10s" group:"Object store" help:"Interval between heartbeats (${default})."`
}

// carryOut carries out the attempt that a file describes.
func (c *workerRunCmd) carryOut(ctx context.Context, a *console.App) error {
	switch {
	case len(c.Exec) != 1:
		return console.NewUsageError("--spec needs --exec COMMAND")
	case c.Heartbeat <= 0:
		return console.NewUsageError("--heartbeat must be a positive duration, such as 10s")
	}
	bucket, err := specBucket(ctx, a.Additions, c.Spec)
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
func specBucket(ctx context.Context, additions []console.Addition, spec string) (objects.Bucket, error) {
	u, name := specURL(spec), filepath.Base(spec)
	if u != nil {
		name = path.Base(u.Path)
	}
	if name != objects.SpecFile {
		return nil, console.NewUsageError("--spec %s: the file must be named %s", shownSpec(spec), objects.SpecFile)
	}
	if u == nil {
		return objects.OpenDir(filepath.Dir(spec))
	}
	known, err := bucketOpeners(additions)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawPath = path.Dir(u.Path), ""
	bucket, err := objects.Open(ctx, u.String(), known)
	if err != nil && known[u.Scheme] == nil {
		return nil, console.UsageError{Err: fmt.Errorf("--spec: %w", err)}
	}
	return bucket, err
}

// specURL returns the URL of a file; nil if spec is a path.
func specURL(spec string) *url.URL {
	u, err := url.Parse(spec)
	if err != nil || len(u.Scheme) < 2 { // a scheme of one letter is a drive of Windows
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

// bucketOpeners returns the buckets that the additions of a program can open.
func bucketOpeners(additions []console.Addition) (map[string]objects.Opener, error) {
	var cfg troupe.Config
	for _, add := range additions {
		if err := add.Extend(&cfg); err != nil {
			return nil, err
		}
	}
	return cfg.Buckets, nil
}

// runSpec runs the command as a member would. The input is on stdin. The output is a marked line,
// or the whole printed text if it is JSON.
func (c *workerRunCmd) runSpec(ctx context.Context, a *console.App, s *objects.Spec) (json.RawMessage, error) {
	runner := program.New(program.Options{Dir: c.ScriptDir, Env: c.ChildEnv})
	job := program.Job{Type: flow.ExecProcess,
		Program: &flow.Program{Command: strings.TrimSpace(c.Exec[0]),
			GraceMS: max(c.StopGrace.Milliseconds(), 1)}, Input: s.Input,
		Facts: program.Facts{Run: s.Run, Flow: s.Workflow, Step: s.TaskName, Attempt: s.Attempt,
			Task: s.Task, Execution: s.Execution, Retries: -1,
			TimeoutMS: int64(s.TimeoutSeconds * 1000),
			Own: map[string]string{"TASK_SPEC_PATH": c.Spec, "TROUPE_JOB": s.Execution,
				"TROUPE_KEY": s.Key}},
		Stdout: a.Stdout, Stderr: a.Stderr}
	if s.ParallelIndex != nil && s.ParallelCount != nil {
		job.Facts.Many, job.Facts.Unit, job.Facts.Units = true, *s.ParallelIndex, *s.ParallelCount
	}
	res := runner.Run(ctx, job)
	if res.Error != "" {
		return nil, errors.New(res.Error)
	}
	return res.Output, nil
}
