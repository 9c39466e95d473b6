package expr

import "encoding/json"

// Cond is a compiled condition: {"op": operand}. The operand of and, or and not is a list of
// conditions. Other operators have values and references as operands.
type Cond struct {
	op    condOp
	terms []*Cond  // for and, or, not
	a, b  condTerm // for other operators; exists uses only a
}

type condOp uint8

const (
	opNever condOp = iota // a condition of the wrong shape
	opAnd
	opOr
	opNot
	opEqual
	opNotEqual
	opGreater
	opLess
	opGreaterEqual
	opLessEqual
	opExists
	opIn
	opContains
)

var condOps = map[string]condOp{
	"and": opAnd, "or": opOr, "not": opNot,
	"eq": opEqual, "ne": opNotEqual, "gt": opGreater, "lt": opLess, "ge": opGreaterEqual, "le": opLessEqual,
	"exists": opExists, "in": opIn, "contains": opContains,
}

// condTerm is an operand before its evaluation: a reference, or a constant value.
type condTerm struct {
	ref Ref
	// value is the value of a literal; loose is the same under the rules of PocketFlow.
	value, loose condOperand
}

// newTerm reads an operand. A string is parsed as a reference, but strings inside a literal array
// or object are literals.
func newTerm(raw json.RawMessage) condTerm {
	if text, ok := String(raw); ok {
		if ref := ParseRef(text); !ref.Literal() {
			return condTerm{ref: ref}
		}
	}
	return condTerm{value: readOperand(raw, false), loose: readOperand(raw, true)}
}

// Eval reports whether the condition is true. A condition of the wrong shape is false. Eval returns
// an error in three cases:
//
//   - The work exceeds the allowance of the environment.
//   - A missing value is compared, unless the environment treats that as null.
//   - Values without an order are ordered, such as a text and a number.
func (c *Cond) Eval(env *Env) (bool, error) {
	if env == nil {
		env = &Env{}
	}
	e := condEvaluation{env: env, Allowance: orAllowance(env.Allowance)}
	holds := e.isTrue(c)
	switch {
	case e.left == 0:
		return false, errTooMuch
	case e.failure != nil:
		return false, e.failure
	}
	return holds, nil
}

// condEvaluation is one evaluation of a condition. Each large value is read, and prepared for
// comparisons, only once.
type condEvaluation struct {
	*Allowance
	env           *Env
	knownOperands map[string]condOperand // operands by the text of the reference

	failure error // error that ends the evaluation early
}

func (e *condEvaluation) isTrue(c *Cond) bool {
	if e.failure != nil || !e.chargeCost(1) {
		return false
	}
	switch c.op {
	case opNever:
		return false
	case opAnd:
		for _, t := range c.terms {
			if !e.isTrue(t) {
				return false
			}
		}
		return true
	case opOr:
		for _, t := range c.terms {
			if e.isTrue(t) {
				return true
			}
		}
		return false
	case opNot:
		return !e.isTrue(c.terms[0])
	case opExists:
		a := e.resolveTerm(&c.a, false)
		return a.kind != KindNull
	}
	return e.evalRelation(c)
}

// minCachedBytes is the size from which a read value is worth caching.
const minCachedBytes = 1 << 10

// resolveTerm returns the operand of a term. For a list or object that is compared, it also creates
// the text.
func (e *condEvaluation) resolveTerm(t *condTerm, compared bool) condOperand {
	if t.ref.Literal() {
		if e.env.Loose {
			return t.loose
		}
		return t.value
	}
	o, known := e.knownOperands[t.ref.text]
	if !known {
		read := t.ref.readCost(e.env)
		if !e.chargeCost(read / 64) {
			return condOperand{}
		}
		v, there := t.ref.Find(e.env)
		v = e.env.Whole.openValue(v)
		if !e.chargeCost(1 + len(v)/8) {
			return condOperand{}
		}
		o = readOperand(v, e.env.Loose)
		o.missing = !there
		if max(read, len(v)) > minCachedBytes {
			e.rememberOperand(t.ref.text, o)
		}
	}
	if compared && o.text == nil && (o.kind == KindArray || o.kind == KindObject) {
		if !e.chargeCost(len(o.raw)) {
			return condOperand{}
		}
		o.text = o.textOf()
		if len(o.raw) > minCachedBytes {
			e.rememberOperand(t.ref.text, o)
		}
	}
	return o
}

func (e *condEvaluation) rememberOperand(text string, o condOperand) {
	if e.knownOperands == nil {
		e.knownOperands = map[string]condOperand{}
	}
	e.knownOperands[text] = o
}

// evalRelation applies an operator with two operands.
func (e *condEvaluation) evalRelation(c *Cond) bool {
	collection := c.op == opIn || c.op == opContains
	a, b := e.resolveTerm(&c.a, !collection || c.op == opIn), e.resolveTerm(&c.b, !collection || c.op == opContains)
	if !e.env.Coerce && (a.missing || b.missing) {
		e.setMissing(c, a.missing)
		return false
	}
	cost := min(len(a.raw), len(b.raw)) / 8
	switch {
	case c.op == opIn:
		cost = holdsCost(&b)
	case c.op == opContains:
		cost = holdsCost(&a)
	}
	if !e.chargeCost(cost) {
		return false
	}
	switch c.op {
	case opGreater, opLess, opGreaterEqual, opLessEqual:
		return e.evalOrder(c, &a, &b)
	}
	return c.op.compareOperands(&a, &b)
}

// evalOrder applies an operator that needs an order. If missing values count as null, null is
// neither smaller nor greater than any value.
func (e *condEvaluation) evalOrder(c *Cond, a, b *condOperand) bool {
	n, ordered := orderValues(a, b)
	switch {
	case !ordered && e.env.Coerce && (a.kind == KindNull || b.kind == KindNull):
		return false
	case !ordered:
		e.failure = &OrderError{Left: c.a.sourceText(), Right: c.b.sourceText(), LeftKind: a.kind, RightKind: b.kind}
		return false
	}
	switch c.op {
	case opGreater:
		return n > 0
	case opLess:
		return n < 0
	case opGreaterEqual:
		return n >= 0
	}
	return n <= 0
}

// sourceText returns the operand as written in the condition.
func (t *condTerm) sourceText() string {
	if t.ref.Literal() {
		return Shorten(string(trimSpace(t.value.raw)))
	}
	return t.ref.text
}

// setMissing sets the error for a missing operand: the first or the second one.
func (e *condEvaluation) setMissing(c *Cond, first bool) {
	t := &c.b
	if first {
		t = &c.a
	}
	e.failure = t.ref.missingError(e.env)
}

// holdsCost returns the cost of a search in a list or a text.
func holdsCost(collection *condOperand) int {
	if collection.kind == KindArray {
		return len(collection.raw)
	}
	return len(collection.raw) / 8
}

// compareOperands applies a binary operator that needs no order.
func (o condOp) compareOperands(a, b *condOperand) bool {
	switch o {
	case opEqual:
		return equalOperands(a, b)
	case opNotEqual:
		return !equalOperands(a, b)
	case opIn:
		return containsValue(b, a)
	case opContains:
		return containsValue(a, b)
	}
	return false
}
