package definition

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Embedding replaces the names of published flows by their definitions. The result is complete, and
// does not change when those flows get new versions.
type Embedding struct {
	Self   string // name of the definition, "" if unknown; the definition must not embed itself
	Limits flow.Limits
	// Lookup returns the newest definition of a flow, or nil if there is none.
	Lookup func(name string) ([]byte, error)
	// Elsewhere means that there may be flows that Lookup does not find. Compiling the definition
	// then reports a note for such a flow instead of an error.
	Elsewhere bool
}

// maxEmbedded is the maximum size in bytes of a definition with its embedded flows. Without a
// limit, flows that embed each other many times would grow exponentially. MaxNodes limits the
// nodes. Both are checked before a flow is inserted.
const maxEmbedded = 8 << 20

// Embed inserts the flows into a parsed definition and into its JSON text. Problems with the names
// are reported when the definition is compiled. The error is the error of Lookup.
func (e Embedding) Embed(d *Definition, text []byte) ([]byte, error) {
	w := &embedder{Embedding: e, d: d, found: map[string]*embeddedFlow{}, bytes: len(text), nodes: CountNodes(d.Nodes)}
	if d.source != nil {
		w.Reporter = d.source
	} else {
		w.Reporter = &Reporter{}
		d.source = w.Reporter
	}
	if err := w.embedDefinition(d, nil); err != nil {
		return nil, err
	}
	return w.spliceFlows(text), nil
}

type embedder struct {
	Embedding
	*Reporter
	d     *Definition
	found map[string]*embeddedFlow
	names []embeddedName
	bytes int // size of the text with the flows inserted so far
	nodes int // number of nodes with the flows inserted so far
	full  bool
}

// embeddedFlow is a published flow. The flow is read once and shared by all places that embed it. A
// nil pointer means that the flow does not exist or cannot be read.
type embeddedFlow struct {
	*Definition
	text  []byte // text to insert
	nodes int
	depth int // depth of embedding inside the flow
}

// embeddedName is the name of a flow to be replaced.
type embeddedName struct {
	at   *Place
	name string
	of   *Inner
}

func (w *embedder) embedDefinition(d *Definition, at *Place) error {
	return w.embedNodes(d.Nodes, at.Key("nodes"))
}

func (w *embedder) embedNodes(nodes map[string]*Node, at *Place) error {
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		if err := w.embedNode(nodes[key], at.Key(key)); err != nil {
			return err
		}
	}
	return nil
}

func (w *embedder) embedNode(n *Node, at *Place) error {
	if n != nil && n.Subflow != nil {
		if err := w.embedNodes(n.Subflow.Nodes, at.Key("subflow").Key("nodes")); err != nil {
			return err
		}
	}
	switch {
	case n == nil || n.Flow == nil:
	case n.Flow.Definition != nil:
		return w.embedDefinition(n.Flow.Definition, at.Key("flow"))
	case n.Flow.Name != "":
		return w.embedInner(n.Flow, at.Key("flow"))
	}
	return nil
}

func (w *embedder) embedInner(f *Inner, at *Place) error {
	if f.Name == w.Self {
		w.Errorf(at, "a flow cannot embed itself: %s → %s", w.Self, f.Name)
		return nil
	}
	if w.full {
		w.Mute(at)
		return nil
	}
	in, err := w.findFlow(f.Name, at)
	if in == nil {
		f.elsewhere = w.Elsewhere
		return err
	}
	if cycle := in.pathToEmbedded(w.Self); w.Self != "" && cycle != nil {
		w.Errorf(at, "a flow cannot embed itself: %s → %s → %s", w.Self, f.Name, strings.Join(cycle, " → "))
		return nil
	}
	if most := w.Limits.OrDefault().Depth; in.depth > most {
		w.Errorf(at, "flows are embedded %d deep, more than the limit of %d", in.depth, most)
		return nil
	}
	if !w.countEmbedded(in, at) {
		return nil
	}
	f.Definition = in.Definition
	w.names = append(w.names, embeddedName{at, f.Name, f})
	return nil
}

// findFlow reads a flow once. A missing flow is reported when the definition is checked.
func (w *embedder) findFlow(name string, at *Place) (*embeddedFlow, error) {
	if in, known := w.found[name]; known {
		return in, nil
	}
	text, err := w.Lookup(name)
	if err != nil || text == nil {
		return nil, err
	}
	w.found[name] = nil
	d, _ := ParsePublished(text)
	if d == nil {
		w.Errorf(at, "the flow %.80q cannot be read: publish it again", name)
		return nil, nil
	}
	d.Embedded, d.source = name, nil
	w.found[name] = &embeddedFlow{Definition: d, text: appendEmbedded(nil, text, name),
		nodes: CountNodes(d.Nodes), depth: 1 + embeddingDepth(d.Nodes)}
	return w.found[name], nil
}

