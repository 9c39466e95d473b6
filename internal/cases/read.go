package cases

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Case is one thing that is expected of a flow.
type Case struct {
	Name     string
	At       Place
	Params   json.RawMessage
	Mocks    map[string]*Mock // by node, service or function
	Acts     []rehearse.Act
	Until    time.Duration
	Kinds    rehearse.Kinds
	MayFail  []string // whose calls may fail by misfortune; nil = all
	Expect   []*Expectation
	Never    []*Never
	Always   []*Always
	untilAt  Place
	actsFrom map[string]Place // where an act stands, by its id
}

// Read reads the cases of a text. Names are those of the flow; flow is the file that the text names, "" if it names none.
func Read(text []byte, names func(flow string) *Names) (flow string, all []*Case, problems define.Problems) {
	r := &caseReader{reader: &reader{}}
	docs := r.documents(text)
	for _, doc := range docs { // what the cases are about has to be known first
		r.flowOf(doc, &flow)
	}
	if len(docs) == 0 && len(r.problems) == 0 {
		r.wrong(&yaml.Node{Line: 1, Column: 1}, "the file has no cases")
	}
	if len(r.problems) > 0 {
		return flow, nil, r.problems
	}
	if r.names = names(flow); r.names == nil {
		return flow, nil, nil
	}
	for _, doc := range docs {
		r.document(doc)
	}
	r.unique()
	return flow, r.cases, r.problems
}

// caseReader reads the cases of a flow.
type caseReader struct {
	*reader
	names *Names
	cases []*Case
}

// flowOf finds which flow a document is about.
func (r *caseReader) flowOf(doc *yaml.Node, flow *string) {
	if !r.is(doc, yaml.MappingNode, "a case") {
		return
	}
	for i := 0; i+1 < len(doc.Content); i += 2 {
		if doc.Content[i].Value != "flow" {
			continue
		}
		name := r.text(doc.Content[i+1], "flow")
		if *flow != "" && *flow != name {
			r.wrong(doc.Content[i+1], "the cases of a file are about one flow: above it is %s", *flow)
		}
		*flow = name
	}
}

// document reads a case, or several which have something in common.
func (r *caseReader) document(doc *yaml.Node) {
	common := &Case{At: placeOf(doc), Mocks: map[string]*Mock{}, Kinds: rehearse.Harmless, actsFrom: map[string]Place{}}
	var list *yaml.Node
	known := r.of(common)
	known["flow"] = func(*yaml.Node) {}
	known["cases"] = func(n *yaml.Node) { list = n }
	r.fields(doc, "a case", known)
	if list == nil {
		r.add(common, doc)
		return
	}
	if common.Name != "" {
		r.wrong(doc, "name belongs to each of the cases")
	}
	if !r.is(list, yaml.SequenceNode, "cases") {
		return
	}
	for _, n := range elements(list) {
		c := common.copy(placeOf(n))
		r.fields(n, "a case", r.of(c))
		r.add(c, n)
	}
}

// copy is a case that begins with what all have in common.
func (c *Case) copy(at Place) *Case {
	own := *c
	own.At, own.Mocks, own.actsFrom = at, maps.Clone(c.Mocks), maps.Clone(c.actsFrom)
	own.Acts, own.Expect, own.Never, own.Always = slices.Clone(c.Acts), slices.Clone(c.Expect), slices.Clone(c.Never), slices.Clone(c.Always)
	return &own
}

// of are the fields of a case.
func (r *caseReader) of(c *Case) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"name":         func(n *yaml.Node) { c.Name, c.At = r.text(n, "name"), placeOf(n) },
		"description":  func(n *yaml.Node) { r.text(n, "description") },
		"params":       func(n *yaml.Node) { c.Params = r.value(n) },
		"input":        func(n *yaml.Node) { c.Params = r.value(n) },
		"mocks":        func(n *yaml.Node) { r.mocks(c, n) },
		"at":           func(n *yaml.Node) { r.timed(c, n) },
		"when_waiting": func(n *yaml.Node) { r.waiting(c, n) },
		"until":        func(n *yaml.Node) { c.Until, c.untilAt = r.span(n, "until"), placeOf(n) },
		"faults":       func(n *yaml.Node) { r.faults(c, n) },
		"expect":       func(n *yaml.Node) { c.Expect = append(c.Expect, r.expectation(n, "expect")) },
		"undisturbed":  func(n *yaml.Node) { c.Expect = append(c.Expect, r.undisturbed(n)) },
		"never":        func(n *yaml.Node) { r.nevers(c, n) },
		"always":       func(n *yaml.Node) { r.always(c, n) },
	}
}

// add takes a case that has been read.
func (r *caseReader) add(c *Case, n *yaml.Node) {
	switch {
	case c.Name == "":
		r.wrong(n, "the case has no name: say with name what is expected of the flow")
	case len(c.Expect)+len(c.Never)+len(c.Always) == 0:
		r.wrong(n, "the case %s expects nothing: say what with expect, undisturbed, never or always", c.Name)
	}
	r.cases = append(r.cases, c)
}

// unique tells names that two cases have: the flag --run could not tell them apart.
func (r *caseReader) unique() {
	first := map[string]Place{}
	for _, c := range r.cases {
		if at, twice := first[c.Name]; twice && c.Name != "" {
			r.wrong(&yaml.Node{Line: c.At.Line, Column: c.At.Column}, "there are two cases named %q, the first in line %d", c.Name, at.Line)
		}
		first[c.Name] = c.At
	}
}

// span reads a duration.
func (r *caseReader) span(n *yaml.Node, what string) time.Duration {
	d, err := rehearse.ParseSpan(r.text(n, what))
	if err != nil {
		r.wrong(n, "%s: %v", what, err)
	}
	return d
}

// faults reads which misfortunes seeds may draw: words, and errors with the names of those who may fail.
func (r *caseReader) faults(c *Case, n *yaml.Node) {
	c.Kinds, c.MayFail = rehearse.Kinds{}, nil
	for _, e := range elements(n) {
		if e.Kind == yaml.MappingNode {
			r.fields(e, "faults", map[string]func(*yaml.Node){"errors": func(n *yaml.Node) {
				c.Kinds.Errors = true
				for _, who := range elements(n) {
					c.MayFail = append(c.MayFail, r.name(who, "errors"))
				}
			}})
			continue
		}
		switch word := r.text(e, "faults"); {
		case word == "none":
		case !c.Kinds.Set(word):
			r.unknown(e, "kind of fault", word, append(slices.Clone(rehearse.Words), "none"))
		}
	}
}

// name reads the name of a node, service or function.
func (r *caseReader) name(n *yaml.Node, what string) string {
	name := r.text(n, what)
	if name != "" && !r.names.any(name) {
		r.unknown(n, "node, service or function", name, r.names.all())
	}
	return name
}

// nodeName reads the name of a node.
func (r *caseReader) nodeName(n *yaml.Node, what string) string {
	name := r.text(n, what)
	if name != "" && !r.names.node(name) {
		r.unknown(n, "node", name, r.names.Nodes)
	}
	return name
}

// cel reads an expression.
func (r *caseReader) cel(n *yaml.Node, what string, in func() *expr.Language) *expr.CEL {
	source := r.text(n, what)
	c, err := in().Compile(source)
	if err != nil {
		r.wrong(n, "%s: %v", what, err)
		return expr.BrokenCEL(source, err)
	}
	return c
}
