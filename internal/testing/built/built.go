// Package built builds the programs of this project for their tests with the settings of a release:
// without cgo and without local paths. So all tests share the compiled packages, with or without
// the race detector, and in every copy of the sources. Go caches packages but not programs, and
// linking takes seconds. So this package keeps the newest program of each kind in the user's cache.
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
// package path is relative to the working directory.
func Program(file, pkg string, flags ...string) error {
	kept, err := cachePath(pkg, flags)
	if err != nil {
		return buildProgram(file, pkg, flags)
	}
	if copyFile(kept, file) != nil || buildProgram(file, pkg, flags) != nil {
		_ = os.Remove(file) // the cached file may be damaged
		if err := buildProgram(file, pkg, flags); err != nil {
			return err
		}
	}
	_ = copyFile(file, kept) // on an error the next build links again
	return nil
}

// buildProgram builds the program. Go skips linking if the file is up to date.
func buildProgram(file, pkg string, flags []string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath"}, flags...), "-o", file, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// cachePath returns the cache file of a package built with these flags.
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

// copyFile creates the copy atomically, because other processes may read and write it concurrently.
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
