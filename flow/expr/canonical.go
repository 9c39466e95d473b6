package expr

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Canonical returns a text that is the same for all spellings of a JSON value, and different for
// all other values. Different spellings are the order of keys, white space, escapes and the
// notation of numbers of any size. Invalid JSON, and text with half of a surrogate pair, are
// returned unchanged.
func Canonical(v json.RawMessage) []byte {
	value, err := decodeValue(v)
	if err != nil {
		return v
	}
	text, lost := appendCanonical(make([]byte, 0, len(v)), value)
	if lost && bytes.IndexByte(v, '\\') >= 0 || !utf8.Valid(v) {
		return v
	}
	return text
}

// appendCanonical appends the canonical text of a decoded value. lost reports that the value may
// have contained half of a surrogate pair.
func appendCanonical(dst []byte, value any) (_ []byte, lost bool) {
	switch value := value.(type) {
	case json.Number:
		return appendNumber(dst, []byte(value)), false
	case string:
		return AppendQuote(dst, value), strings.ContainsRune(value, utf8.RuneError)
	case bool:
		if value {
			return append(dst, "true"...), false
		}
		return append(dst, "false"...), false
	case []any:
		dst = append(dst, '[')
		for _, each := range value {
			var more bool
			dst, more = appendCanonical(dst, each)
			dst, lost = append(dst, ','), lost || more
		}
		return append(dst, ']'), lost
	case map[string]any:
		dst = append(dst, '{')
		for _, key := range slices.Sorted(maps.Keys(value)) {
			var more bool
			lost = lost || strings.ContainsRune(key, utf8.RuneError)
			dst, more = appendCanonical(append(AppendQuote(dst, key), ':'), value[key])
			dst, lost = append(dst, ','), lost || more
		}
		return append(dst, '}'), lost
	}
	return append(dst, null...), false
}
