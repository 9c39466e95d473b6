package types

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Budget is the maximum work of one check, in units of work. The whole budget takes less than half
// a second. One unit is:
//
//   - a schema applied to a value, or a choice compared;
//   - 32 bytes of a list or object scanned;
//   - eight bytes matched with one state of a regular expression.
const Budget = 3_000_000

// maxDeep is the maximum recursion depth of schemas and values during a check.
const maxDeep = 5_000

// valueCheck compares values with schemas.
type valueCheck struct {
	left       int
	depth      int
	quietDepth int // number of nested checks without reports
	problems   []Problem
	exhausted  bool
}

func newCheck() *valueCheck { return &valueCheck{left: Budget} }

// evaluatedParts are the fields and elements of a value that a schema has evaluated.
type evaluatedParts struct {
	fields map[string]bool
	items  map[int]bool
}

func (s *evaluatedParts) addField(name string) {
	if s == nil {
		return
	}
	if s.fields == nil {
		s.fields = map[string]bool{}
	}
	s.fields[name] = true
}

func (s *evaluatedParts) addItem(i int) {
	if s == nil {
		return
	}
	if s.items == nil {
		s.items = map[int]bool{}
	}
	s.items[i] = true
}

// addParts adds the parts that another schema has evaluated.
func (s *evaluatedParts) addParts(other *evaluatedParts) {
	if s == nil || other == nil {
		return
	}
	for name := range other.fields {
		s.addField(name)
	}
	for i := range other.items {
		s.addItem(i)
	}
}

// spendBudget subtracts the cost of work. It returns false if not enough is left. From then on
// every value fits, so that the check ends, and the exhausted budget is the only problem.
func (k *valueCheck) spendBudget(cost int) bool {
	if k.left -= cost; k.left >= 0 && !k.exhausted {
		return true
	}
	k.left, k.exhausted = -1, true
	return false
}

// reportProblem adds a problem. It always returns false, so that the caller can return the result.
func (k *valueCheck) reportProblem(at *valuePath, format string, args ...any) bool {
	if k.quietDepth == 0 && len(k.problems) < maxProblems {
		k.problems = append(k.problems, Problem{Path: at.pathKeys(), Msg: fmt.Sprintf(format, args...)})
	}
	return false
}

// checkQuietly reports whether a value fits, without reporting problems.
func (k *valueCheck) checkQuietly(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	k.quietDepth++
	defer func() { k.quietDepth-- }()
	return k.checkValue(n, v, at, had)
}

// checkValue reports whether a value fits a schema. If had is not nil, the parts that the schema
// has evaluated are added to had.
func (k *valueCheck) checkValue(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	if k.depth++; k.depth > maxDeep {
		k.exhausted = true
	}
	defer func() { k.depth-- }()
	switch {
	case !k.spendBudget(1):
		return true
	case n.never:
		return k.reportProblem(at, "must not be there")
	case !n.ofType(v):
		return k.reportProblem(at, "is %s, %s was declared", describeValue(v), n.typeName())
	}
	own := had
	if n.unevaluatedFields != nil || n.unevaluatedItems != nil {
		own = &evaluatedParts{}
	}
	fits := k.checkChoices(n, v, at)
	switch expr.KindOf(v) {
	case expr.KindNumber:
		fits = k.checkNumber(n, v, at) && fits
	case expr.KindString:
		fits = k.checkText(n, v, at) && fits
	case expr.KindArray:
		fits = k.checkList(n, v, at, own) && fits
	case expr.KindObject:
		fits = k.checkObject(n, v, at, own) && fits
	}
	if fits || k.quietDepth == 0 {
		fits = k.checkComposed(n, v, at, own) && fits
	}
	if own != had {
		fits = k.checkUnevaluated(n, v, at, own) && fits
		had.addParts(own)
	}
	return fits
}

func (n *schemaNode) ofType(v json.RawMessage) bool { return n.types == 0 || n.types&kindOf(v) != 0 }

