package flow

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Embedding puts published flows in the place of their names, so that a definition says all by itself
// and stays what it is when those flows get other versions.
type Embedding struct {
	Self   string // name the definition will have, "" if that is not known; it must not embed itself
	Limits Limits
	// Lookup finds the newest definition of a flow, nil when there is none.
	Lookup func(name string) ([]byte, error)
}

// maxEmbedded bounds a definition together with what it embeds: flows that embed each other many times
// would grow without end.
const maxEmbedded = 8 << 20

// Embed puts them into a definition that was parsed, and into its text in JSON. What is wrong with the
// names is told when the definition is compiled. The error is Lookup's.
func (e Embedding) Embed(d *Definition, text []byte) ([]byte, error) {
	w := &embedder{Embedding: e, d: d, found: map[string][]byte{}}
	if d.source != nil {
		w.reporter = d.source
	} else {
		w.reporter = &reporter{}
		d.source = w.reporter
	}
	if err := w.definition(d, nil); err != nil {
		return nil, err
	}
	return w.splice(text), nil
}

type embedder struct {
	Embedding
	*reporter
	d     *Definition
	found map[string][]byte
	names []embeddedName
}

// embeddedName is a name that stands for a flow.
type embeddedName struct {
	at   *place
	name string
}

func (w *embedder) definition(d *Definition, at *place) error {
	return w.nodes(d.Nodes, at.key("nodes"))
}

func (w *embedder) nodes(nodes map[string]*Node, at *place) error {
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		if err := w.node(nodes[key], at.key(key)); err != nil {
			return err
		}
	}
	return nil
}

func (w *embedder) node(n *Node, at *place) error {
	if n != nil && n.Subflow != nil {
		if err := w.nodes(n.Subflow.Nodes, at.key("subflow").key("nodes")); err != nil {
			return err
		}
	}
	switch {
	case n == nil || n.Flow == nil:
	case n.Flow.Definition != nil:
		return w.definition(n.Flow.Definition, at.key("flow"))
	case n.Flow.Name != "":
		return w.inner(n.Flow, at.key("flow"))
	}
	return nil
}

func (w *embedder) inner(f *Inner, at *place) error {
	if f.Name == w.Self {
		w.errorf(at, "a flow cannot embed itself: %s → %s", w.Self, f.Name)
		return nil
	}
	text, known := w.found[f.Name]
	if !known {
		var err error
		if text, err = w.Lookup(f.Name); err != nil {
			return err
		}
		w.found[f.Name] = text
	}
	if text == nil {
		return nil // told when it is compiled
	}
	d, _ := ParseDefinition(text)
	if d == nil {
		w.errorf(at, "the flow %.80q cannot be read: publish it again", f.Name)
		return nil
	}
	if cycle := d.embeds(w.Self); w.Self != "" && cycle != nil {
		w.errorf(at, "a flow cannot embed itself: %s → %s → %s", w.Self, f.Name, strings.Join(cycle, " → "))
		return nil
	}
	if depth := 1 + deepest(d.Nodes); depth > w.Limits.OrDefault().Depth {
		w.errorf(at, "flows are embedded %d deep, more than the limit of %d", depth, w.Limits.OrDefault().Depth)
		return nil
	}
	d.Embedded = f.Name
	f.Definition = d
	w.names = append(w.names, embeddedName{at, f.Name})
	return nil
}

// deepest is how deep flows are embedded in each other below some nodes.
func deepest(nodes map[string]*Node) (depth int) {
	for _, n := range nodes {
		switch {
		case n == nil:
			continue
		case n.Subflow != nil:
			depth = max(depth, deepest(n.Subflow.Nodes))
		}
		if f := n.Flow; f != nil && f.Definition != nil {
			below := deepest(f.Nodes)
			if f.Embedded != "" {
				below++
			}
			depth = max(depth, below)
		}
	}
	return depth
}

// embeds is the way from a definition to a flow inside it, nil when it is not there.
func (d *Definition) embeds(name string) []string {
	return embedsIn(d.Nodes, name)
}

func embedsIn(nodes map[string]*Node, name string) []string {
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[key]; n != nil {
			if way := n.embeds(name); way != nil {
				return way
			}
		}
	}
	return nil
}

func (n *Node) embeds(name string) []string {
	if n.Subflow != nil {
		if way := embedsIn(n.Subflow.Nodes, name); way != nil {
			return way
		}
	}
	f := n.Flow
	switch {
	case f == nil || f.Definition == nil:
		return nil
	case f.Embedded == name:
		return []string{name}
	}
	way := f.embeds(name)
	if way != nil && f.Embedded != "" {
		way = append([]string{f.Embedded}, way...)
	}
	return way
}

// splice writes the flows into the text where their names are; everything else stays byte for byte.
func (w *embedder) splice(text []byte) []byte {
	if len(w.names) == 0 {
		return text
	}
	root, ok := readJSON(plain(text), &reporter{}).(*jsonValue)
	if !ok {
		return text
	}
	type cut struct {
		v    *jsonValue
		name string
	}
	var cuts []cut
	size := len(text)
	for _, n := range w.names {
		var v value = root
		for _, name := range n.at.names() {
			_, v = child(v, name)
			if v == nil {
				return text
			}
		}
		cuts = append(cuts, cut{v.(*jsonValue), n.name})
		if size += len(w.found[n.name]); size > maxEmbedded {
			w.errorf(n.at, "with what it embeds the definition is larger than %d bytes", maxEmbedded)
			return text
		}
	}
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Compare(a.v.start, b.v.start) })
	out, from := make([]byte, 0, size), 0
	for _, c := range cuts {
		out = append(out, root.in.text[from:c.v.start]...)
		out = appendEmbedded(out, w.found[c.name], c.name)
		from = c.v.end
	}
	return append(out, root.in.text[from:]...)
}

// appendEmbedded adds a definition with the name it had, byte for byte but for a name that it says itself.
func appendEmbedded(b, text []byte, name string) []byte {
	v := readJSON(plain(text), &reporter{})
	if v == nil { // it was kept as YAML
		json, _ := YAMLToJSON(text)
		v = readJSON(json, &reporter{})
	}
	object := v.(*jsonValue)
	if slices.ContainsFunc(v.members(), saysEmbedded) {
		b = append(b, '{')
		for _, m := range v.members() {
			if !saysEmbedded(m) {
				b = append(expr.AppendQuote(b, m.key), ':')
				b = append(append(b, m.value.(*jsonValue).text()...), ',')
			}
		}
	} else {
		b = append(b, object.in.text[object.start:object.end-1]...)
		if len(v.members()) > 0 {
			b = append(b, ',')
		}
	}
	b = append(b, `"embedded":`...)
	return append(expr.AppendQuote(b, name), '}')
}

func saysEmbedded(m member) bool { return strings.EqualFold(m.key, "embedded") }
