package program

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
)

// pythonArgv returns the argv that calls a Python function with the Python runner. The interpreter
// is named by the program or by its root; otherwise the default is used.
func (r *Runner) pythonArgv(ctx context.Context, job *Job, root string) (argv []string, vars map[string]string, err error) {
	dir, err := unpackedFolder()
	if err != nil {
		return nil, nil, fmt.Errorf("unpacking the runner of Python: %w", err)
	}
	p := job.Program
	vars = map[string]string{"PYTHONUNBUFFERED": "1", "ORK_TASK_FUNCTION": p.Function}
	if p.Function == "" {
		vars["ORK_TASK_FUNCTION"] = "main"
	}
	path := []string{root}
	if p.File != "" {
		file, err := resolveBelow(p.File, root)
		if err != nil {
			return nil, nil, err
		}
		vars["ORK_TASK_FILE"] = file
		path = append(path, filepath.Dir(file))
	} else {
		vars["ORK_TASK_MODULE"] = p.Module
	}
	vars["PYTHONPATH"] = pythonPath(path, p.Env["PYTHONPATH"], r.env)
	argv, more, err := interpreterOf(p, root, job.Stdout)
	maps.Copy(vars, more)
	if err != nil {
		return nil, nil, err
	}
	argv = append(r.resolveShim(ctx, argv, root), "-u", filepath.Join(dir, "run_task.py"))
	if job.Inspect {
		argv = append(argv, "--inspect")
	}
	return argv, vars, nil
}

// pythonPath returns the search path for modules: the root, the folder of the file, and the path
// configured otherwise.
func pythonPath(path []string, own string, env []string) string {
	if own == "" {
		for _, entry := range env {
			if inherited, ok := strings.CutPrefix(entry, "PYTHONPATH="); ok {
				own = inherited
			}
		}
	}
	if own != "" {
		path = append(path, own)
	}
	return strings.Join(path, string(os.PathListSeparator))
}

// interpreterOf finds the interpreter. Its messages go to the log.
func interpreterOf(p *flow.Program, root string, log io.Writer) (argv []string, vars map[string]string, err error) {
	if p.Python != "" {
		return []string{resolveProgram(p.Python, root)}, nil, nil
	}
	if _, err := os.Stat(filepath.Join(root, "pyproject.toml")); err == nil {
		uv, err := exec.LookPath("uv")
		if err == nil {
			return []string{uv, "run", "python3"}, uvCache(p), nil
		}
		if log != nil {
			fmt.Fprintln(log, "uv, which the root's pyproject.toml is for, is not on the search "+
				"path: the interpreter that there is runs instead")
		}
	}
	own := filepath.Join(root, ".venv", "bin", "python3")
	if runtime.GOOS == "windows" {
		own = filepath.Join(root, ".venv", "Scripts", "python.exe")
	}
	if _, err := os.Stat(own); err == nil {
		return []string{own}, nil, nil
	}
	path, err := anyPython()
	return []string{path}, nil, err
}

// shimFolder is the name of a version manager's folder. Its programs look up the real program at
// each call.
const shimFolder = "shims"

// resolveShim returns the interpreter that a version manager would start in a root. The result is
// cached, because a look-up takes longer than many tasks. The look-up runs as a program of the job,
// so it ends with the job.
func (r *Runner) resolveShim(ctx context.Context, argv []string, root string) []string {
	if len(argv) != 1 || filepath.Base(filepath.Dir(argv[0])) != shimFolder {
		return argv
	}
	of := root + "\x00" + argv[0]
	if known, ok := r.pythons.Load(of); ok {
		return []string{known.(string)}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var told bytes.Buffer
	ask := child.Command{Path: argv[0], Argv: []string{argv[0], "-c",
		"import sys; print(sys.executable)"}, Dir: root, Env: r.env, Split: true}
	_, err := r.runProcess(ctx, ask.Path, func() (*child.Process, error) { return child.Start(ask) }, 0, outputWriters{&told, io.Discard})
	path := strings.TrimSpace(told.String())
	if err != nil || !filepath.IsAbs(path) {
		return argv
	}
	r.pythons.Store(of, path)
	return []string{path}
}

// uvCache returns UV_CACHE_DIR with uv's folder in the user's cache. It returns nil if the program
// sets the variable or the user's cache folder is unknown.
func uvCache(p *flow.Program) map[string]string {
	if p.Env["UV_CACHE_DIR"] != "" {
		return nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return map[string]string{"UV_CACHE_DIR": filepath.Join(cache, "uv")}
}
