package expr

import (
	"bytes"
	"encoding/json"
)

// Deeper reports whether arrays and objects are nested more than the given number of levels. A
// value is scanned only if it has enough brackets, so most values cost almost nothing.
func Deeper(v json.RawMessage, levels int) bool {
	if len(v) <= 2*levels || bytes.Count(v, openArray)+bytes.Count(v, openObject) <= levels {
		return false
	}
	depth := 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			if i = stringEnd(v, i) - 1; i < 0 {
				return false
			}
		case '[', '{':
			if depth++; depth > levels {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

var openArray, openObject = []byte{'['}, []byte{'{'}
