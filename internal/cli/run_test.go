package cli

import (
	"bytes"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// helpOf returns the help for a line, from a parser with these commands.
func helpOf(t *testing.T, commands any, line ...string) (help string) {
	var out bytes.Buffer
	parser := programVariant{name: "troupe"}.newParser(commands, kong.Writers(&out, &out), kong.Exit(func(int) {}))
	_, _ = parser.Parse(append(line, "--help"))
	require.NotEmpty(t, out.String(), line)
	return out.String()
}

func TestACommandIsTheSameAloneAsAmongAll(t *testing.T) {
	all := programVariant{name: "troupe"}.newCommandTree()
	model := programVariant{name: "troupe"}.newParser(all).Model
	for _, first := range model.Children {
		one := selectCommand(all, first.Name)
		require.Len(t, programVariant{name: "troupe"}.newParser(one).Model.Children, 1, first.Name)
		require.Equal(t, helpOf(t, all, first.Name), helpOf(t, one, first.Name))
		for _, second := range first.Children {
			require.Equal(t, helpOf(t, all, first.Name, second.Name), helpOf(t, one, first.Name, second.Name))
		}
	}
	for _, other := range []string{"", "tasks", "Task", "--help", "--version"} {
		require.Equal(t, all, selectCommand(all, other))
	}
}
