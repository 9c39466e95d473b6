//go:build !linux

package postgres

import "syscall"

// setUserTimeout leaves connections to the kernel, which takes its own time to notice that nothing
// arrives.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