// countEmbedded counts an inserted flow, and reports once if the total exceeds a limit.
func (w *embedder) countEmbedded(in *embeddedFlow, at *Place) bool {
	w.bytes += len(in.text)
	w.nodes += in.nodes
	switch {
	case w.bytes > maxEmbedded:
		w.Errorf(at, "with what it embeds the definition is larger than %d bytes: embed less, or start tasks of those flows", maxEmbedded)
	case w.nodes > MaxNodes:
		w.Errorf(at, "with what it embeds the definition has more than %d nodes: embed less, or start tasks of those flows", MaxNodes)
	default:
		return true
	}
	w.full = true
	for _, n := range w.names { // a rejected definition need not be checked further
		n.of.Definition = nil
		w.Mute(n.at)
	}
	w.names = nil
	return false
}

// embeddingDepth returns how deep flows are embedded in each other below the given nodes.
func embeddingDepth(nodes map[string]*Node) (depth int) {
	for _, n := range nodes {
		switch {
		case n == nil:
			continue
		case n.Subflow != nil:
			depth = max(depth, embeddingDepth(n.Subflow.Nodes))
		}
		if f := n.Flow; f != nil && f.Definition != nil {
			below := embeddingDepth(f.Nodes)
			if f.Embedded != "" {
				below++
			}
			depth = max(depth, below)
		}
	}
	return depth
}

// pathToEmbedded returns the names of the embedded flows that lead to a flow inside the definition.
// It returns nil if the flow is not there.
func (d *Definition) pathToEmbedded(name string) []string {
	return embedsIn(d.Nodes, name)
}

func embedsIn(nodes map[string]*Node, name string) []string {
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[key]; n != nil {
			if way := n.pathToEmbedded(name); way != nil {
				return way
			}
		}
	}
	return nil
}

func (n *Node) pathToEmbedded(name string) []string {
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
	way := f.pathToEmbedded(name)
	if way != nil && f.Embedded != "" {
		way = append([]string{f.Embedded}, way...)
	}
	return way
}

// spliceFlows replaces the names in the text by the flows. All other bytes stay unchanged.
func (w *embedder) spliceFlows(text []byte) []byte {
	if len(w.names) == 0 {
		return text
	}
	root, ok := readJSON(trimBOM(text), &Reporter{}).(*jsonValue)
	if !ok {
		return text
	}
	type cut struct {
		v    *jsonValue
		name string
	}
	var cuts []cut
	for _, n := range w.names {
		var v textValue = root
		for _, name := range n.at.pathNames() {
			_, v = childValue(v, name)
			if v == nil {
				return text
			}
		}
		cuts = append(cuts, cut{v.(*jsonValue), n.name})
	}
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Compare(a.v.start, b.v.start) })
	out, from := make([]byte, 0, w.bytes), 0
	for _, c := range cuts {
		out = append(out, root.source.text[from:c.v.start]...)
		out = append(out, w.found[c.name].text...)
		from = c.v.end
	}
	return append(out, root.source.text[from:]...)
}

// appendEmbedded appends a definition with its name in the field embedded. Apart from an existing
// field of that name, its bytes stay unchanged.
func appendEmbedded(b, text []byte, name string) []byte {
	v := readJSON(trimBOM(text), &Reporter{})
	if v == nil { // the definition was stored as YAML
		json, _ := YAMLToJSON(text)
		v = readJSON(json, &Reporter{})
	}
	object := v.(*jsonValue)
	if slices.ContainsFunc(v.members(), saysEmbedded) {
		b = append(b, '{')
		for _, m := range v.members() {
			if !saysEmbedded(m) {
				b = append(expr.AppendQuote(b, m.key), ':')
				b = append(append(b, m.value.(*jsonValue).rawText()...), ',')
			}
		}
	} else {
		b = append(b, object.source.text[object.start:object.end-1]...)
		if len(v.members()) > 0 {
			b = append(b, ',')
		}
	}
	b = append(b, `"embedded":`...)
	return append(expr.AppendQuote(b, name), '}')
}

func saysEmbedded(m objectMember) bool { return strings.EqualFold(m.key, "embedded") }
