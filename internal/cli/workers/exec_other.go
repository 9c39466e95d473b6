//go:build !unix

package workers

import "os/exec"

func shellCommand(command string) *exec.Cmd { return exec.Command("cmd", "/C", command) }

// terminateGroup does nothing, because this system has no signal that requests the end of a
// program.
func terminateGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // fails if the process has ended already
