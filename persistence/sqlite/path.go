package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks is the maximum length of a chain of symbolic links, the same as in the kernel.
const maxLinks = 40

// checkKind refuses a path that is no regular file, such as a directory, a device, a pipe, or a
// path with a trailing separator.
func checkKind(path string) error {
	info, err := os.Stat(path)
	example := filepath.Join(path, "troupe.db")
	switch {
	case errors.Is(err, fs.ErrNotExist) && path != "" && os.IsPathSeparator(path[len(path)-1]):
		return fmt.Errorf("%s names a folder: name a file, such as %s", path, example)
	case err != nil:
		return nil // opening creates the file, or fails next
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it, such as %s", path, example)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: name another one", path)
	}
	return nil
}

// realPath returns the path of a file, or of the file to create, with all symbolic links resolved.
// The names of the log and the lock file derive from this path, so two names of one file must give
// the same path.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	for range maxLinks {
		if err != nil {
			return "", err
		}
		real, missing := filepath.EvalSymlinks(path)
		switch {
		case missing == nil:
			return real, nil
		case !errors.Is(missing, fs.ErrNotExist):
			return "", fmt.Errorf("%s: %w", path, missing)
		}
		target, none := os.Readlink(path)
		if none != nil { // the file itself is missing
			folder, err := filepath.EvalSymlinks(filepath.Dir(path))
			if errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("there is no folder %s: create it, or name another file", filepath.Dir(path))
			}
			return filepath.Join(folder, filepath.Base(path)), err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path, err = filepath.Abs(target)
	}
	return "", fmt.Errorf("%s: too many links lead from one to the next", path)
}
