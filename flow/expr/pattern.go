package expr

import (
	"encoding/json"
	"fmt"
)

// maxNested is the maximum number of arrays and objects inside arrays of a pattern. Each of them
// may have to be compared with every element of a large array.
const maxNested = 16

// Pattern is a parsed pattern of Contains.
type Pattern struct {
	never bool // no value contains the pattern
	kind  Kind

	scalar        []byte          // text of appendScalar
	members       []patternMember // members of an object; each key once
	memberIndexes map[string]int  // members by key, if there are many
	scalars       map[string]int  // scalars of an array, numbered; each once
	nested        []Pattern       // arrays and objects in an array
}

type patternMember struct {
	key   string
	value Pattern
}

// ParsePattern parses the pattern of a condition, an object of limited size. All problems are
// returned. No value contains a part that is invalid or nested too deeply.
func ParsePattern(raw json.RawMessage) (*Pattern, []Problem) {
	if !Valid(raw) {
		return &Pattern{never: true}, []Problem{{"", "the pattern is not valid JSON"}}
	}
	if KindOf(raw) != KindObject {
		return &Pattern{never: true}, []Problem{{"", "a pattern is an object, such as {\"run\": {\"plan\": \"free\"}}"}}
	}
	pattern, size := newPattern(raw)
	var problems []Problem
	report := func(wrong bool, msg string, args ...any) {
		if wrong {
			problems = append(problems, Problem{"", fmt.Sprintf(msg, args...)})
		}
	}
	report(size.tooDeep, "the pattern nests deeper than %d", maxDepth)
	report(size.values > maxTerms, "the pattern has %d values, more than %d", size.values, maxTerms)
	report(size.nested > maxNested, "the pattern has %d arrays and objects inside of arrays, more than %d", size.nested, maxNested)
	return pattern, problems
}

// newPattern parses a pattern of any kind and size.
func newPattern(raw json.RawMessage) (*Pattern, patternParser) {
	var p patternParser
	pattern := p.readPattern(raw, 1)
	return &pattern, p
}

// patternParser parses a pattern and counts its parts.
type patternParser struct {
	values  int
	nested  int // arrays and objects inside of arrays
	tooDeep bool
}

func (p *patternParser) readPattern(raw json.RawMessage, depth int) Pattern {
	p.values++
	switch kind := KindOf(raw); {
	case kind != KindObject && kind != KindArray:
		return Pattern{kind: kind, scalar: appendScalar(nil, raw)}
	case depth > maxDepth:
		p.tooDeep = true
		return Pattern{never: true}
	case kind == KindObject:
		return p.readObject(raw, depth)
	default:
		return p.readArray(raw, depth)
	}
}

func (p *patternParser) readObject(raw json.RawMessage, depth int) Pattern {
	members, ok := Members(raw)
	out := Pattern{kind: KindObject, never: !ok}
	for _, m := range lastOfEach(members) {
		out.members = append(out.members, patternMember{m.Key, p.readPattern(m.Value, depth+1)})
	}
	if len(out.members) > 8 {
		out.memberIndexes = make(map[string]int, len(out.members))
		for i, m := range out.members {
			out.memberIndexes[m.key] = i
		}
	}
	return out
}

func (p *patternParser) readArray(raw json.RawMessage, depth int) Pattern {
	elements, ok := Elements(raw)
	out := Pattern{kind: KindArray, never: !ok, scalars: map[string]int{}}
	for _, e := range elements {
		if element := p.readPattern(e, depth+1); isScalar(e) {
			if _, known := out.scalars[string(element.scalar)]; !known {
				out.scalars[string(element.scalar)] = len(out.scalars)
			}
		} else {
			p.nested++
			out.nested = append(out.nested, element)
		}
	}
	return out
}

// memberIndex returns the index of the member whose key has this written form, or -1 if there is
// none.
func (p *Pattern) memberIndex(written []byte) int {
	if p.memberIndexes == nil {
		for i := range p.members {
			if keyIs(written, p.members[i].key) {
				return i
			}
		}
		return -1
	}
	if key, ok := stringText(written); ok {
		if i, ok := p.memberIndexes[string(key)]; ok {
			return i
		}
	}
	return -1
}
