//go:build !linux

package postgres

import "syscall"

// setUserTimeout does nothing, because this system has no such option. The kernel uses its default
// timeout.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
