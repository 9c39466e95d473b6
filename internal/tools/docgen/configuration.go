package main

import (
	"strings"

	"github.com/troupe-engine/troupe/internal/cli"
)

// describeConfiguration lists the flags of a member by their groups.
func describeConfiguration() string {
	flags := map[string][]cli.FlagReference{}
	for _, c := range cli.CommandReferences() {
		if _, isMember := memberCommands[c.Name]; isMember {
			flags[c.Name] = c.Flags
		}
	}
	ofDev := map[string]bool{}
	for _, f := range flags["troupe dev"] {
		ofDev[f.Name] = true
	}
	var groups []string
	tables := map[string]*markdownTable{}
	for _, f := range flags["troupe serve"] {
		if tables[f.Group] == nil {
			groups = append(groups, f.Group)
			tables[f.Group] = newTable("flag", "variable", "meaning")
		}
		help := escapeText(f.Help)
		if f.Default != "" && !strings.Contains(f.Help, "("+f.Default+")") {
			help += " Default: " + quoteCode(f.Default) + "."
		}
		if !ofDev[f.Name] {
			help += " Not of `dev`."
		}
		tables[f.Group].addRow(quoteCode(flagUsage(&f)), quoteAll(f.Variables), help)
	}
	var parts []string
	for _, group := range groups {
		name := group
		if name == "" {
			name = "General"
		}
		parts = append(parts, "### "+name+"\n\n"+tables[group].String())
	}
	return strings.Join(parts, "\n")
}
