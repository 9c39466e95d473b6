package compile

import (
	"errors"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Bounds on the expressions in CEL of one definition: they take time to compile, and memory as long as their plan is
// in use. The same expression counts once.
const (
	maxExpressions     = 5_000
	maxExpressionBytes = 256 << 10
)

// condition checks an expression that has to give a boolean.
func (c *checker) condition(compiled *expr.CEL, at *define.Place) {
	c.cel(compiled, at)
	if compiled.Broken() == nil && !compiled.MayBeBool() {
		c.Errorf(at, "the expression gives %s: it has to be true or false", compiled.Type())
	}
}

func (c *checker) cel(compiled *expr.CEL, at *define.Place) {
	err := compiled.Broken()
	var faults expr.Faults
	switch {
	case err == nil || errors.Is(err, errNotCompiled):
	case errors.As(err, &faults):
		for _, f := range faults {
			c.Errorf(at.Character(f.At), "%s", f.Msg)
		}
	default:
		c.Errorf(at, "%s", err)
	}
}

// expressions is false if there are more than may be compiled.
func (c *checker) expressions(d *define.Definition) bool {
	x := &expressionCount{checker: c, seen: map[string]bool{}}
	x.nodes(d.Nodes, define.At("nodes"))
	return !x.tooMany
}

// expressionCount counts the expressions of a definition.
type expressionCount struct {
	*checker
	seen    map[string]bool
	bytes   int
	tooMany bool
}

func (x *expressionCount) nodes(nodes map[string]*define.Node, at *define.Place) {
	for _, key := range define.InOrder(nodes) {
		if n := nodes[key]; n != nil && !x.tooMany {
			x.node(n, at.Key(key))
		}
	}
}

func (x *expressionCount) node(n *define.Node, at *define.Place) {
	for i := range n.ChoiceCases {
		if source, ok := expr.String(n.ChoiceCases[i].Expr); ok {
			x.one(source, at.Key("choice_cases").Index(i).Key("expr"))
		}
	}
	if n.When != nil {
		x.one(n.When.Expr, at.Key("when").Key("expr"))
	}
	x.one(n.Prep.Expr, at.Key("prep").Key("expr"))
	if n.Subflow != nil {
		x.nodes(n.Subflow.Nodes, at.Key("subflow").Key("nodes"))
	}
	if n.Flow != nil && n.Flow.Definition != nil {
		x.nodes(n.Flow.Nodes, at.Key("flow").Key("nodes"))
	}
}

func (x *expressionCount) one(source string, at *define.Place) {
	if source == "" || x.seen[source] || x.tooMany {
		return
	}
	x.seen[source] = true
	if x.bytes += len(source); x.bytes > maxExpressionBytes || len(x.seen) > maxExpressions {
		x.tooMany = true
		x.Errorf(at, "the flow has more than %d different expressions, or more than %d KiB of them", maxExpressions, maxExpressionBytes>>10)
	}
}
