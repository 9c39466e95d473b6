package process

import (
	"os/exec"
	"syscall"
)

// endWithParent ends the process when the test is killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
