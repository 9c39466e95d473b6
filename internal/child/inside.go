package child

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrOutside says that a path leads out of the folder that programs may be started in.
var ErrOutside = errors.New("it is outside of the folder that programs may run in")

// Inside is where a path leads to: inside root, if there is one, wherever links may lead. "" is
// root itself; what is relative is meant from there.
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
		return "", ErrOutside // whether there is anything is nobody's business
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
