package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// spell is an addition that rejects its configuration.
type spell struct {
	Word string `name:"spell" env:"TROUPE_SPELL" default:"fine" help:"A word."`
}

func (s *spell) Extend(cfg *troupe.Config) error {
	return fmt.Errorf("%s has spelled %s", cfg.Name, s.Word)
}

func TestAProgramIsItsNameAndWhatItAddsToMembers(t *testing.T) {
	t.Chdir(t.TempDir())
	call := func(args ...string) result {
		var stdout, stderr bytes.Buffer
		code := runCommandLine(t.Context(), console.Program{Name: "troupe-more", Additions: []console.Addition{&spell{}}}, args, strings.NewReader(""), &stdout, &stderr)
		return result{code, stdout.String(), stderr.String()}
	}
	for _, command := range []string{"serve", "dev"} {
		got := call(command, "--name", "m", "--spell", "abc")
		require.Equal(t, result{exitFailed, "", "troupe-more: m has spelled abc\n"}, got)
	}
	require.Contains(t, call("serve", "--name", "m").stderr, "has spelled fine")
	t.Setenv("TROUPE_SPELL", "of the environment")
	require.Contains(t, call("serve", "--name", "m").stderr, "has spelled of the environment")
	require.Equal(t, exitUsage, call("task", "list", "--spell", "abc").code, "only members have the flag")
	require.True(t, strings.HasPrefix(call("version").stdout, "troupe-more "))
	for shell, names := range map[string]string{"bash": "complete -o default -F _troupe " +
		"troupe-more\n", "zsh": "#compdef troupe-more\n", "fish": "complete -c troupe-more -n"} {
		script := call("completion", shell).stdout
		require.Contains(t, script, names)
		require.Contains(t, script, "spell")
	}
}
