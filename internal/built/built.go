// Package built builds the programs of this project for their tests, as they are released: without
// cgo, and with no path of this machine in them. So the packages of which a program is made are
// built once for all of its tests, with or without the race detector, and in every copy of the
// sources. Go keeps packages but not programs, and linking one takes seconds: so the newest of each
// is kept here, in the user's cache.
package built

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program builds a main package, with flags of go build, and writes the program to a file. The
// package is named as from the working directory.
func Program(file, pkg string, flags ...string) error {
	kept, err := cachePath(pkg, flags)
	if err != nil {
		return buildProgram(file, pkg, flags)
	}
	if copyFile(kept, file) != nil || buildProgram(file, pkg, flags) != nil {
		_ = os.Remove(file) // what is kept may be no program
		if err := buildProgram(file, pkg, flags); err != nil {
			return err
		}
	}
	_ = copyFile(file, kept) // without it the next one is linked again
	return nil
}

// buildProgram does not link what is in the file already.
func buildProgram(file, pkg string, flags []string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath"}, flags...), "-o", file, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// cachePath is where the newest program that was built of a package with these flags is kept.
func cachePath(pkg string, flags []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	source, err := filepath.Abs(pkg)
	if err != nil {
		return "", err
	}
	name := url.PathEscape(strings.Join(append([]string{filepath.Base(source)}, flags...), " "))
	return filepath.Join(cache, "troupe-tests", name), nil
}

// copyFile has the copy appear as a whole: others may read it, and write it, at the same time.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(0o755), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		_ = os.Remove(out.Name())
	}
	return err
}
