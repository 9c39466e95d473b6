package expr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Ref is a parsed reference: a source and a path into the source, or a literal text.
type Ref struct {
	text      string
	source    refSource
	path      []pathSegment
	malformed bool // invalid path; the value is always null
}

type refSource uint8

const (
	refLiteral refSource = iota
	refParams
	refShared
	refInput
)

var prefixes = []struct {
	prefix string
	source refSource
}{
	{"$params.", refParams},
	{"$shared.", refShared},
	{"$input", refInput},
}

// Env holds the values that references can refer to. Shared returns one key, so that reading a part
// of a large shared state does not build the whole; SharedAll builds the whole. Both may be nil.
type Env struct {
	Params, Input json.RawMessage

	Shared    func(key string) (json.RawMessage, bool)
	SharedAll func() json.RawMessage

	// Coerce makes conditions treat missing values as null. Otherwise such conditions fail.
	Coerce bool

	// Loose makes conditions compare like PocketFlow: numbers and texts that read as numbers as
	// floats, everything else as text. Otherwise numbers have their exact values, and a text is
	// never a number.
	Loose bool

	// Allowance is the common budget of conditions. If nil, each condition has a separate budget.
	Allowance *Allowance

	// Open resolves a reference to a value elsewhere when a path leads into that value. Whole does
	// the same when the whole value is read. Both are nil if values contain no such references.
	Open, Whole Opener
}

// Opener returns the content of a value. This is the value itself, unless the value refers to a
// value elsewhere.
type Opener func(json.RawMessage) json.RawMessage

func (o Opener) openValue(v json.RawMessage) json.RawMessage {
	if o == nil {
		return v
	}
	return o(v)
}

// WholeOf returns the content of a value, with all references inside resolved.
func (e *Env) WholeOf(v json.RawMessage) json.RawMessage { return e.Whole.openValue(v) }

// ParseRef parses a reference: $params.<path>, $shared.<path>, $input, $input.<path> or
// $input<path>. Any other text, including $params and $shared alone, is a literal.
func ParseRef(text string) Ref {
	r := Ref{text: text}
	path := ""
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(text, p.prefix); ok {
			r.source, path = p.source, rest
		}
	}
	var ok bool
	r.path, ok = parsePath(path)
	r.malformed = !ok
	return r
}

// Literal reports whether the text is a literal.
func (r Ref) Literal() bool { return r.source == refLiteral }

// Text returns the reference as it is written.
func (r Ref) Text() string { return r.text }

// IntoParams returns the keys of a reference into the params; an element of a list is written as
// [2]. It returns false for any other reference, and for an invalid path.
func (r Ref) IntoParams() (path []string, ok bool) {
	if r.source != refParams || r.malformed {
		return nil, false
	}
	return appendSegments(nil, r.path), true
}

func appendSegments(to []string, path []pathSegment) []string {
	for _, s := range path {
		to = append(to, s.key)
		if s.index != noIndex {
			to = append(to, "["+strconv.Itoa(s.index)+"]")
		}
	}
	return to
}

// PathKeys returns the keys of a path such as a.b[2].c: a, b, [2] and c. It returns false if the
// path has no value in any object.
func PathKeys(path string) (keys []string, ok bool) {
	segments, ok := parsePath(path)
	return appendSegments(nil, segments), ok
}

// Resolve returns the value of a reference, or null if there is no such value.
func (r Ref) Resolve(env *Env) json.RawMessage {
	v, _ := r.Find(env)
	return v
}

// Find returns the value of a reference like Resolve, and reports whether the value exists. Null
// counts as a value, and so does an empty input.
func (r Ref) Find(env *Env) (v json.RawMessage, there bool) {
	if r.source == refLiteral {
		return Quote(r.text), true
	}
	if r.malformed || env == nil {
		return null, false
	}
	switch r.source {
	case refParams:
		return walkPath(env.Params, r.path, env.Open)
	case refInput:
		return walkPath(env.Input, r.path, env.Open)
	default:
		return env.findShared(r.path)
	}
}

// readCost returns how many bytes Resolve may read. The size of the whole shared state is unknown
// in advance and counts as 0.
func (r Ref) readCost(env *Env) int {
	switch {
	case r.source == refParams:
		return len(env.Params)
	case r.source == refInput:
		return len(env.Input)
	case r.source == refShared && len(r.path) > 0 && env.Shared != nil:
		v, _ := env.Shared(r.path[0].key)
		return len(v)
	}
	return 0
}

func (e *Env) findShared(path []pathSegment) (v json.RawMessage, there bool) {
	if len(path) == 0 || e.Shared == nil {
		if e.SharedAll == nil {
			return null, false
		}
		return walkPath(e.SharedAll(), path, e.Open)
	}
	v, ok := e.Shared(path[0].key)
	if !ok {
		return null, false
	}
	if v, ok = path[0].elementOf(v, e.Open); !ok {
		return null, false
	}
	return walkPath(v, path[1:], e.Open)
}
