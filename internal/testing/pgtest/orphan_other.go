//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent does nothing: only Linux signals a child when its parent dies. On other systems a
// server may outlive a killed test process.
func dieWithParent(*syscall.SysProcAttr) {}
