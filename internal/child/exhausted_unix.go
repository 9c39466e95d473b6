//go:build unix

package child

import (
	"errors"
	"syscall"
)

// isExhausted reports whether an error is about what others may give back soon: file descriptors
// and processes. A new process puts its descriptors behind those it inherits, and where the limit
// allows none there the kernel calls their numbers bad.
func isExhausted(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.EBADF} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
