package expr

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the kind of a JSON value.
type Kind uint8

// Kinds of values. An empty slice counts as null.
const (
	KindNull Kind = iota
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// String returns the name of a kind for messages.
func (k Kind) String() string {
	switch k {
	case KindBool:
		return "a boolean"
	case KindNumber:
		return "a number"
	case KindString:
		return "a string"
	case KindArray:
		return "an array"
	case KindObject:
		return "an object"
	}
	return "null"
}

// null and empty are shared constants. Their capacity makes append copy them.
var (
	null  = json.RawMessage("null")[:4:4]
	empty = json.RawMessage("{}")[:2:2]
)

// KindOf returns the kind of v, as determined by the first byte.
func KindOf(v json.RawMessage) Kind {
	v = trimSpace(v)
	if len(v) == 0 {
		return KindNull
	}
	switch b := v[0]; {
	case b == '"':
		return KindString
	case b == '{':
		return KindObject
	case b == '[':
		return KindArray
	case b == 't' || b == 'f':
		return KindBool
	case b == '-' || '0' <= b && b <= '9':
		return KindNumber
	}
	return KindNull
}

// Field returns the value of a key. If a key occurs several times, the last one counts, as in
// encoding/json.
func Field(obj json.RawMessage, key string) (json.RawMessage, bool) {
	c, ok := newCursor(obj, '{')
	if !ok {
		return nil, false
	}
	var found json.RawMessage
	for c.nextMember() {
		if keyIs(c.key, key) {
			found = c.value
		}
	}
	if !c.ended {
		return nil, false
	}
	return found, found != nil
}

// Index returns element i of an array, counted from 0. It reads only up to that element.
func Index(arr json.RawMessage, i int) (json.RawMessage, bool) {
	c, ok := newCursor(arr, '[')
	if !ok || i < 0 {
		return nil, false
	}
	for c.nextMember() {
		if i == 0 {
			return c.value, true
		}
		i--
	}
	return nil, false
}

// Elements returns the elements of an array, or false if arr is not an array.
func Elements(arr json.RawMessage) ([]json.RawMessage, bool) {
	c, ok := newCursor(arr, '[')
	if !ok {
		return nil, false
	}
	out := []json.RawMessage{}
	for c.nextMember() {
		out = append(out, c.value)
	}
	if !c.ended {
		return nil, false
	}
	return out, true
}

// Member is one key of an object and its value.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Members returns the members of an object in written order, or false if obj is not an object. A
// repeated key is listed each time; the last one counts.
func Members(obj json.RawMessage) ([]Member, bool) {
	c, ok := newCursor(obj, '{')
	if !ok {
		return nil, false
	}
	out := []Member{}
	for c.nextMember() {
		key, ok := String(c.key)
		if !ok {
			return nil, false
		}
		out = append(out, Member{key, c.value})
	}
	if !c.ended {
		return nil, false
	}
	return out, true
}

// Merge returns base with the keys of over set. Keys of base keep their place; new keys follow. A
// value that is not an object counts as {}. If one of the two has no keys, the other is returned
// unchanged.
func Merge(base, over json.RawMessage) json.RawMessage {
	if joined, ok := joinDisjoint(base, over); ok {
		return joined
	}
	under, baseOK := Members(base)
	upper, overOK := Members(over)
	switch {
	case !baseOK && !overOK:
		return empty
	case len(upper) == 0 && baseOK:
		return base
	case len(under) == 0 && overOK:
		return over
	}
	places := make(map[string]int, len(under)+len(upper))
	merged := make([]Member, 0, len(under)+len(upper))
	for _, members := range [][]Member{under, upper} {
		for _, m := range members {
			i, there := places[m.Key]
			if !there {
				places[m.Key] = len(merged)
				merged = append(merged, m)
				continue
			}
			merged[i].Value = m.Value
		}
	}
	return joinMembers(merged, len(base)+len(over))
}

// SetField returns an object with the value of one key set. A new key is added at the end. A value
// that is not an object counts as {}.
func SetField(obj json.RawMessage, key string, v json.RawMessage) json.RawMessage {
	c, ok := newCursor(obj, '{')
	start, end := 0, 0
	for ok && c.nextMember() {
		if keyIs(c.key, key) {
			start, end = c.pos-len(c.value), c.pos
		}
	}
	out := make(json.RawMessage, 0, len(obj)+len(key)+len(v)+len(`{,"":}`))
	switch {
	case !c.begun || !c.ended:
		out = append(out, '{')
	case start > 0:
		return append(append(append(out, obj[:start]...), v...), obj[end:]...)
	default:
		obj = trimSpace(obj)
		out = append(append(out, obj[:len(obj)-1]...), ',')
	}
	out = append(AppendQuote(out, key), ':')
	return append(append(out, v...), '}')
}

// joinedKeys is the maximum number of keys that joinDisjoint compares with each other.
const joinedKeys = 12

// joinDisjoint merges two objects without parsing their values. It returns false unless both have
// members, and all keys are few, different and written without escapes.
func joinDisjoint(base, over json.RawMessage) (json.RawMessage, bool) {
	var found [joinedKeys][]byte
	keys := found[:0]
	for _, object := range [2]json.RawMessage{base, over} {
		c, ok := newCursor(object, '{')
		for ok && c.nextMember() {
			repeated := slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, c.key) })
			if repeated || len(keys) == joinedKeys || !isPlain(c.key[1:len(c.key)-1]) {
				return nil, false
			}
			keys = append(keys, c.key)
		}
		if !c.begun || !c.ended {
			return nil, false
		}
	}
	base, over = trimSpace(base), trimSpace(over)
	joined := make(json.RawMessage, 0, len(base)+len(over))
	joined = append(append(joined, base[:len(base)-1]...), ',')
	return append(joined, over[1:]...), true
}

func joinMembers(members []Member, size int) json.RawMessage {
	out := append(make(json.RawMessage, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(AppendQuote(out, m.Key), ':')
		out = append(out, m.Value...)
	}
	return append(out, '}')
}

// Valid reports whether v is one JSON value, nested no deeper than encoding/json accepts. Input
// from outside must pass this check, or a decoder, before other functions of this package read it.
func Valid(v []byte) bool { return jsontext.Value(v).IsValid(asEncodingJSON...) }

// asEncodingJSON are the rules of encoding/json: duplicate keys are allowed, and UTF-8 is not
// checked.
var asEncodingJSON = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Compact returns v without insignificant space, or nil if v is not valid.
func Compact(v json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	out.Grow(len(v))
	if json.Compact(&out, v) != nil {
		return nil
	}
	return out.Bytes()
}
