//go:build !windows

package child

import (
	"errors"
	"os"
	"syscall"
)

// canLock reports whether lockFolder takes a lock.
const canLock = true

// lockFolder locks a folder. The lock is held until the file is closed or the process ends in any
// way. It returns an error if another process holds the lock.
func lockFolder(path string) (*os.File, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, folder.Close())
	}
	return folder, nil
}
