package redact

import (
	"bytes"
	"encoding/json"
)

// JSON is a value without the values of secrets in it, whole as before: they are hidden inside of texts, and a number that has one becomes
// a text.
func (r *Redactor) JSON(v json.RawMessage) json.RawMessage {
	if r == nil || len(v) == 0 {
		return v
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); {
		n := token(v[i:])
		out = append(out, r.token(v[i:i+n])...)
		i += n
	}
	if bytes.Equal(out, v) {
		return v
	}
	return out
}

const digits = "+-.0123456789eE"

// token is how long the text, the number or whatever is between them is that v begins with.
func token(v []byte) int {
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
	case number(v[0]):
		for n < len(v) && bytes.IndexByte([]byte(digits), v[n]) >= 0 {
			n++
		}
	}
	return n
}

func number(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// token hides what is in a text or a number.
func (r *Redactor) token(t []byte) []byte {
	switch {
	case t[0] == '"':
		var text string
		if json.Unmarshal(t, &text) != nil {
			return t
		}
		if hidden := r.Text(text); hidden != text {
			return []byte(`"` + quoted(hidden, false) + `"`)
		}
	case number(t[0]) && len(r.spans(t)) > 0:
		return []byte(`"` + Mask + `"`)
	}
	return t
}
