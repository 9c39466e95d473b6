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

// Eval says whether the expression is true. It fails when that takes more than the environment allows, and when it
// compares what is missing, unless the environment takes that for null: the wrong shape is false.
func (c *Cond) Eval(env *Env) (bool, error) {
	if env == nil {
		env = &Env{}
	}
	e := evaluation{env: env, Allowance: orAllowance(env.Allowance)}
	holds := e.holds(c)
	switch {
	case e.left == 0:
		return false, errTooMuch
	case e.missing != nil:
		return false, e.missing
	}
	return holds, nil
}

// evaluation is one use of an expression. What it reads of large values is found, and made ready to be compared,
// but once.
type evaluation struct {
	*Allowance
	env   *Env
	known map[string]operand // by the text of the reference

	missing error // what it came to that is not there: it is over then
}

func (e *evaluation) holds(c *Cond) bool {
	if e.missing != nil || !e.charge(1) {
		return false
	}
	switch c.op {
	case never:
		return false
	case and:
		for _, t := range c.terms {
			if !e.holds(t) {
				return false
			}
		}
		return true
	case or:
		for _, t := range c.terms {
			if e.holds(t) {
				return true
			}
		}
		return false
	case not:
		return !e.holds(c.terms[0])
	case exists:
		a := e.resolve(&c.a, false)
		return a.kind != KindNull
	}
	return e.relate(c)
}

// manyBytes is from where on it is worth while to remember what was read.
const manyBytes = 1 << 10

// resolve finds an operand, with the text of a list or object if it is to be compared.
func (e *evaluation) resolve(t *term, compared bool) operand {
	if t.ref.Literal() {
		return t.value
	}
	o, known := e.known[t.ref.text]
	if !known {
		read := t.ref.reads(e.env)
		if !e.charge(read / 64) {
			return operand{}
		}
		v, there := t.ref.Find(e.env)
		v = e.env.Whole.of(v)
		if !e.charge(1 + len(v)/8) {
			return operand{}
		}
		o = look(v)
		o.missing = !there
		if max(read, len(v)) > manyBytes {
			e.remember(t.ref.text, o)
		}
	}
	if compared && o.text == nil && (o.kind == KindArray || o.kind == KindObject) {
		if !e.charge(len(o.raw)) {
			return operand{}
		}
		o.text = o.textOf()
		if len(o.raw) > manyBytes {
			e.remember(t.ref.text, o)
		}
	}
	return o
}

func (e *evaluation) remember(text string, o operand) {
	if e.known == nil {
		e.known = map[string]operand{}
	}
	e.known[text] = o
}

// relate applies an operator that takes two values.
func (e *evaluation) relate(c *Cond) bool {
	collection := c.op == in || c.op == contains
	a, b := e.resolve(&c.a, !collection || c.op == in), e.resolve(&c.b, !collection || c.op == contains)
	if !e.env.Coerce && (a.missing || b.missing) {
		e.misses(c, a.missing)
		return false
	}
	cost := min(len(a.raw), len(b.raw)) / 8
	switch {
	case c.op == in:
		cost = holdsCost(&b)
	case c.op == contains:
		cost = holdsCost(&a)
	}
	return e.charge(cost) && c.op.relate(&a, &b)
}

// misses notes what a comparison lacks: its first operand or else its second.
func (e *evaluation) misses(c *Cond, first bool) {
	t := &c.b
	if first {
		t = &c.a
	}
	e.missing = t.ref.missing(e.env)
}

// holdsCost is what it costs to look for something in a collection.
func holdsCost(collection *operand) int {
	if collection.kind == KindArray {
		return len(collection.raw)
	}
	return len(collection.raw) / 8
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
