package child

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrOutside means that a path leads out of the folder in which programs may be started.
var ErrOutside = errors.New("it is outside of the folder that programs may run in")

// Inside resolves the links of a path and checks that the result is inside root, if root is given.
// The path "" is root itself; a relative path starts at root.
func Inside(root, path string) (string, error) {
	if root == "" {
		return path, nil
	}
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil || path == "" {
		return root, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) && !isInside(root, filepath.Clean(path)) {
		return "", ErrOutside // do not reveal whether the path exists
	}
	if err != nil {
		return "", err
	}
	if !isInside(root, real) {
		return "", ErrOutside
	}
	return real, nil
}

func isInside(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}
