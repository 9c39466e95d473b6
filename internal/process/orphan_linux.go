package process

import (
	"os/exec"
	"syscall"
)

// endWithParent leaves no process behind when the test itself is killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
