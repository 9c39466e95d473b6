//go:build unix && !linux

package process

import "os/exec"

// endWithParent does nothing: only Linux ends a child with its parent.
func endWithParent(*exec.Cmd) {}
