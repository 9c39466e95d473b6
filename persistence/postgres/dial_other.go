//go:build !linux

package postgres

import "syscall"

// hearing leaves connections to the kernel, which takes its own time to notice that nothing arrives.
func hearing(string, string, syscall.RawConn) error { return nil }
