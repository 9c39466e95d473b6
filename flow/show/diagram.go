package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Mermaid is the view as a flowchart in Mermaid's language. Nodes that the compiler made are dashed.
func (v *View) Mermaid() string {
	d := &mermaid{}
	d.line("flowchart TD")
	v.draw(d)
	if d.ghosts {
		d.line("  classDef ghost stroke-dasharray: 4 3")
	}
	return d.b.String()
}

// Graphviz is the view as a digraph in the language DOT.
func (v *View) Graphviz() string {
	d := &graphviz{}
	d.line("digraph %s {", dotText(cmp.Or(v.Name, "flow")))
	d.line("  node [shape=box]")
	v.draw(d)
	d.line("}")
	return d.b.String()
}

// drawing is a language that diagrams are written in. Nodes go by numbers, so that slugs may hold anything.
type drawing interface {
	node(depth, id int, label string, ghost bool)
	edge(depth, from, to int, label string, dashed bool)
	begin(depth, id int, label string)
	end(depth int)
}

// draw writes a view down.
func (v *View) draw(d drawing) {
	a := &artist{drawing: d}
	ids := a.graph(&v.Root, 1)
	if len(v.Closing) == 0 {
		return
	}
	a.begin(1, a.next(), "when it is over")
	closing := a.nodes(v.Closing, 2)
	a.end(1)
	a.undone(&v.Root, ids, closing)
}

type artist struct {
	drawing
	last int
}

func (a *artist) next() int {
	a.last++
	return a.last
}

// graph draws a scope and gives the number of each node.
func (a *artist) graph(g *Scope, depth int) map[string]int {
	ids := a.nodes(g.Nodes, depth)
	end := 0
	for _, n := range g.Nodes {
		for _, dep := range n.After {
			a.edge(depth, ids[dep], ids[n.Key], "", n.Always)
		}
		for _, e := range n.Edges {
			to, ok := ids[e.To]
			if !ok && end == 0 {
				end = a.next()
				a.node(depth, end, "end", false)
			}
			if !ok {
				to = end
			}
			a.edge(depth, ids[n.Key], to, e.label(), false)
		}
	}
	return ids
}

func (a *artist) nodes(nodes []*Node, depth int) map[string]int {
	ids := map[string]int{}
	for _, n := range nodes {
		id := a.next()
		ids[n.Key] = id
		a.node(depth, id, n.label(), n.Ghost())
		if n.Inside == nil {
			continue
		}
		a.begin(depth, a.next(), "inside "+n.Key)
		inner := a.graph(n.Inside, depth+1)
		a.end(depth)
		for _, first := range n.Inside.first() {
			a.edge(depth, id, inner[first], "inside", true)
		}
	}
	return ids
}

// first are the nodes a scope begins with.
func (g *Scope) first() (keys []string) {
	for _, n := range g.Nodes {
		if n.Key == g.Start || g.Mode == flow.ModeDag && len(n.After) == 0 {
			keys = append(keys, n.Key)
		}
	}
	return keys
}

// undone leads from nodes to those that undo them.
func (a *artist) undone(g *Scope, ids, closing map[string]int) {
	for _, n := range g.Nodes {
		if to, ok := closing[n.Compensate]; ok {
			a.edge(1, ids[n.Key], to, "undone by", true)
		}
	}
}

func (n *Node) label() string {
	lines := []string{n.Key, strings.Join(nonEmpty(string(n.Kind), n.Handler), " ")}
	lines = append(lines, nonEmpty(n.note, prefixed("each ", n.Items), prefixed("when ", n.When), prefixed("skip ", string(n.SkipMode)))...)
	return strings.Join(lines, "\n")
}

type mermaid struct {
	b      strings.Builder
	ghosts bool
}

func (m *mermaid) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

func (m *mermaid) node(depth, id int, label string, ghost bool) {
	class := ""
	if ghost {
		class, m.ghosts = ":::ghost", true
	}
	m.line("%sn%d[%s]%s", indent(depth), id, mermaidText(label), class)
}

func (m *mermaid) edge(depth, from, to int, label string, dashed bool) {
	arrow := "-->"
	if dashed {
		arrow = "-.->"
	}
	if label != "" {
		arrow += "|" + mermaidText(label) + "|"
	}
	m.line("%sn%d %s n%d", indent(depth), from, arrow, to)
}

func (m *mermaid) begin(depth, id int, label string) {
	m.line("%ssubgraph n%d [%s]", indent(depth), id, mermaidText(label))
}

func (m *mermaid) end(depth int) { m.line("%send", indent(depth)) }

var mermaidEscapes = strings.NewReplacer("#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", "<br/>")

func mermaidText(label string) string { return `"` + mermaidEscapes.Replace(label) + `"` }

type graphviz struct{ b strings.Builder }

func (g *graphviz) line(format string, args ...any) { fmt.Fprintf(&g.b, format+"\n", args...) }

func (g *graphviz) node(depth, id int, label string, ghost bool) {
	style := ""
	if ghost {
		style = ", style=dashed"
	}
	g.line("%sn%d [label=%s%s]", indent(depth), id, dotText(label), style)
}

func (g *graphviz) edge(depth, from, to int, label string, dashed bool) {
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
	g.line("%sn%d -> n%d%s", indent(depth), from, to, text)
}

func (g *graphviz) begin(depth, id int, label string) {
	g.line("%ssubgraph cluster_%d {", indent(depth), id)
	g.line("%slabel=%s", indent(depth+1), dotText(label))
}

func (g *graphviz) end(depth int) { g.line("%s}", indent(depth)) }

// dotText is a quoted text: in DOT only quotes and backslashes are escaped.
func dotText(label string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(label) + `"`
}

func indent(depth int) string { return strings.Repeat("  ", depth) }
