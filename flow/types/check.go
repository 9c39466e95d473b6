package types

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Budget is what one check may do, in units of work: a schema applied to a value, 32 bytes of a list or object looked
// through, a choice compared, or eight bytes matched with one state of a regular expression. That much is done in less than half a second.
const Budget = 3_000_000

// maxDeep is how deep schemas and values may lead into each other while they are checked.
const maxDeep = 5_000

// check compares values with schemas.
type check struct {
	left     int
	depth    int
	quiet    int // how many answers are asked for of which only yes or no counts
	problems []Problem
	tooMuch  bool
}

func newCheck() *check { return &check{left: Budget} }

// seen are the fields and elements of one value that a schema has had to do with.
type seen struct {
	fields map[string]bool
	items  map[int]bool
}

func (s *seen) field(name string) {
	if s == nil {
		return
	}
	if s.fields == nil {
		s.fields = map[string]bool{}
	}
	s.fields[name] = true
}

func (s *seen) item(i int) {
	if s == nil {
		return
	}
	if s.items == nil {
		s.items = map[int]bool{}
	}
	s.items[i] = true
}

// take adds what another part of the schema has had to do with.
func (s *seen) take(other *seen) {
	if s == nil || other == nil {
		return
	}
	for name := range other.fields {
		s.field(name)
	}
	for i := range other.items {
		s.item(i)
	}
}

// pay takes off what a piece of work costs; false when there is not as much left. Then everything fits, so that it
// ends, and the one problem is that.
func (k *check) pay(cost int) bool {
	if k.left -= cost; k.left >= 0 && !k.tooMuch {
		return true
	}
	k.left, k.tooMuch = -1, true
	return false
}

// wrong tells a problem. It is always false, which is what the caller answers.
func (k *check) wrong(at *trail, format string, args ...any) bool {
	if k.quiet == 0 && len(k.problems) < maxProblems {
		k.problems = append(k.problems, Problem{Path: at.path(), Msg: fmt.Sprintf(format, args...)})
	}
	return false
}

// whether says whether a value fits, without telling why not.
func (k *check) whether(n *node, v json.RawMessage, at *trail, had *seen) bool {
	k.quiet++
	defer func() { k.quiet-- }()
	return k.value(n, v, at, had)
}

// value says whether a value fits a schema. Had, if it is not nil, takes note of what the schema has had to do with.
func (k *check) value(n *node, v json.RawMessage, at *trail, had *seen) bool {
	if k.depth++; k.depth > maxDeep {
		k.tooMuch = true
	}
	defer func() { k.depth-- }()
	switch {
	case !k.pay(1):
		return true
	case n.never:
		return k.wrong(at, "must not be there")
	case !n.ofType(v):
		return k.wrong(at, "is %s, %s was declared", describe(v), n.typeName())
	}
	own := had
	if n.unseen != nil || n.unseenItems != nil {
		own = &seen{}
	}
	fits := k.chosen(n, v, at)
	switch expr.KindOf(v) {
	case expr.KindNumber:
		fits = k.number(n, v, at) && fits
	case expr.KindString:
		fits = k.text(n, v, at) && fits
	case expr.KindArray:
		fits = k.list(n, v, at, own) && fits
	case expr.KindObject:
		fits = k.object(n, v, at, own) && fits
	}
	if fits || k.quiet == 0 {
		fits = k.composed(n, v, at, own) && fits
	}
	if own != had {
		fits = k.rest(n, v, at, own) && fits
		had.take(own)
	}
	return fits
}

func (n *node) ofType(v json.RawMessage) bool { return n.types == 0 || n.types&kindOf(v) != 0 }

func kindOf(v json.RawMessage) kinds {
	switch expr.KindOf(v) {
	case expr.KindBool:
		return isBool
	case expr.KindNumber:
		if expr.Whole(v) {
			return isInt
		}
		return isFloat
	case expr.KindString:
		return isText
	case expr.KindArray:
		return isList
	case expr.KindObject:
		return isObject
	}
	return isNull
}

// chosen compares a value with those that were named.
func (k *check) chosen(n *node, v json.RawMessage, at *trail) bool {
	if n.only != nil && k.pay(1+len(v)/8) && !expr.Equal(n.only, v) {
		return k.wrong(at, "is %s, only %s was declared", describe(v), shorten(string(n.only)))
	}
	if n.choices == nil {
		return true
	}
	for _, choice := range n.choices {
		if !k.pay(1+min(len(v), len(choice))/8) || expr.KindOf(choice) == expr.KindOf(v) && expr.Equal(choice, v) {
			return true
		}
	}
	return k.wrong(at, "is %s, one of %s was declared", describe(v), n.choiceNames())
}

