package program

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// inputs is where inputs lie that are too large for a variable: in a folder of this process, as long as there are any. The process holds a lock on it,
// so that another one can tell a folder that is in use from one that was left behind by a process which was killed.
type inputs struct {
	mu     sync.Mutex
	folder *os.File // nil = there is none
	used   int
}

var ours inputs

// How the folders are called, and how often one is made anew that somebody else has just taken for left behind.
const (
	inputsPattern = "troupe-inputs-*"
	inputsTries   = 10
)

// write keeps an input in a file that nobody else can read, until it is cleaned up.
func (i *inputs) write(input []byte) (path string, cleanup func(), err error) {
	folder, err := i.enter()
	if err != nil {
		return "", func() {}, err
	}
	file, err := os.CreateTemp(folder, "*.json")
	if err != nil {
		i.leave()
		return "", func() {}, err
	}
	cleanup = func() {
		os.Remove(file.Name())
		i.leave()
	}
	_, err = file.Write(input)
	return file.Name(), cleanup, errors.Join(err, file.Close())
}

// enter makes the folder, if this is the first one to use it.
func (i *inputs) enter() (path string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.used == 0 {
		if i.folder, err = newFolder(); err != nil {
			return "", err
		}
	}
	i.used++
	return i.folder.Name(), nil
}

// leave removes the folder after the last one.
func (i *inputs) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.used--; i.used == 0 {
		os.Remove(i.folder.Name())
		i.folder.Close()
		i.folder = nil
	}
}

// newFolder makes a folder and takes its lock, both of which somebody who sweeps may have done first.
func newFolder() (folder *os.File, err error) {
	for range inputsTries {
		var path string
		if path, err = os.MkdirTemp("", inputsPattern); err != nil {
			return nil, err
		}
		if folder, err = hold(path); err != nil {
			continue
		}
		if _, err = os.Lstat(path); err == nil {
			return folder, nil
		}
		folder.Close()
	}
	return nil, err
}

// sweepInputs removes what processes have left behind that were killed. Whatever cannot be removed, such as another user's, stays.
func sweepInputs() {
	if !locks {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), inputsPattern)) // the pattern is right
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		if folder, err := hold(path); err == nil {
			os.RemoveAll(path)
			folder.Close()
		}
	}
}
