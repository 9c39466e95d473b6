package cli

import (
	"bytes"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/cli/console"
)

// helpOf returns the help for a line, from a parser with these commands.
func helpOf(t *testing.T, commands any, line ...string) (help string) {
	var out bytes.Buffer
	parser := newParser(console.Program{Name: "troupe"}, commands, kong.Writers(&out, &out), kong.Exit(func(int) {}))
	_, _ = parser.Parse(append(line, "--help"))
	require.NotEmpty(t, out.String(), line)
	return out.String()
}

func TestACommandIsTheSameAloneAsAmongAll(t *testing.T) {
	all := newCommandTree(console.Program{Name: "troupe"})
	model := newParser(console.Program{Name: "troupe"}, all).Model
	for _, first := range model.Children {
		one := selectCommand(all, first.Name)
		require.Len(t, newParser(console.Program{Name: "troupe"}, one).Model.Children, 1, first.Name)
		require.Equal(t, helpOf(t, all, first.Name), helpOf(t, one, first.Name))
		for _, second := range first.Children {
			require.Equal(t, helpOf(t, all, first.Name, second.Name), helpOf(t, one, first.Name, second.Name))
		}
	}
	for _, other := range []string{"", "tasks", "Task", "--help", "--version"} {
		require.Equal(t, all, selectCommand(all, other))
	}
}
