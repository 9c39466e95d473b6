package cli

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/internal/cli/console"
)

// PublicWords returns a line for each command, argument and flag of the command line, with its
// help.
func PublicWords() []string {
	e := console.Program{Name: "troupe"}
	return commandWords(newParser(e, newCommandTree(e)).Model.Node)
}

// commandWords returns the lines of a command and of its subcommands.
func commandWords(n *kong.Node) []string {
	var lines []string
	name := n.FullPath()
	if n.Type == kong.CommandNode || n.Type == kong.ApplicationNode {
		lines = append(lines, describeWord("command", name, n.Help+n.Detail))
	}
	for _, p := range n.Positional {
		lines = append(lines, describeWord("argument", name+" <"+p.Name+">", p.Help))
	}
	for _, f := range n.Flags {
		if !f.Hidden {
			lines = append(lines, describeWord("flag", name+" --"+f.Name, f.Help))
		}
	}
	for _, child := range n.Children {
		if !child.Hidden {
			lines = append(lines, commandWords(child)...)
		}
	}
	return lines
}

func describeWord(kind, name, help string) string { return fmt.Sprintf("%s %s: %s", kind, name, help) }
