package expr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// pathSegment is one step of a path: a key and, unless index is noIndex, an element of the value
// found there.
type pathSegment struct {
	key   string
	index int
}

const noIndex = -1

// maxSegments is the maximum number of segments of a path. Each segment reads the value that the
// previous one found. Without a limit, a long path into a large and deeply nested value would take
// seconds.
const maxSegments = 100

// Path returns the value at a path such as a.b[2].c in v. It returns null if there is no such
// value, or if the path has more than 100 segments.
func Path(v json.RawMessage, path string) json.RawMessage { return PathIn(v, path, nil) }

// PathIn returns the value at a path like Path. open resolves references to values elsewhere.
func PathIn(v json.RawMessage, path string, open Opener) json.RawMessage {
	segments, ok := parsePath(path)
	if !ok {
		return null
	}
	v, _ = walkPath(v, segments, open)
	return v
}

// parsePath splits a path into segments. It returns false if the path has no value in any object.
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

// nextSegment cuts the first segment off a path. At the end of the path, text is "". Empty segments
// are ignored.
func nextSegment(path string) (text, rest string) {
	path = strings.TrimLeft(path, ".")
	text, rest, _ = strings.Cut(path, ".")
	return text, rest
}

// parseSegment parses key or key[n]. Text after the first index is ignored, so a[0][1] means a[0].
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

// elementOf applies only the index of a segment, to the value of a key that was looked up
// elsewhere.
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
