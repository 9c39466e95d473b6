package main

import (
	"strings"

	"github.com/troupe-engine/troupe/internal/cli"
)

// commonUses is how many commands have a flag that is described once for all of them.
const commonUses = 10

// flagIdentity identifies a flag: commands with the same name and help share it.
type flagIdentity struct{ name, help string }

// describeCommands lists all commands with their arguments and flags.
func describeCommands() string {
	commands := cli.CommandReferences()
	uses := map[flagIdentity]int{}
	for _, c := range commands {
		if c.Runs {
			for _, f := range c.Flags {
				uses[flagIdentity{f.Name, f.Help}]++
			}
		}
	}
	configured := configuredFlags(commands)
	common := newTable("flag", "variable", "meaning")
	described := map[flagIdentity]bool{}
	var b strings.Builder
	for _, c := range commands {
		if !c.Runs {
			continue
		}
		b.WriteString("\n### " + c.Name + "\n\n```\n" + c.Usage + "\n```\n\n" + escapeText(endSentence(c.Help)) + "\n")
		for paragraph := range strings.SplitSeq(c.Detail, "\n\n") {
			b.WriteString(describeParagraph(paragraph))
		}
		note, isMember := memberCommands[c.Name]
		if isMember {
			b.WriteString("\n" + note + "\n")
		}
		own := newTable("argument or flag", "meaning")
		for _, a := range c.Arguments {
			own.addRow(quoteCode("<"+a.Name+">"), escapeText(a.Help))
		}
		for _, f := range c.Flags {
			id := flagIdentity{f.Name, f.Help}
			if isMember && configured[f.Name] {
				continue
			}
			if isMember || uses[id] < commonUses {
				own.addRow(quoteCode(flagUsage(&f)), escapeText(f.Help)+namedVariables(&f))
			} else if !described[id] {
				described[id] = true
				common.addRow(quoteCode(flagUsage(&f)), quoteAll(f.Variables), escapeText(f.Help))
			}
		}
		if !own.isEmpty() {
			b.WriteString("\n" + own.String())
		}
	}
	return "### Flags of many commands\n\n" + common.String() + b.String()
}

// describeParagraph returns a paragraph of a help text. An indented paragraph, such as examples,
// becomes a block of code, as in the printed help.
func describeParagraph(paragraph string) string {
	if strings.HasPrefix(paragraph, "    ") {
		return "\n```\n" + strings.TrimPrefix(strings.ReplaceAll(paragraph, "\n    ", "\n"), "    ") + "\n```\n"
	}
	if paragraph = endSentence(paragraph); paragraph == "" {
		return ""
	}
	return "\n" + escapeText(paragraph) + "\n"
}

// configuredFlags returns the names of the flags that the page of the configuration describes.
func configuredFlags(commands []cli.CommandReference) map[string]bool {
	names := map[string]bool{}
	for _, c := range commands {
		if c.Name == "troupe serve" {
			for _, f := range c.Flags {
				names[f.Name] = true
			}
		}
	}
	return names
}

// memberCommands are the commands whose flags are mostly on another page, with the sentence that
// links to the page.
var memberCommands = map[string]string{
	"troupe serve": "Its flags are the [configuration](configuration.md) of a member.",
	"troupe dev":   "Besides those below, its flags are those of the [configuration](configuration.md), as far as they are of `dev`.",
}

// flagUsage returns a flag as it is typed.
func flagUsage(f *cli.FlagReference) string {
	usage := "--" + f.Name
	if f.Value != "" {
		usage += " " + f.Value
	}
	if f.Short != "" {
		usage = "-" + f.Short + ", " + usage
	}
	return usage
}

func namedVariables(f *cli.FlagReference) string {
	if len(f.Variables) == 0 {
		return ""
	}
	return " (" + quoteAll(f.Variables) + ")"
}

func endSentence(text string) string {
	if text = strings.TrimSpace(text); text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, ":") {
		return text
	}
	return text + "."
}
