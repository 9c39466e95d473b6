package compile

import (
	"errors"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Limits of the CEL expressions of one definition. They take time to compile, and memory while
// their plan is in use. Equal expressions count once.
const (
	maxExpressions     = 5_000
	maxExpressionBytes = 256 << 10
)

// checkCondition checks an expression that must return a boolean.
func (c fieldChecker) checkCondition(compiled *expr.CEL, at *definition.Place) {
	c.checkCEL(compiled, at)
	if compiled.Broken() == nil && !compiled.MayBeBool() {
		c.Errorf(at, "the expression gives %s: it has to be true or false", compiled.Type())
	}
}

func (c fieldChecker) checkCEL(compiled *expr.CEL, at *definition.Place) {
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

// checkExpressionCount reports whether the definition has at most as many expressions as may be
// compiled.
func (c fieldChecker) checkExpressionCount(d *definition.Definition) bool {
	x := &expressionCount{fieldChecker: c, seen: map[string]bool{}}
	x.countNodes(d.Nodes, definition.At("nodes"))
	return !x.tooMany
}

// expressionCount counts the expressions of a definition.
type expressionCount struct {
	fieldChecker
	seen    map[string]bool
	bytes   int
	tooMany bool
}

func (x *expressionCount) countNodes(nodes map[string]*definition.Node, at *definition.Place) {
	for _, key := range definition.InOrder(nodes) {
		if n := nodes[key]; n != nil && !x.tooMany {
			x.countNode(n, at.Key(key))
		}
	}
}

func (x *expressionCount) countNode(n *definition.Node, at *definition.Place) {
	for i := range n.ChoiceCases {
		if source, ok := expr.String(n.ChoiceCases[i].Expr); ok {
			x.addExpression(source, at.Key("choice_cases").Index(i).Key("expr"))
		}
	}
	if n.When != nil {
		x.addExpression(n.When.Expr, at.Key("when").Key("expr"))
	}
	x.addExpression(n.Prep.Expr, at.Key("prep").Key("expr"))
	if n.Subflow != nil {
		x.countNodes(n.Subflow.Nodes, at.Key("subflow").Key("nodes"))
	}
	if n.Flow != nil && n.Flow.Definition != nil {
		x.countNodes(n.Flow.Nodes, at.Key("flow").Key("nodes"))
	}
}

func (x *expressionCount) addExpression(source string, at *definition.Place) {
	if source == "" || x.seen[source] || x.tooMany {
		return
	}
	x.seen[source] = true
	if x.bytes += len(source); x.bytes > maxExpressionBytes || len(x.seen) > maxExpressions {
		x.tooMany = true
		x.Errorf(at, "the flow has more than %d different expressions, or more than %d KiB of them", maxExpressions, maxExpressionBytes>>10)
	}
}
