package flow

import "github.com/troupe-engine/troupe/flow/expr"

// Bounds on the expressions in CEL of one definition: they take time to compile, and memory as long as their plan is
// in use. The same expression counts once.
const (
	maxExpressions     = 5_000
	maxExpressionBytes = 256 << 10
)

// expressions are those in CEL that a definition has had so far.
type expressions struct {
	language *expr.Language
	known    map[string]*expr.CEL // nil = it has problems
	bytes    int
}

// caseVars are what the expressions of a choice may name.
var caseVars = []string{"params", "input", "shared"}

// condition compiles an expression of a choice, which has to give a boolean.
func (c *compiler) condition(source string, at *place) *expr.CEL {
	compiled := c.expressions.compile(source, at, c.reporter)
	if compiled != nil && !compiled.MayBeBool() {
		c.errorf(at, "the expression gives %s: it has to be true or false", compiled.Type())
	}
	return compiled
}

func (e *expressions) compile(source string, at *place, r *reporter) *expr.CEL {
	if known := e.known[source]; known != nil {
		return known
	}
	if e.bytes += len(source); e.bytes > maxExpressionBytes || len(e.known) >= maxExpressions {
		r.errorf(at, "the flow has more than %d different expressions, or more than %d KiB of them", maxExpressions, maxExpressionBytes>>10)
		return nil
	}
	if e.language == nil {
		e.language, e.known = expr.NewLanguage(caseVars...), map[string]*expr.CEL{}
	}
	compiled, err := e.language.Compile(source)
	if err != nil {
		r.errorf(at, "%s", err)
	}
	e.known[source] = compiled
	return compiled
}
