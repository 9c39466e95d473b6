package expr

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Equal reports whether two JSON texts have the same value. The order of keys and the spelling of
// numbers do not matter; the order of lists does. Invalid JSON equals only an identical text.
func Equal(a, b json.RawMessage) bool {
	x, errX := decodeValue(a)
	y, errY := decodeValue(b)
	if errX != nil || errY != nil {
		return bytes.Equal(a, b)
	}
	return sameValue(x, y)
}

func decodeValue(v json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && bytes.Equal(appendNumber(nil, []byte(a)), appendNumber(nil, []byte(b)))
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	}
	return a == b
}
