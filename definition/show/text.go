package show

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Text returns the view as a text table.
func (v *View) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", cmp.Or(v.Name, "flow"),
		strings.Join(nonEmpty(string(v.Root.Mode), withPrefix("profile ", string(v.Profile)),
			withPrefix("on_error ", v.Root.OnError)), ", "))
	for _, in := range v.Inputs {
		fmt.Fprintf(&b, "  takes %s\n", oneLineOf(in.String()))
	}
	for _, key := range v.Keys {
		fmt.Fprintf(&b, "  %s\n", oneLineOf(key))
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	v.Root.writeText(t, 1)
	if len(v.Closing) > 0 {
		fmt.Fprint(t, "when it is over:\n")
		for _, n := range v.Closing {
			n.writeText(t, 1, n.note)
		}
	}
	_ = t.Flush() // writes to a strings.Builder
	return trimLines(b.String())
}

func (g *Scope) writeText(t *tabwriter.Writer, depth int) {
	for _, n := range g.Nodes {
		note := ""
		if n.Key == g.Start {
			note = "start"
		}
		if n.Key == g.Output {
			note = "the output"
		}
		n.writeText(t, depth, note)
	}
}

func (n *Node) writeText(t *tabwriter.Writer, depth int, note string) {
	mark := ""
	if n.Ghost() {
		mark = "· "
	}
	fmt.Fprintf(t, "%s%s%s\t%s\t%s\t%s\n", strings.Repeat("  ", depth), mark, oneLineOf(n.Key),
		n.Kind, oneLineOf(n.Handler), oneLineOf(strings.Join(n.nodeNotes(note), "; ")))
	if n.Inside != nil {
		n.Inside.writeText(t, depth+1)
	}
}

// nodeNotes returns all notes about a node.
func (n *Node) nodeNotes(first string) []string {
	notes := nonEmpty(first)
	if len(n.After) > 0 {
		notes = append(notes, "after "+strings.Join(n.After, ", "))
	}
	if n.Always {
		notes = append(notes, "always")
	}
	for _, e := range n.Edges {
		notes = append(notes, e.labelText()+" → "+cmp.Or(e.To, "end"))
	}
	notes = append(notes, nonEmpty(withPrefix("on_error ", n.OnError),
		withPrefix("on_missing ", n.OnMissing), withPrefix("when ", n.When),
		withPrefix("skip ", string(n.SkipMode)),
		withPrefix("exhausted: skip ", string(n.Exhausted)), withPrefix("each ", n.Items))...)
	if n.Window > 0 {
		notes = append(notes, fmt.Sprintf("%d at once", n.Window))
	}
	notes = append(append(notes, n.Keys...), n.Times.timeNotes()...)
	return append(notes, nonEmpty(withPrefix("compensated by ", n.Compensate))...)
}

func withPrefix(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func nonEmpty(texts ...string) (list []string) {
	for _, t := range texts {
		if t != "" {
			list = append(list, t)
		}
	}
	return list
}

// oneLineOf removes line breaks from texts of users, which would break a table.
func oneLineOf(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
