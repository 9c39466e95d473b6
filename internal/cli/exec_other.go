//go:build !unix

package cli

import "os/exec"

func shell(command string) *exec.Cmd { return exec.Command("cmd", "/C", command) }

// terminate does nothing: there is no signal that asks a program to end.
func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // one that has ended is
