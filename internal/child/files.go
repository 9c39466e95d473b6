package child

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Files are those that programs are given: in a folder of this process, as long as there are any.
// The process holds a lock on it, so that another one can tell a folder that is in use from one
// that was left behind by a process which was killed.
type Files struct {
	pattern string

	mu     sync.Mutex
	folder *os.File // nil = there is none
	used   int
}

// NewFiles are files in folders that are called by a pattern, as os.MkdirTemp reads it.
func NewFiles(pattern string) *Files { return &Files{pattern: pattern} }

// filesTries is how often a folder is made anew that somebody else has just taken for left behind.
const filesTries = 10

// Write keeps a text in a file that nobody else can read, until it is cleaned up. The file is
// called by a pattern, as os.CreateTemp reads it.
func (f *Files) Write(pattern string, text []byte) (path string, cleanup func(), err error) {
	folder, err := f.acquireFolder()
	if err != nil {
		return "", func() {}, err
	}
	file, err := os.CreateTemp(folder, pattern)
	if err != nil {
		f.releaseFolder()
		return "", func() {}, err
	}
	cleanup = func() {
		os.Remove(file.Name())
		f.releaseFolder()
	}
	_, err = file.Write(text)
	return file.Name(), cleanup, errors.Join(err, file.Close())
}

// acquireFolder makes the folder, if this is the first one to use it.
func (f *Files) acquireFolder() (path string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used == 0 {
		if f.folder, err = f.newFolder(); err != nil {
			return "", err
		}
	}
	f.used++
	return f.folder.Name(), nil
}

// releaseFolder removes the folder after the last one.
func (f *Files) releaseFolder() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used--; f.used == 0 {
		os.Remove(f.folder.Name())
		f.folder.Close()
		f.folder = nil
	}
}

// newFolder makes a folder and takes its lock, both of which somebody who sweeps may have done
// first.
func (f *Files) newFolder() (folder *os.File, err error) {
	for range filesTries {
		var path string
		if path, err = os.MkdirTemp("", f.pattern); err != nil {
			return nil, err
		}
		if folder, err = lockFolder(path); err != nil {
			continue
		}
		if _, err = os.Lstat(path); err == nil {
			return folder, nil
		}
		folder.Close()
	}
	return nil, err
}

// Sweep removes what processes have left behind that were killed. Whatever cannot be removed, such
// as another user's, stays.
func (f *Files) Sweep() {
	if !canLock {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), f.pattern)) // the pattern is right
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		if folder, err := lockFolder(path); err == nil {
			os.RemoveAll(path)
			folder.Close()
		}
	}
}
