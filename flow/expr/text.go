package expr

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// String decodes a JSON string. It returns false if v is not a string.
func String(v json.RawMessage) (string, bool) {
	text, ok := stringText(v)
	return string(text), ok
}

// stringText returns the text of a JSON string. The text is a part of v if it contains no escapes.
func stringText(v []byte) ([]byte, bool) {
	v = trimSpace(v)
	if len(v) < 2 || v[0] != '"' {
		return nil, false
	}
	inner := v[1 : len(v)-1]
	if v[len(v)-1] == '"' && isPlain(inner) {
		return inner, true
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

// isPlain reports whether the text between quotes is its own decoded form.
func isPlain(inner []byte) bool {
	for _, b := range inner {
		if b < ' ' || b == '"' || b == '\\' {
			return false
		}
	}
	// encoding/json reads invalid UTF-8 as U+FFFD, so such text must be decoded.
	return utf8.Valid(inner)
}

// keyIs reports whether a key, written with its quotes, is the wanted key.
func keyIs(written []byte, want string) bool {
	inner := written[1 : len(written)-1]
	if len(inner) == len(want) && string(inner) == want {
		return isPlain(inner)
	}
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return false
	}
	key, ok := stringText(written)
	return ok && string(key) == want
}

// Number decodes a JSON number. It returns false if v is not a number, or is too large for a
// float64.
func Number(v json.RawMessage) (float64, bool) {
	v = trimSpace(v)
	if !isNumber(v) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, false
	}
	return f, true
}

// isNumber reports whether v is a number by the grammar of JSON, which allows less than ParseFloat.
func isNumber(v []byte) bool {
	v = bytes.TrimPrefix(v, []byte("-"))
	whole := countDigits(v)
	if whole == 0 || whole > 1 && v[0] == '0' {
		return false
	}
	v = v[whole:]
	if len(v) > 0 && v[0] == '.' {
		fraction := countDigits(v[1:])
		if fraction == 0 {
			return false
		}
		v = v[1+fraction:]
	}
	if len(v) > 0 && (v[0] == 'e' || v[0] == 'E') {
		v = v[1:]
		if len(v) > 0 && (v[0] == '+' || v[0] == '-') {
			v = v[1:]
		}
		exponent := countDigits(v)
		return exponent > 0 && exponent == len(v)
	}
	return len(v) == 0
}

// countDigits returns the number of decimal digits at the start of v.
func countDigits(v []byte) int {
	n := 0
	for n < len(v) && '0' <= v[n] && v[n] <= '9' {
		n++
	}
	return n
}

// Quote returns s as a JSON string. Unlike json.Marshal it does not escape <, > and &.
func Quote(s string) json.RawMessage {
	return AppendQuote(make([]byte, 0, len(s)+2), s)
}

// AppendQuote appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0 // all bytes before this index are written
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			if b < ' ' || b == '"' || b == '\\' {
				dst = appendEscape(append(dst, s[done:i]...), rune(b))
				done = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		// The two line separators are valid JSON, but would end a line of JavaScript.
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			dst = appendEscape(append(dst, s[done:i]...), r)
			done = i + size
		}
		i += size
	}
	return append(append(dst, s[done:]...), '"')
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