func kindOf(v json.RawMessage) typeSet {
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

// checkChoices checks a value against the declared choices.
func (k *valueCheck) checkChoices(n *schemaNode, v json.RawMessage, at *valuePath) bool {
	if n.only != nil && k.spendBudget(1+len(v)/8) && !expr.Equal(n.only, v) {
		return k.reportProblem(at, "is %s, only %s was declared", describeValue(v), shortenText(string(n.only)))
	}
	if n.choices == nil {
		return true
	}
	for _, choice := range n.choices {
		if !k.spendBudget(1+min(len(v), len(choice))/8) || expr.KindOf(choice) == expr.KindOf(v) && expr.Equal(choice, v) {
			return true
		}
	}
	return k.reportProblem(at, "is %s, one of %s was declared", describeValue(v), n.choiceNames())
}

func (k *valueCheck) checkNumber(n *schemaNode, v json.RawMessage, at *valuePath) bool {
	if n.min == nil && n.max == nil && n.above == nil && n.under == nil && n.multiple == nil {
		return true
	}
	if !k.spendBudget(2 + len(v)/8) {
		return true
	}
	is := shortenText(strings.TrimSpace(string(v)))
	fits := true
	for _, b := range []struct {
		to    *numberBound
		holds bool
		say   string
	}{
		{n.min, n.min == nil || n.min.compareTo(v) >= 0, "at least"}, {n.max, n.max == nil || n.max.compareTo(v) <= 0, "at most"},
		{n.above, n.above == nil || n.above.compareTo(v) > 0, "more than"},
		{n.under, n.under == nil || n.under.compareTo(v) < 0, "less than"},
	} {
		if !b.holds {
			fits = k.reportProblem(at, "is %s, %s %s was declared", is, b.say, b.to.text)
		}
	}
	if n.multiple == nil {
		return fits
	}
	x := exactNumber(v)
	if x == nil {
		return k.reportProblem(at, "is a number of more than %d digits, a multiple of %s was declared", maxDigits, n.multiple.text)
	}
	if !x.Quo(x, n.multiple.Rat).IsInt() {
		fits = k.reportProblem(at, "is %s, a multiple of %s was declared", is, n.multiple.text)
	}
	return fits
}

func (k *valueCheck) checkText(n *schemaNode, v json.RawMessage, at *valuePath) bool {
	if n.minLength == nil && n.maxLength == nil && n.pattern == nil {
		return true
	}
	text, _ := expr.String(v)
	fits := k.checkCount(n.minLength, n.maxLength, utf8.RuneCountInString(text), "character", at)
	if n.pattern != nil && k.matchPattern(n.pattern, text) == matchNo {
		fits = k.reportProblem(at, "is %s, a text that matches %s was declared", describeValue(v), shortenText(n.pattern.String()))
	}
	return fits
}

// checkCount checks a count against the declared limits. what is the name of the counted parts.
func (k *valueCheck) checkCount(atLeast, atMost countLimit, is int, what string, at *valuePath) bool {
	switch {
	case atLeast != nil && is < *atLeast:
		return k.reportProblem(at, "has %s, at least %d %s declared", countText(is, what), *atLeast, wasOrWere(*atLeast))
	case atMost != nil && is > *atMost:
		return k.reportProblem(at, "has %s, at most %d %s declared", countText(is, what), *atMost, wasOrWere(*atMost))
	}
	return true
}

// matchResult is the result of a match. A match may exceed the budget.
type matchResult int

const (
	matchUnknown matchResult = iota
	matchYes
	matchNo
)

func (k *valueCheck) matchPattern(p *pattern, text string) matchResult {
	switch {
	case !k.spendBudget(1 + p.states*len(text)/8):
		return matchUnknown
	case p.MatchString(text):
		return matchYes
	}
	return matchNo
}

// checkComposed applies all other schemas that are declared for the same value.
func (k *valueCheck) checkComposed(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	fits := true
	if n.ref != nil {
		fits = k.checkValue(n.ref, v, at, had)
	}
	for _, other := range n.all {
		fits = k.checkValue(other, v, at, had) && fits
	}
	if n.any != nil {
		fits = k.checkAnyOf(n, v, at, had) && fits
	}
	if n.one != nil {
		fits = k.checkOneOf(n, v, at, had) && fits
	}
	if n.not != nil && k.checkQuietly(n.not, v, at, nil) && !k.exhausted {
		fits = k.reportProblem(at, "is %s, which was declared not to be", describeValue(v))
	}
	if n.cond != nil {
		fits = k.checkConditional(n, v, at, had) && fits
	}
	return fits
}

// checkConditional applies the schema then or else, depending on the schema if.
func (k *valueCheck) checkConditional(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	next, noted := n.otherwise, &evaluatedParts{}
	if k.checkQuietly(n.cond, v, at, noted) {
		next = n.then
		had.addParts(noted)
	}
	return next == nil || k.checkValue(next, v, at, had)
}

func (k *valueCheck) checkAnyOf(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	fits := false
	for _, other := range n.any {
		noted := &evaluatedParts{}
		if k.checkQuietly(other, v, at, noted) {
			had.addParts(noted)
			fits = true
			if had == nil {
				break
			}
		}
	}
	return fits || k.reportProblem(at, "is %s, which fits none of what was declared%s", describeValue(v), alternativesText(n.any))
}

func (k *valueCheck) checkOneOf(n *schemaNode, v json.RawMessage, at *valuePath, had *evaluatedParts) bool {
	fitting, last := 0, (*evaluatedParts)(nil)
	for _, other := range n.one {
		noted := &evaluatedParts{}
		if k.checkQuietly(other, v, at, noted) {
			fitting++
			last = noted
		}
	}
	switch {
	case k.exhausted:
	case fitting == 0:
		return k.reportProblem(at, "is %s, which fits none of what was declared%s", describeValue(v), alternativesText(n.one))
	case fitting > 1:
		return k.reportProblem(at, "fits %d of the forms that were declared, and may fit one only", fitting)
	}
	had.addParts(last)
	return true
}
