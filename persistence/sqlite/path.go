package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks is how many links may lead from one to the next, as in the kernel.
const maxLinks = 40

// realPath is where a file is, or would be made, whatever links lead there. SQLite names its log and we name our lock
// after this path, so two names of one file must not be two.
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
		if none != nil { // the file is missing itself
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
