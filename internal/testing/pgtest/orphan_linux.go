package pgtest

import "syscall"

// dieWithParent asks the kernel to send SIGQUIT to the child when the thread that started it ends.
// With SIGQUIT the postmaster also ends its children, which SIGKILL would leave behind.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
