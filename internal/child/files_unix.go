//go:build !windows

package child

import (
	"errors"
	"os"
	"syscall"
)

// canLock says that hold takes a lock.
const canLock = true

// lockFolder takes the lock of a folder, which is held until it is closed, or its process ends
// however it ends. An error: somebody else has it.
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
