//go:build unix

package child

import (
	"errors"
	"syscall"
)

// isExhausted reports whether an error is a shortage of file descriptors or processes, which may
// pass soon. EBADF is one of these errors: a new process places its descriptors above the inherited
// ones, and if the limit allows no such numbers, the kernel reports EBADF.
func isExhausted(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.EBADF} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
