package expr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// pathSegment is one step of a path: a key and, unless index is none, an element of what it holds.
type pathSegment struct {
	key   string
	index int
}

const noIndex = -1

// maxSegments bounds a path: each segment reads what the one before it found, so without a bound
// a long path into a large and deeply nested value would keep its reader busy for seconds.
const maxSegments = 100

// Path walks a path such as a.b[2].c through v. Where it leads nowhere the answer is null; so it
// is for a path of more than 100 segments.
func Path(v json.RawMessage, path string) json.RawMessage { return PathIn(v, path, nil) }

// PathIn is Path through values some of which stand for others.
func PathIn(v json.RawMessage, path string, open Opener) json.RawMessage {
	segments, ok := parsePath(path)
	if !ok {
		return null
	}
	v, _ = walkPath(v, segments, open)
	return v
}

// parsePath splits a path; false if it can lead nowhere, whatever the value.
func parsePath(path string) ([]pathSegment, bool) {
	var out []pathSegment
	for {
		text, rest := nextSegment(path)
		if text == "" {
			return out, true
		}
		s, ok := parseSegment(text)
		if !ok || len(out) == maxSegments {
			return nil, false
		}
		out = append(out, s)
		path = rest
	}
}

func walkPath(v json.RawMessage, path []pathSegment, open Opener) (_ json.RawMessage, there bool) {
	for _, s := range path {
		var ok bool
		if v, ok = s.stepInto(v, open); !ok {
			return null, false
		}
	}
	return orNull(v), true
}

// nextSegment cuts the first segment off a path; it is "" at the end. Empty segments mean nothing.
func nextSegment(path string) (text, rest string) {
	path = strings.TrimLeft(path, ".")
	text, rest, _ = strings.Cut(path, ".")
	return text, rest
}

// parseSegment reads key or key[n]. What follows the first index is ignored: a[0][1] is a[0].
func parseSegment(text string) (pathSegment, bool) {
	key, rest, indexed := strings.Cut(text, "[")
	if !indexed {
		return pathSegment{text, noIndex}, true
	}
	number, _, closed := strings.Cut(rest, "]")
	index, err := strconv.Atoi(number)
	if key == "" || !closed || err != nil || countDigits([]byte(number)) != len(number) {
		return pathSegment{}, false
	}
	return pathSegment{key, index}, true
}

func (s pathSegment) stepInto(v json.RawMessage, open Opener) (json.RawMessage, bool) {
	v, ok := Field(open.openValue(v), s.key)
	if !ok {
		return nil, false
	}
	return s.elementOf(v, open)
}

// elementOf takes the second half of a step, for a value whose key was looked up elsewhere.
func (s pathSegment) elementOf(v json.RawMessage, open Opener) (json.RawMessage, bool) {
	if s.index == noIndex {
		return v, true
	}
	return Index(open.openValue(v), s.index)
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return null
	}
	return v
}
