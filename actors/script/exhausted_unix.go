//go:build unix

package script

import (
	"errors"
	"syscall"
)

// exhausted says whether an error is about what others may give back soon: file descriptors and processes.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EAGAIN)
}
