package cases

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Case is one test of a flow.
type Case struct {
	Name     string
	At       Place
	Params   json.RawMessage
	Mocks    map[string]*Mock // by node, service or function
	Acts     []rehearse.Act
	Until    time.Duration
	Kinds    rehearse.Kinds
	MayFail  []string // names whose calls may fail by faults; nil means all
	Expect   []*Expectation
	Never    []*Never
	Always   []*Always
	untilAt  Place
	actsFrom map[string]Place // position of each act, by its id
}

// Read reads the cases of a text. The function names returns the names used in a flow. The result
// flow is the file named by the text, "" if none.
func Read(text []byte, names func(flow string) *Names) (flow string, all []*Case, problems definition.Problems) {
	r := &caseReader{reader: &reader{}}
	docs := r.readDocuments(text)
	for _, doc := range docs { // the names of the flow are needed first
		r.readFlow(doc, &flow)
	}
	if len(docs) == 0 && len(r.problems) == 0 {
		r.reportError(&yaml.Node{Line: 1, Column: 1}, "the file has no cases")
	}
	if len(r.problems) > 0 {
		return flow, nil, r.problems
	}
	if r.names = names(flow); r.names == nil {
		return flow, nil, nil
	}
	for _, doc := range docs {
		r.checkTags(doc)
		r.readDocument(doc)
	}
	r.checkUnique()
	return flow, r.cases, r.problems
}

// caseReader reads the cases of a flow.
type caseReader struct {
	*reader
	names *Names
	cases []*Case
}

// readFlow reads the name of a document's flow.
func (r *caseReader) readFlow(doc *yaml.Node, flow *string) {
	if !r.expectKind(doc, yaml.MappingNode, "a case") {
		return
	}
	for i := 0; i+1 < len(doc.Content); i += 2 {
		if doc.Content[i].Value != "flow" {
			continue
		}
		name := r.readText(doc.Content[i+1], "flow")
		if *flow != "" && *flow != name {
			r.reportError(doc.Content[i+1], "the cases of a file are about one flow: above it is %s", *flow)
		}
		*flow = name
	}
}

// readDocument reads one case, or several with common fields.
func (r *caseReader) readDocument(doc *yaml.Node) {
	common := &Case{At: placeOf(doc), Mocks: map[string]*Mock{}, Kinds: rehearse.Harmless, actsFrom: map[string]Place{}}
	var list *yaml.Node
	known := r.caseFields(common)
	known["flow"] = func(*yaml.Node) {}
	known["cases"] = func(n *yaml.Node) { list = n }
	r.readFields(doc, "a case", known)
	if list == nil {
		r.addCase(common, doc)
		return
	}
	if common.Name != "" {
		r.reportError(doc, "name belongs to each of the cases")
	}
	if !r.expectKind(list, yaml.SequenceNode, "cases") {
		return
	}
	for _, n := range listElements(list) {
		c := common.copyCommon(placeOf(n))
		r.readFields(n, "a case", r.caseFields(c))
		r.addCase(c, n)
	}
}

// copyCommon returns a new case with the common fields.
func (c *Case) copyCommon(at Place) *Case {
	own := *c
	own.At, own.Mocks, own.actsFrom = at, maps.Clone(c.Mocks), maps.Clone(c.actsFrom)
	own.Acts, own.Expect, own.Never, own.Always = slices.Clone(c.Acts), slices.Clone(c.Expect),
		slices.Clone(c.Never), slices.Clone(c.Always)
	return &own
}

