package child

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Files are files given to programs. They are in a folder of this process, which is removed when
// the folder holds no files. The process locks the folder, so that other processes can distinguish
// a used folder from an abandoned one.
type Files struct {
	pattern string

	mu     sync.Mutex
	folder *os.File // nil if there is no folder
	used   int
}

// NewFiles returns Files whose folders are named by a pattern of os.MkdirTemp.
func NewFiles(pattern string) *Files { return &Files{pattern: pattern} }

// filesTries is the number of attempts to create a folder, because another process may take the new
// folder for an abandoned one.
const filesTries = 10

// Write writes a text to a file that other users cannot read, until it is cleaned up. The file is
// named by a pattern of os.CreateTemp.
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

// acquireFolder counts a use of the folder and creates the folder for the first use.
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

// releaseFolder removes the folder after the last use.
func (f *Files) releaseFolder() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used--; f.used == 0 {
		os.Remove(f.folder.Name())
		f.folder.Close()
		f.folder = nil
	}
}

// newFolder creates a folder and locks it. It retries if a concurrent sweep was faster.
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

// Sweep removes the folders left by killed processes. It skips folders that cannot be removed, such
// as folders of other users.
func (f *Files) Sweep() {
	if !canLock {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), f.pattern)) // the pattern is valid
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
