//go:build !linux

package blackbox

import "os/exec"

func endWithParent(*exec.Cmd) {}
