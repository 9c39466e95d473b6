package script

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
)

// command is a script made ready to be started, as often as it has tries.
type command struct {
	path    string
	argv    []string
	dir     string
	env     []string
	stdin   []byte // nil = none
	timeout time.Duration
}

// languages say how code of a language is run. Any other word is the program itself.
var languages = map[string]struct {
	argv []string
	ext  string
}{
	"":           {[]string{"bash"}, ".sh"},
	"python":     {[]string{"python3"}, ".py"},
	"javascript": {[]string{"node"}, ".js"},
	"node":       {[]string{"node"}, ".js"},
	"go":         {[]string{"go", "run"}, ".go"},
}

// prepare makes a command of a job. cleanup removes what it left on the disk. An error of a kind will
// stay, whoever tries again.
func (c *Carrier) prepare(ctx context.Context, job *flow.Job) (cmd *command, cleanup func(), err error) {
	if !c.opts.Allow {
		return nil, nil, flow.Errorf(flow.Denied, "scripts are not allowed on this server; its operator can allow them with --allow-scripts")
	}
	s := job.Exec.Script
	if s == nil || (s.Cmd == "" && s.Code == "") {
		return nil, nil, flow.Errorf(flow.Invalid, "the script has neither cmd nor code")
	}
	cmd = &command{timeout: defaultTimeout, env: c.environment(job)}
	if s.TimeoutMS > 0 {
		cmd.timeout = flow.Milliseconds(s.TimeoutMS)
	}
	if s.StdinMode == "json" {
		cmd.stdin = carry.Body(job)
	}
	if cmd.dir, err = c.workDir(s.WorkDir); err != nil {
		return nil, nil, err
	}
	cleanup = func() {}
	cmd.argv = append([]string{s.Cmd}, s.Args...)
	if s.Code != "" {
		err = c.patiently(ctx, func() (err error) {
			cmd.argv, cleanup, err = codeArgv(s)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	if cmd.path, err = find(cmd.argv[0]); err != nil {
		cleanup()
		return nil, nil, err
	}
	return cmd, cleanup, nil
}

// codeArgv writes a script's code to a file and says how to run that.
func codeArgv(s *flow.Script) (argv []string, cleanup func(), err error) {
	lang, known := languages[s.Language]
	if !known {
		lang.argv, lang.ext = []string{s.Language}, ".sh"
	}
	argv = lang.argv
	if s.Cmd != "" {
		argv = []string{s.Cmd}
	}
	file, err := os.CreateTemp("", "troupe-script-*"+lang.ext)
	if err != nil {
		return nil, nil, fmt.Errorf("a file for the code: %w", err)
	}
	cleanup = func() { os.Remove(file.Name()) }
	_, err = file.WriteString(s.Code)
	if err = errors.Join(err, file.Close()); err != nil {
		cleanup()
		return nil, nil, fmt.Errorf("writing the code: %w", err)
	}
	return append(append(append([]string{}, argv...), file.Name()), s.Args...), cleanup, nil
}

// find looks a bare name up in PATH; any other is meant relative to the script's directory.
func find(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, nil
	}
	return exec.LookPath(name)
}

// workDir is where a script runs: inside Dir, if there is one, wherever links may lead.
func (c *Carrier) workDir(dir string) (string, error) {
	if c.opts.Dir == "" {
		return dir, nil
	}
	root, err := filepath.Abs(c.opts.Dir)
	if err != nil {
		return "", err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", fmt.Errorf("the directory of scripts: %w", err)
	}
	if dir == "" {
		return root, nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("work_dir: %w", err)
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return "", flow.Errorf(flow.Denied, "work_dir %q is outside of the directory scripts may run in", dir)
	}
	return real, nil
}

// environment is what scripts see of this process's, with what tells the script which job it has and a script's own laid over it.
func (c *Carrier) environment(job *flow.Job) []string {
	own := map[string]string{
		"TROUPE_JOB": job.ID(), "TROUPE_TASK": job.Task, "TROUPE_NODE": job.Step(), "TROUPE_ATTEMPT": strconv.Itoa(job.Attempt),
		"TROUPE_UNIT": strconv.Itoa(job.Unit), "TROUPE_UNITS": strconv.Itoa(max(job.Units, 1)),
	}
	if job.Plan != nil {
		own["TROUPE_FLOW"] = job.Plan.FlowSlug
	}
	maps.Copy(own, job.Exec.Script.Env)
	env := make([]string, 0, len(c.env)+len(own))
	for _, e := range c.env {
		name, _, _ := strings.Cut(e, "=")
		if _, over := own[name]; !over {
			env = append(env, e)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}
