//go:build !linux

package postgres

import "syscall"

// setUserTimeout does nothing: here the kernel takes its own time to notice that data does not
// arrive.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
