//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// shell gives the command a process group, so that its children end with it.
func shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// terminate asks a command and its children to end.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // who has ended need not be asked

// kill ends those that are left of them.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
