package pgtest

import "syscall"

// dieWithParent makes the kernel send SIGQUIT to the child when the thread that started the child
// ends. With SIGQUIT the postmaster also ends its children, which SIGKILL would leave behind.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
