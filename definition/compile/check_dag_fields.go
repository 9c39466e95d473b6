package compile

import (
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// checkFields checks the name of a node, fields in two notations, and an empty condition.
func (c *dagChecker) checkFields(n *definition.Node, kind flow.Kind, at *definition.Place) {
	if err := flow.CheckName("the name", n.Name); err != nil {
		c.Errorf(at.Key("name"), "%s", err)
	}
	c.checkTimeoutNotations(n, at)
	if w := n.When; w != nil && kind != flow.KindOutput && len(w.If) == 0 && len(w.IfNot) == 0 && w.Expr == "" && w.Cond == nil {
		c.Errorf(at.Key("when"), "says nothing: write if, if_not, expr or cond")
	}
}
