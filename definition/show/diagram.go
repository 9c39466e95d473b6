package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Mermaid returns the view as a flowchart in Mermaid's language. Nodes that the compiler added are
// dashed.
func (v *View) Mermaid() string {
	d := &mermaidWriter{}
	d.writeLine("flowchart TD")
	v.drawTo(d)
	if d.hasGhosts {
		d.writeLine("  classDef ghost stroke-dasharray: 4 3")
	}
	return d.b.String()
}

// Graphviz returns the view as a digraph in the language DOT.
func (v *View) Graphviz() string {
	d := &graphvizWriter{}
	d.writeLine("digraph %s {", dotText(cmp.Or(v.Name, "flow")))
	d.writeLine("  node [shape=box]")
	v.drawTo(d)
	d.writeLine("}")
	return d.b.String()
}

// diagramWriter writes a diagram in one language. Nodes have numbers, so that slugs may contain any
// characters.
type diagramWriter interface {
	writeNode(depth, id int, label string, ghost bool)
	writeEdge(depth, from, to int, label string, dashed bool)
	beginGroup(depth, id int, label string)
	endGroup(depth int)
}

// drawTo draws the view with a writer.
func (v *View) drawTo(d diagramWriter) {
	a := &planDrawer{diagramWriter: d}
	ids := a.drawScope(&v.Root, 1)
	if len(v.Closing) == 0 {
		return
	}
	a.beginGroup(1, a.nextID(), "when it is over")
	closing := a.drawNodes(v.Closing, 2)
	a.endGroup(1)
	a.drawUndoEdges(&v.Root, ids, closing)
}

type planDrawer struct {
	diagramWriter
	lastID int
}

func (a *planDrawer) nextID() int {
	a.lastID++
	return a.lastID
}

// drawScope draws a scope and returns the number of each node.
func (a *planDrawer) drawScope(g *Scope, depth int) map[string]int {
	ids := a.drawNodes(g.Nodes, depth)
	end := 0
	for _, n := range g.Nodes {
		for _, dep := range n.After {
			a.writeEdge(depth, ids[dep], ids[n.Key], "", n.Always)
		}
		for _, e := range n.Edges {
			to, ok := ids[e.To]
			if !ok && end == 0 {
				end = a.nextID()
				a.writeNode(depth, end, "end", false)
			}
			if !ok {
				to = end
			}
			a.writeEdge(depth, ids[n.Key], to, e.labelText(), false)
		}
	}
	return ids
}

func (a *planDrawer) drawNodes(nodes []*Node, depth int) map[string]int {
	ids := map[string]int{}
	for _, n := range nodes {
		id := a.nextID()
		ids[n.Key] = id
		a.writeNode(depth, id, n.diagramLabel(), n.Ghost())
		if n.Inside == nil {
			continue
		}
		a.beginGroup(depth, a.nextID(), "inside "+n.Key)
		inner := a.drawScope(n.Inside, depth+1)
		a.endGroup(depth)
		for _, first := range n.Inside.firstKeys() {
			a.writeEdge(depth, id, inner[first], "inside", true)
		}
	}
	return ids
}

// firstKeys returns the nodes at which a scope starts.
func (g *Scope) firstKeys() (keys []string) {
	for _, n := range g.Nodes {
		if n.Key == g.Start || g.Mode == flow.ModeDag && len(n.After) == 0 {
			keys = append(keys, n.Key)
		}
	}
	return keys
}

// drawUndoEdges draws edges from nodes to their compensating nodes.
func (a *planDrawer) drawUndoEdges(g *Scope, ids, closing map[string]int) {
	for _, n := range g.Nodes {
		if to, ok := closing[n.Compensate]; ok {
			a.writeEdge(1, ids[n.Key], to, "compensated by", true)
		}
	}
}

func (n *Node) diagramLabel() string {
	lines := []string{n.Key, strings.Join(nonEmpty(string(n.Kind), n.Handler), " ")}
	lines = append(lines, nonEmpty(n.note, withPrefix("each ", n.Items),
		withPrefix("when ", n.When), withPrefix("skip ", string(n.SkipMode)))...)
	return strings.Join(lines, "\n")
}

type mermaidWriter struct {
	b         strings.Builder
	hasGhosts bool
}

func (m *mermaidWriter) writeLine(format string, args ...any) {
	fmt.Fprintf(&m.b, format+"\n", args...)
}

func (m *mermaidWriter) writeNode(depth, id int, label string, ghost bool) {
	class := ""
	if ghost {
		class, m.hasGhosts = ":::ghost", true
	}
	m.writeLine("%sn%d[%s]%s", indentText(depth), id, mermaidText(label), class)
}

func (m *mermaidWriter) writeEdge(depth, from, to int, label string, dashed bool) {
	arrow := "-->"
	if dashed {
		arrow = "-.->"
	}
	if label != "" {
		arrow += "|" + mermaidText(label) + "|"
	}
	m.writeLine("%sn%d %s n%d", indentText(depth), from, arrow, to)
}

func (m *mermaidWriter) beginGroup(depth, id int, label string) {
	m.writeLine("%ssubgraph n%d [%s]", indentText(depth), id, mermaidText(label))
}

func (m *mermaidWriter) endGroup(depth int) { m.writeLine("%send", indentText(depth)) }

var mermaidEscapes = strings.NewReplacer("#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", "<br/>")

func mermaidText(label string) string { return `"` + mermaidEscapes.Replace(label) + `"` }

type graphvizWriter struct{ b strings.Builder }

func (g *graphvizWriter) writeLine(format string, args ...any) {
	fmt.Fprintf(&g.b, format+"\n", args...)
}

func (g *graphvizWriter) writeNode(depth, id int, label string, ghost bool) {
	style := ""
	if ghost {
		style = ", style=dashed"
	}
	g.writeLine("%sn%d [label=%s%s]", indentText(depth), id, dotText(label), style)
}

func (g *graphvizWriter) writeEdge(depth, from, to int, label string, dashed bool) {
	var attributes []string
	if label != "" {
		attributes = append(attributes, "label="+dotText(label))
	}
	if dashed {
		attributes = append(attributes, "style=dashed")
	}
	text := ""
	if len(attributes) > 0 {
		text = " [" + strings.Join(attributes, ", ") + "]"
	}
	g.writeLine("%sn%d -> n%d%s", indentText(depth), from, to, text)
}

func (g *graphvizWriter) beginGroup(depth, id int, label string) {
	g.writeLine("%ssubgraph cluster_%d {", indentText(depth), id)
	g.writeLine("%slabel=%s", indentText(depth+1), dotText(label))
}

func (g *graphvizWriter) endGroup(depth int) { g.writeLine("%s}", indentText(depth)) }

// dotText returns a quoted text for DOT, where only quotes and backslashes are escaped.
func dotText(label string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(label) + `"`
}

func indentText(depth int) string { return strings.Repeat("  ", depth) }