func (k *check) number(n *node, v json.RawMessage, at *trail) bool {
	if n.min == nil && n.max == nil && n.above == nil && n.under == nil && n.multiple == nil {
		return true
	}
	if !k.pay(2 + len(v)/8) {
		return true
	}
	is := shorten(strings.TrimSpace(string(v)))
	fits := true
	for _, b := range []struct {
		to    *bound
		holds bool
		say   string
	}{
		{n.min, n.min == nil || n.min.compare(v) >= 0, "at least"}, {n.max, n.max == nil || n.max.compare(v) <= 0, "at most"},
		{n.above, n.above == nil || n.above.compare(v) > 0, "more than"}, {n.under, n.under == nil || n.under.compare(v) < 0, "less than"},
	} {
		if !b.holds {
			fits = k.wrong(at, "is %s, %s %s was declared", is, b.say, b.to.text)
		}
	}
	if n.multiple == nil {
		return fits
	}
	x := exact(v)
	if x == nil {
		return k.wrong(at, "is a number of more than %d digits, a multiple of %s was declared", maxDigits, n.multiple.text)
	}
	if !x.Quo(x, n.multiple.Rat).IsInt() {
		fits = k.wrong(at, "is %s, a multiple of %s was declared", is, n.multiple.text)
	}
	return fits
}

func (k *check) text(n *node, v json.RawMessage, at *trail) bool {
	if n.minLength == nil && n.maxLength == nil && n.pattern == nil {
		return true
	}
	text, _ := expr.String(v)
	fits := k.many(n.minLength, n.maxLength, utf8.RuneCountInString(text), "character", at)
	if n.pattern != nil && k.matches(n.pattern, text) == no {
		fits = k.wrong(at, "is %s, a text that matches %s was declared", describe(v), shorten(n.pattern.String()))
	}
	return fits
}

// many compares how many there are of something with what was declared.
func (k *check) many(atLeast, atMost limit, is int, what string, at *trail) bool {
	switch {
	case atLeast != nil && is < *atLeast:
		return k.wrong(at, "has %s, at least %d %s declared", plural(is, what), *atLeast, were(*atLeast))
	case atMost != nil && is > *atMost:
		return k.wrong(at, "has %s, at most %d %s declared", plural(is, what), *atMost, were(*atMost))
	}
	return true
}

// answer to a question that may be too much work.
type answer int

const (
	unknown answer = iota
	yes
	no
)

func (k *check) matches(p *pattern, text string) answer {
	switch {
	case !k.pay(1 + p.states*len(text)/8):
		return unknown
	case p.MatchString(text):
		return yes
	}
	return no
}

// composed applies what is said of the same value in other schemas.
func (k *check) composed(n *node, v json.RawMessage, at *trail, had *seen) bool {
	fits := true
	if n.ref != nil {
		fits = k.value(n.ref, v, at, had)
	}
	for _, other := range n.all {
		fits = k.value(other, v, at, had) && fits
	}
	if n.any != nil {
		fits = k.anyOf(n, v, at, had) && fits
	}
	if n.one != nil {
		fits = k.oneOf(n, v, at, had) && fits
	}
	if n.not != nil && k.whether(n.not, v, at, nil) && !k.tooMuch {
		fits = k.wrong(at, "is %s, which was declared not to be", describe(v))
	}
	if n.cond != nil {
		fits = k.conditional(n, v, at, had) && fits
	}
	return fits
}

// conditional applies then or else.
func (k *check) conditional(n *node, v json.RawMessage, at *trail, had *seen) bool {
	next, noted := n.otherwise, &seen{}
	if k.whether(n.cond, v, at, noted) {
		next = n.then
		had.take(noted)
	}
	return next == nil || k.value(next, v, at, had)
}

func (k *check) anyOf(n *node, v json.RawMessage, at *trail, had *seen) bool {
	fits := false
	for _, other := range n.any {
		noted := &seen{}
		if k.whether(other, v, at, noted) {
			had.take(noted)
			fits = true
			if had == nil {
				break
			}
		}
	}
	return fits || k.wrong(at, "is %s, which fits none of what was declared%s", describe(v), alternatives(n.any))
}

func (k *check) oneOf(n *node, v json.RawMessage, at *trail, had *seen) bool {
	fitting, last := 0, (*seen)(nil)
	for _, other := range n.one {
		noted := &seen{}
		if k.whether(other, v, at, noted) {
			fitting++
			last = noted
		}
	}
	switch {
	case k.tooMuch:
	case fitting == 0:
		return k.wrong(at, "is %s, which fits none of what was declared%s", describe(v), alternatives(n.one))
	case fitting > 1:
		return k.wrong(at, "fits %d of the forms that were declared, and may fit one only", fitting)
	}
	had.take(last)
	return true
}
