package program

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/child"
)

func TestALineThatNeedsNoShellHasNone(t *testing.T) {
	for line, need := range map[string]bool{
		"sleep 0.1": false, "sh -x --a=b c,d": false, "/bin/sh script": false,
		"sleep 0.1;": true, "sleep $N": true, "sleep  *": true, "true ": true, "A=1 sleep 1": true,
		"no-such-program 1": true, "": true, "exec sleep 1": true,
		"sleep 1 # a while": true, "sleep 1\nsleep 2": true, "sleep ~": true, "sleep 'x'": true, "sleep \\x": true, "sleep \u00a0": true,
	} {
		cmd := withoutShell(child.Command{Path: shell, Argv: []string{shell, "-c", line}, Dir: "/",
			Env: []string{"PATH=/usr/bin:/bin"}}, line)
		require.Equal(t, need, isLine(cmd.Argv), line)
	}
	relative := withoutShell(child.Command{Path: shell, Argv: []string{shell}, Env: []string{"PATH=.:/bin"}}, "sleep 1")
	require.Equal(t, shell, relative.Path, "a shell that looks into its own folder")
}
