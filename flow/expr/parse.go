package expr

import (
	"encoding/json"
	"fmt"
)

// Bounds on one expression, so that a hostile definition cannot grow far beyond its own size.
const (
	maxDepth    = 100
	maxTerms    = 1_000
	maxProblems = 100
)

// Problem is something wrong with an expression, and where: a path such as and[1].eq from its
// root, empty for the root itself.
type Problem struct {
	Path, Msg string
}

// ParseCond compiles an expression. Whatever is wrong with it is told, and still the result is
// an expression that can be evaluated: a part of the wrong shape is false, and an object with
// several operators is true if each of them is.
func ParseCond(raw json.RawMessage) (*Cond, []Problem) {
	p := parser{}
	switch {
	case !Valid(raw):
		p.report("", "the expression is not valid JSON")
	case KindOf(raw) != KindObject:
		p.report("", "an expression is an object with one operator")
	default:
		return p.object(raw, "", 1), p.problems
	}
	return &Cond{}, p.problems
}

type parser struct {
	problems []Problem
	terms    int
}

func (p *parser) report(path, msg string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, Problem{path, fmt.Sprintf(msg, args...)})
	}
}

// object reads an expression proper.
func (p *parser) object(raw json.RawMessage, path string, depth int) *Cond {
	if depth > maxDepth {
		p.report(path, "expressions nest deeper than %d", maxDepth)
		return &Cond{}
	}
	members, _ := Members(raw)
	members = lastOfEach(members)
	switch len(members) {
	case 0:
		p.report(path, "the expression has no operator")
		return &Cond{}
	case 1:
		return p.operator(members[0], path, depth)
	}
	p.report(path, "the expression has %d operators; write one, or join them with and", len(members))
	all := &Cond{op: and}
	for _, m := range members {
		all.terms = append(all.terms, p.operator(m, path, depth))
	}
	return all
}

// lastOfEach drops members whose key is written again further on.
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

func (p *parser) operator(m Member, path string, depth int) *Cond {
	path = join(path, m.Key)
	if p.terms++; p.terms > maxTerms {
		p.report(path, "the expression has more than %d terms", maxTerms)
		return &Cond{}
	}
	switch o := ops[m.Key]; o {
	case never:
		p.report(path, "unknown operator %q", m.Key)
		return &Cond{}
	case and, or:
		return p.list(o, m.Value, path, depth)
	case not:
		return &Cond{op: not, terms: []*Cond{p.member(m.Value, path, depth)}}
	case exists:
		return p.exists(m.Value, path)
	default:
		return p.pair(o, m.Value, path)
	}
}

func (p *parser) list(o op, raw json.RawMessage, path string, depth int) *Cond {
	c, ok := enter(raw, '[')
	if !ok {
		p.report(path, "the operand is an array of expressions")
		return &Cond{}
	}
	out := &Cond{op: o}
	for i := 0; c.next(); i++ {
		at := fmt.Sprintf("%s[%d]", path, i)
		if p.terms++; p.terms > maxTerms {
			p.report(at, "the expression has more than %d terms", maxTerms)
			return &Cond{}
		}
		out.terms = append(out.terms, p.member(c.value, at, depth))
	}
	return out
}

// member reads what stands inside and, or and not: an expression, or a value asked to be true.
func (p *parser) member(raw json.RawMessage, path string, depth int) *Cond {
	switch KindOf(raw) {
	case KindObject:
		return p.object(raw, path, depth+1)
	case KindBool, KindString:
	default:
		p.report(path, "this is never true: write an expression, a reference or a boolean")
	}
	return &Cond{op: eq, a: newTerm(raw), b: newTerm(json.RawMessage("true"))}
}

func (p *parser) exists(raw json.RawMessage, path string) *Cond {
	if KindOf(raw) != KindString {
		p.report(path, "the operand is a reference")
		return &Cond{}
	}
	return &Cond{op: exists, a: newTerm(raw)}
}

func (p *parser) pair(o op, raw json.RawMessage, path string) *Cond {
	two, ok := pairOf(raw)
	if !ok {
		p.report(path, "the operand is an array of two values")
		return &Cond{}
	}
	c := &Cond{op: o, a: newTerm(two[0]), b: newTerm(two[1])}
	if o != in && o != contains { // these look at a literal as it is
		for _, t := range []*term{&c.a, &c.b} {
			t.value, t.loose = t.value.withText(), t.loose.withText()
		}
	}
	return c
}

// pairOf reads an array of exactly two elements.
func pairOf(raw json.RawMessage) (two [2]json.RawMessage, ok bool) {
	c, ok := enter(raw, '[')
	for i := range two {
		if !ok || !c.next() {
			return two, false
		}
		two[i] = c.value
	}
	return two, !c.next()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
