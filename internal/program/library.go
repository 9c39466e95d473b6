package program

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/troupe-engine/troupe/flow"
)

// library is how the function of a shared library is called: by a runner of ours, in a process of its own, so that a library that crashes
// ends nobody but its own attempt.
func (r *Runner) library(ctx context.Context, p *flow.Program, root string) (argv []string, vars map[string]string, err error) {
	file, err := below(p.File, root)
	if err != nil {
		return nil, nil, err
	}
	dir, err := unpacked()
	if err != nil {
		return nil, nil, fmt.Errorf("unpacking the runner of libraries: %w", err)
	}
	python, err := anyPython()
	if err != nil {
		return nil, nil, fmt.Errorf("a library is loaded by Python: %w", err)
	}
	return append(r.itself(ctx, []string{python}, root), "-u", filepath.Join(dir, "run_library.py")), map[string]string{"ORK_LIBRARY": file}, nil
}

// anyPython is an interpreter on the search path.
func anyPython() (string, error) {
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no python3 on the search path")
}
