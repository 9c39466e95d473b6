// Package built builds the programs of this project for their tests, as they are released: without cgo, and with no path of this machine in them.
// So the packages of which a program is made are built once for all of its tests, with or without the race detector, and in every copy of the sources.
package built

import (
	"fmt"
	"os"
	"os/exec"
)

// Program builds a main package, with flags of go build, and writes the program to a file. The package is named as from the working directory.
func Program(file, pkg string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath"}, flags...), "-o", file, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
