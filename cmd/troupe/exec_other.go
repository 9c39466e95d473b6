//go:build !unix

package main

import (
	"context"
	"os/exec"

	"github.com/troupe-engine/troupe/internal/child"
)

func shell(ctx context.Context, command string, _ child.Family) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", command)
}
