package flow

import (
	"errors"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Bounds on the expressions in CEL of one definition: they take time to compile, and memory as long as their plan is
// in use. The same expression counts once.
const (
	maxExpressions     = 5_000
	maxExpressionBytes = 256 << 10
)

// condition checks an expression that has to give a boolean.
func (c *checker) condition(compiled *expr.CEL, at *place) {
	c.cel(compiled, at)
	if compiled.Broken() == nil && !compiled.MayBeBool() {
		c.errorf(at, "the expression gives %s: it has to be true or false", compiled.Type())
	}
}

func (c *checker) cel(compiled *expr.CEL, at *place) {
	if err := compiled.Broken(); err != nil && !errors.Is(err, errNotCompiled) {
		c.errorf(at, "%s", err)
	}
}

// expressions is false if there are more than may be compiled.
func (c *checker) expressions(d *Definition) bool {
	x := &expressionCount{checker: c, seen: map[string]bool{}}
	x.nodes(d.Nodes, (*place)(nil).key("nodes"))
	return !x.tooMany
}

// expressionCount counts the expressions of a definition.
type expressionCount struct {
	*checker
	seen    map[string]bool
	bytes   int
	tooMany bool
}

func (x *expressionCount) nodes(nodes map[string]*Node, at *place) {
	for _, key := range inOrder(nodes) {
		if n := nodes[key]; n != nil && !x.tooMany {
			x.node(n, at.key(key))
		}
	}
}

func (x *expressionCount) node(n *Node, at *place) {
	for i := range n.ChoiceCases {
		if source, ok := expr.String(n.ChoiceCases[i].Expr); ok {
			x.one(source, at.key("choice_cases").index(i).key("expr"))
		}
	}
	if n.When != nil {
		x.one(n.When.Expr, at.key("when").key("expr"))
	}
	x.one(n.Prep.Expr, at.key("prep").key("expr"))
	if n.Subflow != nil {
		x.nodes(n.Subflow.Nodes, at.key("subflow").key("nodes"))
	}
	if n.Flow != nil && n.Flow.Definition != nil {
		x.nodes(n.Flow.Nodes, at.key("flow").key("nodes"))
	}
}

func (x *expressionCount) one(source string, at *place) {
	if source == "" || x.seen[source] || x.tooMany {
		return
	}
	x.seen[source] = true
	if x.bytes += len(source); x.bytes > maxExpressionBytes || len(x.seen) > maxExpressions {
		x.tooMany = true
		x.errorf(at, "the flow has more than %d different expressions, or more than %d KiB of them", maxExpressions, maxExpressionBytes>>10)
	}
}
