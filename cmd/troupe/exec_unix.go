//go:build unix

package main

import (
	"context"
	"os/exec"
	"syscall"

	"github.com/troupe-engine/troupe/internal/child"
)

// shell gives the command a process group, so that its children end with it, and ends its family too.
func shell(ctx context.Context, command string, family child.Family) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		family.Kill()
		return err
	}
	return cmd
}
