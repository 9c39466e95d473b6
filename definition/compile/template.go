package compile

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// templatePart is a literal text, or a reference with an optional replacement for a missing value.
type templatePart struct {
	text string
	ref  string // without the leading $; "" for a literal text
	or   *string
}

// parseTemplate parses a text with references: ${deps.a.x} for a value, ${deps.a.x:-none} with a
// replacement, and $${ for a literal ${. whole reports whether every ${ is closed.
func parseTemplate(text string) (pieces []templatePart, whole bool) {
	said := ""
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			return append(pieces, templatePart{text: said + text}), true
		}
		if at > 0 && text[at-1] == '$' {
			said, text = said+text[:at-1]+"${", text[at+2:]
			continue
		}
		inside, rest, closed := strings.Cut(text[at+2:], "}")
		if !closed {
			return append(pieces, templatePart{text: said + text}), false
		}
		p := templatePart{}
		if ref, or, has := strings.Cut(inside, ":-"); has {
			p.or, inside = &or, ref
		}
		p.ref = strings.TrimSpace(inside)
		pieces = append(pieces, templatePart{text: said + text[:at]}, p)
		said, text = "", rest
	}
}

// programVars returns the variables of a node's program that contain references. An invalid
// reference counts as a text.
func programVars(n *definition.Node, sees []flow.Seen) (list []flow.Var) {
	e := n.Started()
	if e == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		if !strings.Contains(string(e.Env[name]), "${") {
			continue
		}
		v := flow.Var{Name: name}
		pieces, _ := parseTemplate(string(e.Env[name]))
		for _, p := range pieces {
			if p.ref == "" && p.text == "" {
				continue
			}
			part := flow.VarPart{Text: p.text, Ref: varRef(p, sees)}
			if part.Ref != nil {
				part.Text = "${" + p.ref + "}"
			}
			v.Parts = append(v.Parts, part)
		}
		list = append(list, v)
	}
	return list
}

const depsRef = "$deps"

func varRef(p templatePart, sees []flow.Seen) *flow.VarRef {
	if p.ref == "" {
		return nil
	}
	r := &flow.VarRef{KeyText: keyText("$" + p.ref), Of: -1, Or: p.or}
	if _, ok := cutRefName("$"+p.ref, depsRef); !ok {
		return r
	}
	to, _ := parseReference("$"+p.ref, sees)
	r.KeyText = flow.KeyText{Text: "$" + p.ref, Ref: expr.ParseRef("$input")}
	if to.Path != "" {
		r.Ref = expr.ParseRef("$input." + to.Path)
	}
	r.Of = to.Dep
	return r
}

// checkEnv checks the variables of a node's program. src is the node of a dag. It is nil for a node
// without dependencies.
func (c *paramChecker) checkEnv(n *definition.Node, kind flow.Kind, src *dagSource, at *definition.Place) {
	e := n.Started()
	if e == nil {
		return
	}
	at = at.Key("exec").Key("env")
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		at := at.Key(name)
		pieces, whole := parseTemplate(string(e.Env[name]))
		if !whole {
			c.Errorf(at, "a ${ without its }: write $${ for the text itself")
		}
		for i, p := range pieces {
			if i%2 == 1 {
				c.checkVarRef(p.ref, n, kind, src, at)
			}
		}
	}
}

// checkVarRef checks a reference in a variable.
func (c *paramChecker) checkVarRef(ref string, n *definition.Node, kind flow.Kind, src *dagSource, at *definition.Place) {
	text := "$" + ref
	head, path, _ := strings.Cut(ref, ".")
	_, leads := expr.PathKeys(ref)
	switch {
	case !leads || (head == "params" || head == "shared" || head == "deps") && path == "":
		c.Errorf(at, "${%.80s} leads nowhere: write for example ${params.day}, or $${%.80s} for the text itself", ref, ref)
	case head == "deps" && src == nil:
		c.Errorf(at, "${%.80s}: there are no dependencies here; what other nodes have written is in shared", ref)
	case head == "deps":
		if _, unseen := parseReference(text, src.sees); unseen != "" {
			c.Errorf(at, "${%.80s} refers to %.80q, which is not among depends_on%s", ref, unseen, src.guessDependency(unseen))
		}
	case head == "item" && kind != flow.KindForeach && kind != flow.KindFanout:
		c.Errorf(at, "${%.80s}: the node has no items", ref)
	case head == "params":
		c.checkParamsRef(text, n.Params, at)
	case head == "run" && path != "" && src != nil:
		c.checkRunRef(text, path, at)
	case head == "run", head == "shared", head == "input", head == "item":
	default:
		c.Errorf(at, "${%.80s} begins with none of params, run, deps, shared, input and item: "+
			"write $${%.80s} for the text itself", ref, ref)
	}
}
