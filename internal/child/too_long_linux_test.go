package child_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/child"
)

func TestArgumentTooLongForAProgramIsNamed(t *testing.T) {
	large := strings.Repeat("x", 200_000)
	for name, tt := range map[string]struct {
		cmd  child.Command
		want string
	}{
		"a variable": {child.Command{Argv: []string{"true"}, Env: []string{"A=1", "BIG=" + large}},
			"argument list too long: the variable BIG has 200004 of the 200011 bytes of " +
				"arguments and variables; pass large values by standard input or in a file"},
		"an argument": {child.Command{Argv: []string{"true", large}}, "argument list too long: argument 1 has 200000 of the 200004 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cmd.Path = "/bin/true"
			_, err := child.Start(tt.cmd)
			require.ErrorContains(t, err, tt.want)
			require.ErrorIs(t, err, syscall.E2BIG)
		})
	}
}
