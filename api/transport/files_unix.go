//go:build unix

package transport

import "syscall"

// fileLimit returns the number of file descriptors that this process may have.
func fileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 2 * mostConnections
	}
	return int(min(uint64(limit.Cur), 2*mostConnections))
}
