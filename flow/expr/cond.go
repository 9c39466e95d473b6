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
	ref          Ref
	value, loose operand // if ref is a literal: the value, and how the rules of PocketFlow see it
}

// newTerm reads an operand. Only a string that stands alone may be a reference; strings inside
// a literal array or object are themselves.
func newTerm(raw json.RawMessage) term {
	if text, ok := String(raw); ok {
		if ref := ParseRef(text); !ref.Literal() {
			return term{ref: ref}
		}
	}
	return term{value: look(raw, false), loose: look(raw, true)}
}

// Eval says whether the expression is true. It fails when that takes more than the environment allows, when it
// compares what is missing, unless the environment takes that for null, and when it orders values that have no order, such
// as a text and a number: the wrong shape is false.
func (c *Cond) Eval(env *Env) (bool, error) {
	if env == nil {
		env = &Env{}
	}
	e := evaluation{env: env, Allowance: orAllowance(env.Allowance)}
	holds := e.holds(c)
	switch {
	case e.left == 0:
		return false, errTooMuch
	case e.failure != nil:
		return false, e.failure
	}
	return holds, nil
}

// evaluation is one use of an expression. What it reads of large values is found, and made ready to be compared,
// but once.
type evaluation struct {
	*Allowance
	env   *Env
	known map[string]operand // by the text of the reference

	failure error // why the evaluation ended early
}

func (e *evaluation) holds(c *Cond) bool {
	if e.failure != nil || !e.charge(1) {
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
		if e.env.Loose {
			return t.loose
		}
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
		o = look(v, e.env.Loose)
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
	if !e.charge(cost) {
		return false
	}
	switch c.op {
	case gt, lt, ge, le:
		return e.orders(c, &a, &b)
	}
	return c.op.relate(&a, &b)
}

// orders applies an operator that needs an order. Where missing values count as null, null is neither smaller nor greater
// than anything.
func (e *evaluation) orders(c *Cond, a, b *operand) bool {
	n, ordered := orderValues(a, b)
	switch {
	case !ordered && e.env.Coerce && (a.kind == KindNull || b.kind == KindNull):
		return false
	case !ordered:
		e.failure = &OrderError{Left: c.a.name(), Right: c.b.name(), LeftKind: a.kind, RightKind: b.kind}
		return false
	}
	switch c.op {
	case gt:
		return n > 0
	case lt:
		return n < 0
	case ge:
		return n >= 0
	}
	return n <= 0
}

// name is the operand as the expression writes it.
func (t *term) name() string {
	if t.ref.Literal() {
		return Shorten(string(trim(t.value.raw)))
	}
	return t.ref.text
}

// misses notes what a comparison lacks: its first operand or else its second.
func (e *evaluation) misses(c *Cond, first bool) {
	t := &c.b
	if first {
		t = &c.a
	}
	e.failure = t.ref.missing(e.env)
}

// holdsCost is what it costs to look for something in a collection.
func holdsCost(collection *operand) int {
	if collection.kind == KindArray {
		return len(collection.raw)
	}
	return len(collection.raw) / 8
}

// relate applies an operator that takes two values in any order of them.
func (o op) relate(a, b *operand) bool {
	switch o {
	case eq:
		return equal(a, b)
	case ne:
		return !equal(a, b)
	case in:
		return holds(b, a)
	case contains:
		return holds(a, b)
	}
	return false
}
