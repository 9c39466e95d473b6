package program

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// runtimeFiles are the runner and the Python packages that tasks may use.
//
//go:embed all:runtime
var runtimeFiles embed.FS

// unpackedFolder returns the folder of the unpacked runtimeFiles. It unpacks once per process and
// verifies files that already exist.
var unpackedFolder = sync.OnceValues(func() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		if base, err = os.MkdirTemp("", "troupe-python-"); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(base, "troupe", "python-"+runtimeHash())
	if isIntact(dir) {
		return dir, nil
	}
	return dir, unpackTo(dir)
})

// eachFile calls f with the path and content of every file.
func eachFile(f func(path string, content []byte) error) error {
	return fs.WalkDir(runtimeFiles, "runtime", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := runtimeFiles.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("runtime", filepath.FromSlash(path))
		if err != nil {
			return err
		}
		return f(rel, content)
	})
}

func runtimeHash() string {
	h := sha256.New()
	_ = eachFile(func(path string, content []byte) error { // reading embedded files cannot fail
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(path), len(content))
		h.Write(content)
		return nil
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// isIntact reports whether a folder holds every file unchanged.
func isIntact(dir string) bool {
	return eachFile(func(path string, content []byte) error {
		there, err := os.ReadFile(filepath.Join(dir, path))
		if err == nil && !bytes.Equal(there, content) {
			err = errors.New("another text")
		}
		return err
	}) == nil
}

// unpackTo creates the folder under a temporary name and renames it, so that no process sees an
// incomplete folder.
func unpackTo(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	beside, err := os.MkdirTemp(filepath.Dir(dir), "python-new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(beside)
	err = eachFile(func(path string, content []byte) error {
		path = filepath.Join(beside, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, content, 0o600)
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // remove a damaged folder
		return err
	}
	// unless another process just did the same
	if err := os.Rename(beside, dir); err != nil && !isIntact(dir) {
		return err
	}
	return nil
}
