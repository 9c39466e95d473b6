//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent does nothing: only Linux signals a child when its parent dies. Elsewhere a server
// may outlive a test process that was killed.
func dieWithParent(*syscall.SysProcAttr) {}
