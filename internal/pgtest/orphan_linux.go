package pgtest

import "syscall"

// dieWithParent asks the kernel to shut the child down at once (SIGQUIT: the postmaster then ends
// its children too, which a SIGKILL would leave behind) when the thread that starts it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
