package compile

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// listOf refuses a foreach whose input is declared as no list. In the profile pocketflow such a step completes without units,
// so the problem is a warning there.
func (c *checker) listOf(n *define.Node, pocketflow bool, at *define.Place) {
	if n.Prep.InputMap != nil {
		return
	}
	path, ok := ref(n.Prep.InputKey).IntoParams()
	if declared, excluded := c.excludes(expr.KindArray, path, n.Params); ok && excluded {
		report := c.Errorf
		if pocketflow {
			report = c.Warnf
		}
		report(at.Key("prep").Key("input_key"), "%.80q is declared as %s: it must be %s", n.Prep.InputKey, declared, expr.KindArray)
	}
}

// runHolds refuses a reference to the run's input that is declared as another kind than the one needed.
func (c *dagChecker) runHolds(src *dagSource, text string, kind expr.Kind, at *define.Place) {
	r, unseen := reference(text, src.sees)
	if unseen != "" || r.From != flow.FromRun && r.From != flow.FromInput {
		return
	}
	path, ok := expr.PathKeys(r.Path)
	if declared, excluded := c.excludes(kind, path, nil); ok && excluded {
		c.Errorf(at, "%.80q is declared as %s: it must be %s", text, declared, kind)
	}
}

// excludes reports whether no value of a kind can be at a path of params, by the declared inputs, and returns the declared
// type. The node's own params, and those around it, are not declared.
func (c *checker) excludes(kind expr.Kind, path []string, own json.RawMessage) (declared string, excluded bool) {
	if len(path) == 0 || c.given.made {
		return "", false
	}
	for _, params := range append(c.given.around[:len(c.given.around):len(c.given.around)], own) {
		if _, there := expr.Field(params, path[0]); there {
			return "", false
		}
	}
	return c.given.inputs.Excludes(path, kind)
}
