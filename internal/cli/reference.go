package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/internal/cli/console"
)

// CommandReference describes a command for the reference.
type CommandReference struct {
	Name      string // name with the commands above, such as "troupe flow run"
	Usage     string // name with the arguments
	Help      string
	Detail    string
	Runs      bool // false means that the command only groups others
	Arguments []FlagReference
	Flags     []FlagReference
}

// FlagReference describes a flag or an argument of a command.
type FlagReference struct {
	Name      string
	Short     string
	Value     string // placeholder of the value; "" if the flag takes no value
	Group     string
	Variables []string
	Default   string
	Help      string
}

// CommandReferences returns all commands that help lists. Each command precedes its subcommands.
func CommandReferences() []CommandReference {
	e := console.Program{Name: "troupe"}
	return appendReferences(nil, newParser(e, newCommandTree(e)).Model.Node)
}

func appendReferences(list []CommandReference, n *kong.Node) []CommandReference {
	if n.Hidden {
		return list
	}
	c := CommandReference{Name: n.FullPath(), Usage: n.FullPath(), Help: n.Help, Detail: n.Detail, Runs: n.Leaf()}
	for _, p := range n.Positional {
		c.Usage += " " + p.Summary()
		c.Arguments = append(c.Arguments, referenceOf(p))
	}
	for _, f := range n.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		flag := referenceOf(f.Value)
		flag.Variables, flag.Value = f.Envs, f.PlaceHolder
		if f.Group != nil {
			flag.Group = f.Group.Title
		}
		if f.Short != 0 {
			flag.Short = string(f.Short)
		}
		switch {
		case f.Enum != "":
			flag.Value = strings.ReplaceAll(f.Enum, ",", "|")
		case !f.IsBool() && flag.Value == "":
			flag.Value = f.FormatPlaceHolder()
		}
		c.Flags = append(c.Flags, flag)
	}
	list = append(list, c)
	for _, child := range n.Children {
		list = appendReferences(list, child)
	}
	return list
}

func referenceOf(v *kong.Value) FlagReference {
	return FlagReference{Name: v.Name, Default: v.Default, Help: v.Help}
}
