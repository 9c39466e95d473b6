package expr

import (
	"bytes"
	"encoding/json"
)

// Contains reports whether a value contains a pattern, like the operator @> of PostgreSQL's jsonb:
//
//   - An object contains an object if it has all its keys, with values that contain the pattern's.
//   - An array contains an array if each element of the pattern is contained in some element of the
//     value, in any order and number.
//   - A scalar contains its equals.
//   - Kinds must match, with one exception: an array as a whole contains each scalar that is an
//     element.
//
// The last of several equal keys counts. Numbers are compared exactly, however long they are and
// however they are spelled: 1 equals 1.0. A number with an exponent of more than 18 digits equals
// only its own spelling.
//
// Parse a pattern first if it is used more than once, or if it comes from a user.
func Contains(value, pattern json.RawMessage) bool {
	p, _ := newPattern(pattern)
	return p.In(value)
}

// In reports whether a value contains the pattern. It reads the value once for each level of the
// pattern. For each array or object inside an array of the pattern, it reads the value once more.
func (p *Pattern) In(value json.RawMessage) bool {
	if p.kind != KindArray && p.kind != KindObject && KindOf(value) == KindArray {
		whole := Pattern{kind: KindArray, scalars: map[string]int{string(p.scalar): 0}}
		return !p.never && whole.inArray(value)
	}
	return p.matchesValue(value)
}

// Cost returns the cost of In for a value, in units of work.
func (p *Pattern) Cost(value json.RawMessage) int { return 1 + p.maxReads()*len(value)/16 }

// maxReads returns how often In may read a value.
func (p *Pattern) maxReads() int {
	below := 0
	for i := range p.members {
		below = max(below, p.members[i].value.maxReads())
	}
	for i := range p.nested {
		below += p.nested[i].maxReads()
	}
	return 1 + below
}

func (p *Pattern) matchesValue(value json.RawMessage) bool {
	if p.never || KindOf(value) != p.kind {
		return false
	}
	switch p.kind {
	case KindObject:
		return p.inObject(value)
	case KindArray:
		return p.inArray(value)
	}
	var buf [64]byte
	return bytes.Equal(appendScalar(buf[:0], value), p.scalar)
}

// inObject matches all keys of the pattern in one pass over the value.
func (p *Pattern) inObject(value json.RawMessage) bool {
	found := make([]json.RawMessage, len(p.members))
	c, _ := newCursor(value, '{')
	for c.nextMember() {
		if i := p.memberIndex(c.key); i >= 0 {
			found[i] = c.value
		}
	}
	if !c.ended {
		return false
	}
	for i := range p.members {
		if found[i] == nil || !p.members[i].value.matchesValue(found[i]) {
			return false
		}
	}
	return true
}

// inArray marks the elements of the pattern in one pass over the elements of the value.
func (p *Pattern) inArray(value json.RawMessage) bool {
	var few [16]bool
	ticked := few[:]
	left := len(p.scalars) + len(p.nested)
	if left > len(few) {
		ticked = make([]bool, left)
	}
	c, _ := newCursor(value, '[')
	for left > 0 && c.nextMember() {
		left -= p.markElement(ticked, c.value)
	}
	return left == 0
}

// markElement marks the elements of the pattern that an element of the value contains, and counts
// the new marks.
func (p *Pattern) markElement(ticked []bool, element json.RawMessage) (count int) {
	if isScalar(element) {
		var buf [64]byte
		i, ok := p.scalars[string(appendScalar(buf[:0], element))]
		if !ok || ticked[i] {
			return 0
		}
		ticked[i] = true
		return 1
	}
	for i := range p.nested {
		if done := &ticked[len(p.scalars)+i]; !*done && p.nested[i].matchesValue(element) {
			*done = true
			count++
		}
	}
	return count
}
