package expr

import (
	"encoding/json"
	"fmt"
)

// Limits of one condition, so that a hostile definition cannot grow far beyond its own size.
const (
	maxDepth    = 100
	maxTerms    = 1_000
	maxProblems = 100
)

// Problem is a problem of a condition with its place: a path from the root such as and[1].eq, or ""
// for the root itself.
type Problem struct {
	Path, Msg string
}

// ParseCond compiles a condition. All problems are returned. The condition can be evaluated in any
// case: a part of the wrong shape is false, and an object with several operators is true if each of
// them is true.
func ParseCond(raw json.RawMessage) (*Cond, []Problem) {
	p := condParser{}
	switch {
	case !Valid(raw):
		p.reportProblem("", "the expression is not valid JSON")
	case KindOf(raw) != KindObject:
		p.reportProblem("", "an expression is an object with one operator")
	default:
		return p.parseObject(raw, "", 1), p.problems
	}
	return &Cond{}, p.problems
}

type condParser struct {
	problems []Problem
	terms    int
}

func (p *condParser) reportProblem(path, msg string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, Problem{path, fmt.Sprintf(msg, args...)})
	}
}

// parseObject compiles a condition that is an object.
func (p *condParser) parseObject(raw json.RawMessage, path string, depth int) *Cond {
	if depth > maxDepth {
		p.reportProblem(path, "expressions nest deeper than %d", maxDepth)
		return &Cond{}
	}
	members, _ := Members(raw)
	members = lastOfEach(members)
	switch len(members) {
	case 0:
		p.reportProblem(path, "the expression has no operator")
		return &Cond{}
	case 1:
		return p.parseOperator(members[0], path, depth)
	}
	p.reportProblem(path, "the expression has %d operators; write one, or join them with and", len(members))
	all := &Cond{op: opAnd}
	for _, m := range members {
		all.terms = append(all.terms, p.parseOperator(m, path, depth))
	}
	return all
}

// lastOfEach removes members with a key that occurs again later.
func lastOfEach(members []Member) []Member {
	if len(members) < 2 {
		return members
	}
	place := make(map[string]int, len(members))
	var out []Member
	for _, m := range members {
		i, seen := place[m.Key]
		if !seen {
			place[m.Key] = len(out)
			out = append(out, m)
			continue
		}
		out[i] = m
	}
	return out
}

func (p *condParser) parseOperator(m Member, path string, depth int) *Cond {
	path = joinPath(path, m.Key)
	if p.terms++; p.terms > maxTerms {
		p.reportProblem(path, "the expression has more than %d terms", maxTerms)
		return &Cond{}
	}
	switch o := condOps[m.Key]; o {
	case opNever:
		p.reportProblem(path, "unknown operator %q", m.Key)
		return &Cond{}
	case opAnd, opOr:
		return p.parseList(o, m.Value, path, depth)
	case opNot:
		return &Cond{op: opNot, terms: []*Cond{p.parseMember(m.Value, path, depth)}}
	case opExists:
		return p.parseExists(m.Value, path)
	default:
		return p.parsePair(o, m.Value, path)
	}
}

func (p *condParser) parseList(o condOp, raw json.RawMessage, path string, depth int) *Cond {
	c, ok := newCursor(raw, '[')
	if !ok {
		p.reportProblem(path, "the operand is an array of expressions")
		return &Cond{}
	}
	out := &Cond{op: o}
	for i := 0; c.nextMember(); i++ {
		at := fmt.Sprintf("%s[%d]", path, i)
		if p.terms++; p.terms > maxTerms {
			p.reportProblem(at, "the expression has more than %d terms", maxTerms)
			return &Cond{}
		}
		out.terms = append(out.terms, p.parseMember(c.value, at, depth))
	}
	return out
}

// parseMember compiles an element of and, or and not: a condition, or a value that must be true.
func (p *condParser) parseMember(raw json.RawMessage, path string, depth int) *Cond {
	switch KindOf(raw) {
	case KindObject:
		return p.parseObject(raw, path, depth+1)
	case KindBool, KindString:
	default:
		p.reportProblem(path, "this is never true: write an expression, a reference or a boolean")
	}
	return &Cond{op: opEqual, a: newTerm(raw), b: newTerm(json.RawMessage("true"))}
}

func (p *condParser) parseExists(raw json.RawMessage, path string) *Cond {
	if KindOf(raw) != KindString {
		p.reportProblem(path, "the operand is a reference")
		return &Cond{}
	}
	return &Cond{op: opExists, a: newTerm(raw)}
}

func (p *condParser) parsePair(o condOp, raw json.RawMessage, path string) *Cond {
	two, ok := pairOf(raw)
	if !ok {
		p.reportProblem(path, "the operand is an array of two values")
		return &Cond{}
	}
	c := &Cond{op: o, a: newTerm(two[0]), b: newTerm(two[1])}
	if o != opIn && o != opContains { // in and contains use a literal unchanged
		for _, t := range []*condTerm{&c.a, &c.b} {
			t.value, t.loose = t.value.withText(), t.loose.withText()
		}
	}
	return c
}

// pairOf returns the elements of an array with exactly two elements, or false for other values.
func pairOf(raw json.RawMessage) (two [2]json.RawMessage, ok bool) {
	c, ok := newCursor(raw, '[')
	for i := range two {
		if !ok || !c.nextMember() {
			return two, false
		}
		two[i] = c.value
	}
	return two, !c.nextMember()
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
