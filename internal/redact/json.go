package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns a value with all secrets hidden; the result is valid JSON. Secrets are masked inside
// strings, and a number that contains a secret becomes a string.
func (r *Redactor) JSON(v json.RawMessage) json.RawMessage {
	if r == nil || len(v) == 0 {
		return v
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); {
		n := tokenLength(v[i:])
		out = append(out, r.redactToken(v[i:i+n])...)
		i += n
	}
	if bytes.Equal(out, v) {
		return v
	}
	return out
}

const numberBytes = "+-.0123456789eE"

// tokenLength returns the length of the token at the beginning of v: a string, a number, or the
// text up to the next token.
func tokenLength(v []byte) int {
	n := 1
	switch {
	case v[0] == '"':
		for n < len(v) && v[n] != '"' {
			if v[n] == '\\' {
				n++
			}
			n++
		}
		return min(n+1, len(v))
	case startsNumber(v[0]):
		for n < len(v) && bytes.IndexByte([]byte(numberBytes), v[n]) >= 0 {
			n++
		}
	}
	return n
}

func startsNumber(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// redactToken hides secrets in a string or a number.
func (r *Redactor) redactToken(t []byte) []byte {
	switch {
	case t[0] == '"':
		var text string
		if json.Unmarshal(t, &text) != nil {
			return t
		}
		if hidden := r.Text(text); hidden != text {
			return []byte(`"` + jsonEscape(hidden, false) + `"`)
		}
	case startsNumber(t[0]) && len(r.findSpans(t)) > 0:
		return []byte(`"` + Mask + `"`)
	}
	return t
}
