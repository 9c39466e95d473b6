package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/troupe-engine/troupe/flow"
)

// libraryArgv returns the argv that calls a function of a shared library. The function runs in a
// program of its own, so a crash ends only its own attempt. The program is the Python runner, or
// troupe-library if there is no Python.
func (r *Runner) libraryArgv(ctx context.Context, p *flow.Program, root string) (argv []string, vars map[string]string, err error) {
	file, err := resolveBelow(p.File, root)
	if err != nil {
		return nil, nil, err
	}
	vars = map[string]string{"ORK_LIBRARY": file}
	python, err := anyPython()
	if err != nil {
		loader, err := libraryLoader()
		return []string{loader}, vars, err
	}
	dir, err := unpackedFolder()
	if err != nil {
		return nil, nil, fmt.Errorf("unpacking the runner of libraries: %w", err)
	}
	return append(r.resolveShim(ctx, []string{python}, root), "-u", filepath.Join(dir, "run_library.py")), vars, nil
}

// anyPython returns a Python interpreter on the search path.
func anyPython() (string, error) {
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no python3 on the search path")
}

// libraryLoader returns the path of troupe-library: beside this program, or on the search path.
func libraryLoader() (string, error) {
	const name = "troupe-library"
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", errors.New("a library is loaded by Python, or by " + name +
		" beside this program: there is no python3 on the search path, and no " + name)
}
