package expr

import "encoding/json"

// Cond is a compiled expression: {"op": operand}, where the operand of and, or and not is made
// of expressions and that of the others of values and references.
type Cond struct {
	op    op
	terms []*Cond // of and, or, not
	a, b  term    // of the others; for exists only a
}

type op uint8

const (
	never op = iota // an expression of the wrong shape
	and
	or
	not
	eq
	ne
	gt
	lt
	ge
	le
	exists
	in
	contains
)

var ops = map[string]op{
	"and": and, "or": or, "not": not,
	"eq": eq, "ne": ne, "gt": gt, "lt": lt, "ge": ge, "le": le,
	"exists": exists, "in": in, "contains": contains,
}

// term is an operand before it is evaluated: a reference, or a value that never changes.
type term struct {
	ref   Ref
	value operand // if ref is a literal
}

// newTerm reads an operand. Only a string that stands alone may be a reference; strings inside
// a literal array or object are themselves.
func newTerm(raw json.RawMessage) term {
	if text, ok := String(raw); ok {
		if ref := ParseRef(text); !ref.Literal() {
			return term{ref: ref}
		}
	}
	return term{value: look(raw)}
}

func (t *term) resolve(env *Env) operand {
	if t.ref.Literal() {
		return t.value
	}
	return look(t.ref.Resolve(env))
}

// Eval says whether the expression is true. It never fails: the wrong shape is false.
func (c *Cond) Eval(env *Env) bool {
	switch c.op {
	case never:
		return false
	case and:
		for _, t := range c.terms {
			if !t.Eval(env) {
				return false
			}
		}
		return true
	case or:
		for _, t := range c.terms {
			if t.Eval(env) {
				return true
			}
		}
		return false
	case not:
		return !c.terms[0].Eval(env)
	case exists:
		a := c.a.resolve(env)
		return a.kind != KindNull
	}
	a, b := c.a.resolve(env), c.b.resolve(env)
	return c.op.relate(&a, &b)
}

// relate applies an operator that takes two values.
func (o op) relate(a, b *operand) bool {
	switch o {
	case eq:
		return equal(a, b)
	case ne:
		return !equal(a, b)
	case gt:
		return compare(a, b) > 0
	case lt:
		return compare(a, b) < 0
	case ge:
		return compare(a, b) >= 0
	case le:
		return compare(a, b) <= 0
	case in:
		return holds(b, a)
	case contains:
		return holds(a, b)
	}
	return false
}