// caseFields returns the readers of a case's fields.
func (r *caseReader) caseFields(c *Case) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"name":         func(n *yaml.Node) { c.Name, c.At = r.readText(n, "name"), placeOf(n) },
		"description":  func(n *yaml.Node) { r.readText(n, "description") },
		"params":       func(n *yaml.Node) { c.Params = r.readJSON(n) },
		"input":        func(n *yaml.Node) { c.Params = r.readJSON(n) },
		"mocks":        func(n *yaml.Node) { r.readMocks(c, n) },
		"at":           func(n *yaml.Node) { r.readTimedActs(c, n) },
		"when_waiting": func(n *yaml.Node) { r.readWaitingActs(c, n) },
		"until":        func(n *yaml.Node) { c.Until, c.untilAt = r.readSpan(n, "until"), placeOf(n) },
		"faults":       func(n *yaml.Node) { r.readFaults(c, n) },
		"expect":       func(n *yaml.Node) { c.Expect = append(c.Expect, r.readExpectation(n, "expect")) },
		"undisturbed":  func(n *yaml.Node) { c.Expect = append(c.Expect, r.readUndisturbed(n)) },
		"never":        func(n *yaml.Node) { r.readNevers(c, n) },
		"always":       func(n *yaml.Node) { r.readAlways(c, n) },
	}
}

// addCase checks and adds a case.
func (r *caseReader) addCase(c *Case, n *yaml.Node) {
	switch {
	case c.Name == "":
		r.reportError(n, "the case has no name: say with name what is expected of the flow")
	case len(c.Expect)+len(c.Never)+len(c.Always) == 0:
		r.reportError(n, "the case %s expects nothing: say what with expect, undisturbed, never or always", c.Name)
	}
	r.cases = append(r.cases, c)
}

// checkUnique reports cases with equal names, because the flag --run cannot distinguish them.
func (r *caseReader) checkUnique() {
	first := map[string]Place{}
	for _, c := range r.cases {
		if at, twice := first[c.Name]; twice && c.Name != "" {
			r.reportError(&yaml.Node{Line: c.At.Line, Column: c.At.Column},
				"there are two cases named %q, the first in line %d", c.Name, at.Line)
		}
		first[c.Name] = c.At
	}
}

// readSpan reads a duration.
func (r *caseReader) readSpan(n *yaml.Node, what string) time.Duration {
	d, err := rehearse.ParseSpan(r.readText(n, what))
	if err != nil {
		r.reportError(n, "%s: %v", what, err)
	}
	return d
}

// readFaults reads the kinds of faults that seeds may draw: words, or errors with the names that
// may fail.
func (r *caseReader) readFaults(c *Case, n *yaml.Node) {
	c.Kinds, c.MayFail = rehearse.Kinds{}, nil
	for _, e := range listElements(n) {
		if e.Kind == yaml.MappingNode {
			r.readFields(e, "faults", map[string]func(*yaml.Node){"errors": func(n *yaml.Node) {
				c.Kinds.Errors = true
				for _, who := range listElements(n) {
					c.MayFail = append(c.MayFail, r.readName(who, "errors"))
				}
			}})
			continue
		}
		switch word := r.readText(e, "faults"); {
		case word == "none":
		case !c.Kinds.Set(word):
			r.reportUnknown(e, "kind of fault", word, append(slices.Clone(rehearse.Words), "none"))
		}
	}
}

// readName reads the name of a node, service or function.
func (r *caseReader) readName(n *yaml.Node, what string) string {
	name := r.readText(n, what)
	if name != "" && !r.names.hasName(name) {
		r.reportUnknown(n, "node, service or function", name, r.names.allNames())
	}
	return name
}

// readNodeName reads the name of a node.
func (r *caseReader) readNodeName(n *yaml.Node, what string) string {
	name := r.readText(n, what)
	if name != "" && !r.names.hasNode(name) {
		r.reportUnknown(n, "node", name, r.names.Nodes)
	}
	return name
}

// readCEL reads an expression.
func (r *caseReader) readCEL(n *yaml.Node, what string, in func() *expr.Language) *expr.CEL {
	source := r.readText(n, what)
	c, err := in().Compile(source)
	if err != nil {
		r.reportError(n, "%s: %v", what, err)
		return expr.BrokenCEL(source, err)
	}
	return c
}
