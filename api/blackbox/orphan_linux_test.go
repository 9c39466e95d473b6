package blackbox

import (
	"os/exec"
	"syscall"
)

// endWithParent leaves no server behind when the tests themselves are killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
