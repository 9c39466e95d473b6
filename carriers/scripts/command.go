package scripts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
)

// scriptCommand is a prepared script for all its tries.
type scriptCommand struct {
	child.Command
	timeout time.Duration
	stderr  outputTail // stderr, unless it is part of the output
}

// languages defines how code of a language is run. Any other language is the name of a program.
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

// prepareCommand prepares the command of a job. cleanup removes temporary files. An error with a
// kind is permanent.
func (c *Carrier) prepareCommand(ctx context.Context, job *flow.Job) (cmd *scriptCommand, cleanup func(), err error) {
	if !c.opts.Allow {
		return nil, nil, flow.Errorf(flow.Denied,
			"scripts are not allowed on this server; its operator can allow them with --allow-scripts")
	}
	s := job.Exec.Script
	if s == nil || (s.Cmd == "" && s.Code == "") {
		return nil, nil, flow.Errorf(flow.Invalid, "the script has neither cmd nor code")
	}
	cmd = &scriptCommand{timeout: defaultTimeout}
	cmd.Env, cmd.Split = c.jobEnvironment(job), s.StderrMode == flow.StderrLog
	if s.TimeoutMS > 0 {
		cmd.timeout = flow.Milliseconds(s.TimeoutMS)
	}
	if s.StdinMode == "json" {
		cmd.Stdin = carriers.Body(job)
	}
	if cmd.Dir, err = c.workDir(s.WorkDir); err != nil {
		return nil, nil, err
	}
	cleanup = func() {}
	cmd.Argv = append([]string{s.Cmd}, s.Args...)
	if s.Code != "" {
		err = c.patience.Do(ctx, func() (err error) {
			cmd.Argv, cleanup, err = codeArgv(s)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	if cmd.Path, err = lookUpProgram(cmd.Argv[0]); err != nil {
		cleanup()
		return nil, nil, err
	}
	return cmd, cleanup, nil
}

// codeFiles are the temporary files with the code of scripts.
var codeFiles = child.NewFiles("troupe-scripts-*")

// codeArgv writes a script's code to a file and returns the command for it.
func codeArgv(s *flow.Script) (argv []string, cleanup func(), err error) {
	lang, known := languages[s.Language]
	if !known {
		lang.argv, lang.ext = []string{s.Language}, ".sh"
	}
	argv = lang.argv
	if s.Cmd != "" {
		argv = []string{s.Cmd}
	}
	file, cleanup, err := codeFiles.Write("*"+lang.ext, []byte(s.Code))
	if err != nil {
		cleanup()
		return nil, nil, fmt.Errorf("a file for the code: %w", err)
	}
	return append(append(append([]string{}, argv...), file), s.Args...), cleanup, nil
}

// lookUpProgram looks up a bare name in PATH. Other names are relative to the script's directory.
func lookUpProgram(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, nil
	}
	return exec.LookPath(name)
}

// workDir returns the directory of a script. It must be inside Dir, if set, after links are
// resolved.
func (c *Carrier) workDir(dir string) (string, error) {
	inside, err := child.Inside(c.opts.Dir, dir)
	if errors.Is(err, child.ErrOutside) {
		return "", flow.Errorf(flow.Denied, "work_dir %q is outside of the directory scripts may run in", dir)
	}
	if err != nil {
		return "", fmt.Errorf("work_dir: %w", err)
	}
	return inside, nil
}

// jobEnvironment returns the environment of a script: the permitted part of this process's
// environment, variables of the job, and the script's own variables.
func (c *Carrier) jobEnvironment(job *flow.Job) []string {
	own := carriers.Variables(job)
	maps.Copy(own, job.Exec.Script.Env)
	return child.Laid(c.env, own)
}
