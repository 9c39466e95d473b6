package expr

import (
	"bytes"
	"encoding/json"
)

// Contains reports whether a value contains a pattern, as the operator @> of PostgreSQL's jsonb
// does: an object contains one whose every key it has with a value that contains the pattern's; an
// array contains one each of whose elements is contained in some element of its own, whatever their
// order and number; scalars contain their equals. Kinds have to match, with one exception: an array
// as a whole contains a scalar that is one of its elements. Of several equal keys the last counts.
//
// Numbers are compared exactly, however long they are and however they are spelled: 1 equals 1.0.
// Only those with an exponent of more than 18 digits equal nothing but their own spelling.
//
// A pattern that is used more than once, or comes from a user, is better parsed before.
func Contains(value, pattern json.RawMessage) bool {
	p, _ := newPattern(pattern)
	return p.In(value)
}

// In reports whether a value contains the pattern. The value is read once for each level of the
// pattern, and once for each array or object that stands in an array of the pattern.
func (p *Pattern) In(value json.RawMessage) bool {
	if p.kind != KindArray && p.kind != KindObject && KindOf(value) == KindArray {
		whole := Pattern{kind: KindArray, scalars: map[string]int{string(p.scalar): 0}}
		return !p.never && whole.inArray(value)
	}
	return p.matchesValue(value)
}

// Cost is how much it takes to look for the pattern in a value, in units of work.
func (p *Pattern) Cost(value json.RawMessage) int { return 1 + p.maxReads()*len(value)/16 }

// maxReads is how often In reads a value at most.
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

// inObject finds all keys of the pattern in one walk over the value.
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

// inArray ticks off the elements of the pattern in one walk over those of the value.
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

// markElement marks the elements of the pattern that one of the value contains, and counts the new
// ones.
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
