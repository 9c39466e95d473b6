//go:build !unix

package workers

import "os/exec"

func shellCommand(command string) *exec.Cmd { return exec.Command("cmd", "/C", command) }

// terminateGroup does nothing, because there is no signal that asks a program to end.
func terminateGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // fails if it has ended already
