package compile

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// checkForeachList reports a foreach whose input is declared with a type other than a list. With
// the pocketflow profile such a step completes without units, so the problem is a warning there.
func (c *paramChecker) checkForeachList(n *definition.Node, pocketflow bool, at *definition.Place) {
	if n.Prep.InputMap != nil {
		return
	}
	path, ok := parseRef(n.Prep.InputKey).IntoParams()
	if declared, excluded := c.excludesKind(expr.KindArray, path, n.Params); ok && excluded {
		report := c.Errorf
		if pocketflow {
			report = c.Warnf
		}
		report(at.Key("prep").Key("input_key"), "%.80q is declared as %s: it must be %s", n.Prep.InputKey, declared, expr.KindArray)
	}
}

// checkRunKind reports a reference to the run's input that is declared with another type than
// required.
func (c *dagChecker) checkRunKind(src *dagSource, text string, kind expr.Kind, at *definition.Place) {
	r, unseen := parseReference(text, src.sees)
	if unseen != "" || r.From != flow.FromRun && r.From != flow.FromInput {
		return
	}
	path, ok := expr.PathKeys(r.Path)
	if declared, excluded := c.excludesKind(kind, path, nil); ok && excluded {
		c.Errorf(at, "%.80q is declared as %s: it must be %s", text, declared, kind)
	}
}

// excludesKind reports whether the declared inputs exclude values of a kind at a path of params,
// and returns the declared type. The params of the node itself and of nodes around it are not
// declared.
func (c *paramChecker) excludesKind(kind expr.Kind, path []string, own json.RawMessage) (declared string, excluded bool) {
	if len(path) == 0 || c.scopeParams.made {
		return "", false
	}
	for _, params := range append(c.scopeParams.around[:len(c.scopeParams.around):len(c.scopeParams.around)], own) {
		if _, there := expr.Field(params, path[0]); there {
			return "", false
		}
	}
	return c.scopeParams.inputs.Excludes(path, kind)
}
