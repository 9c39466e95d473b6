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
	languages map[bool]*expr.Language // false: of graph mode
	known     map[knownCEL]*expr.CEL  // nil = it has problems
	bytes     int
}

type knownCEL struct {
	source string
	dag    bool
}

// What expressions may name.
var (
	caseVars = []string{"params", "input", "shared"}
	dagVars  = []string{"run", "params", "deps", "input", "shared"}
)

// condition compiles an expression that has to give a boolean.
func (c *compiler) condition(source string, dag bool, at *place) *expr.CEL {
	compiled := c.expressions.compile(source, dag, at, c.reporter)
	if compiled != nil && !compiled.MayBeBool() {
		c.errorf(at, "the expression gives %s: it has to be true or false", compiled.Type())
	}
	return compiled
}

func (e *expressions) compile(source string, dag bool, at *place, r *reporter) *expr.CEL {
	key := knownCEL{source, dag}
	if known := e.known[key]; known != nil {
		return known
	}
	if e.bytes += len(source); e.bytes > maxExpressionBytes || len(e.known) >= maxExpressions {
		r.errorf(at, "the flow has more than %d different expressions, or more than %d KiB of them", maxExpressions, maxExpressionBytes>>10)
		return nil
	}
	if e.known == nil {
		e.languages, e.known = map[bool]*expr.Language{}, map[knownCEL]*expr.CEL{}
	}
	if e.languages[dag] == nil {
		vars := caseVars
		if dag {
			vars = dagVars
		}
		e.languages[dag] = expr.NewLanguage(vars...)
	}
	compiled, err := e.languages[dag].Compile(source)
	if err != nil {
		r.errorf(at, "%s", err)
	}
	e.known[key] = compiled
	return compiled
}
