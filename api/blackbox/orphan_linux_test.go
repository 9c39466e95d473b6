package blackbox

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the server end when the test process is killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
