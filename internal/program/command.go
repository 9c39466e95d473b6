package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
)

// prepareCommand prepares the command of a job. The function cleanup, which is never nil, removes
// its files from the disk. An error with a kind is permanent, so retries do not help.
func (r *Runner) prepareCommand(ctx context.Context, job *Job) (cmd child.Command, cleanup func(), err error) {
	cleanup = func() {}
	p := job.Program
	if p == nil {
		return cmd, cleanup, flow.Errorf(flow.Invalid, "the job names no program")
	}
	if cmd.Dir, err = r.rootFolder(p.Root); err != nil {
		return cmd, cleanup, err
	}
	var more map[string]string
	switch job.Type {
	case flow.ExecPython:
		cmd.Argv, more, err = r.pythonArgv(ctx, job, cmd.Dir)
	case flow.ExecLibrary:
		cmd.Argv, more, err = r.libraryArgv(ctx, p, cmd.Dir)
	default:
		cmd.Argv, err = programArgv(p, cmd.Dir)
	}
	if err != nil {
		return cmd, cleanup, err
	}
	if cmd.Path, err = lookUpProgram(cmd.Argv[0], cmd.Dir); err != nil {
		return cmd, cleanup, err
	}
	input := inputLine(job.Input)
	vars, cleanup, err := job.writeVariables(input)
	if err != nil {
		return cmd, cleanup, fmt.Errorf("a file for the input: %w", err)
	}
	maps.Copy(vars, more)
	cmd.Env, cmd.Stdin, cmd.Split = child.Laid(r.env, vars), stdinFor(p, input), true
	cmd.Memory = p.Memory
	if isLine(cmd.Argv) && p.Command != "" {
		cmd = withoutShell(cmd, p.Command)
	}
	return cmd, cleanup, nil
}

// rootFolder returns the folder in which a program runs.
func (r *Runner) rootFolder(folder string) (string, error) {
	dir, err := child.Inside(r.opts.Dir, folder)
	switch {
	case errors.Is(err, child.ErrOutside):
		return "", flow.Errorf(flow.Denied, "the root %q is outside of the folder that programs may run in (--script-dir)", folder)
	case err != nil:
		return "", fmt.Errorf("the root %q: %w", folder, errorCause(err))
	}
	return filepath.Abs(dir)
}

// programArgv returns the program and its arguments.
func programArgv(p *flow.Program, root string) ([]string, error) {
	switch {
	case p.File != "":
		return fileArgv(p.File, root)
	case len(p.Args) > 0:
		return append([]string{resolveProgram(p.Args[0], root)}, p.Args[1:]...), nil
	}
	return shellLine(p.Command, root)
}

// shellLine returns the argv of a command line. A line with white space, or with any other
// character that needs a shell, is run by the shell.
func shellLine(command, root string) ([]string, error) {
	if !strings.ContainsAny(command, " \t\r\n\v\f;|&<>$`(){}\"'*?[#~=") {
		return []string{resolveProgram(command, root)}, nil
	}
	if runtime.GOOS == "windows" {
		return nil, flow.Errorf(flow.Invalid,
			"the command %.80q is a line for a shell, which Windows has none for: write it as a "+
				"list of a program and its arguments", command)
	}
	return []string{shell, "-c", command}, nil
}

const shell = "/bin/sh"

func isLine(argv []string) bool { return len(argv) == 3 && argv[0] == shell && argv[1] == "-c" }

// resolveProgram returns the path of a program. A bare name is looked up in the root first, then on
// the search path. Any other path is relative to the root.
func resolveProgram(name, root string) string {
	if filepath.IsAbs(name) {
		return name
	}
	path := filepath.Join(root, name)
	if strings.ContainsRune(name, '/') {
		return path
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return path
	}
	return name
}

// lookUpProgram finds a bare name on the search path.
func lookUpProgram(name, root string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("failed to start %s: it is neither in %s nor on the search path", name, root)
	}
	return path, nil
}

// fileArgv returns the argv of a file below the root. An executable file is run directly. Any other
// file is run by the interpreter in its first line, or by the shell.
func fileArgv(name, root string) ([]string, error) {
	path, err := resolveBelow(name, root)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o111 != 0 || runtime.GOOS == "windows" {
		return []string{path}, err
	}
	return append(shebangArgv(path), path), nil
}

// resolveBelow returns the path of a file in or below the root.
func resolveBelow(name, root string) (string, error) {
	path, err := child.Inside(root, name)
	switch {
	case errors.Is(err, child.ErrOutside):
		return "", flow.Errorf(flow.Denied, "the file %q is outside of its root", name)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no file %q in %s", name, root)
	}
	return path, err
}

// shebangArgv returns the interpreter named by the first line of a script.
func shebangArgv(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return []string{shell}
	}
	defer file.Close()
	first, _ := bufio.NewReader(io.LimitReader(file, 4096)).ReadString('\n') // up to 4096 bytes
	named, ok := strings.CutPrefix(strings.TrimSpace(first), "#!")
	program, argument, _ := strings.Cut(strings.TrimSpace(named), " ")
	switch argument = strings.TrimSpace(argument); {
	case !ok || program == "":
		return []string{shell}
	case argument == "":
		return []string{program}
	}
	return []string{program, argument}
}
