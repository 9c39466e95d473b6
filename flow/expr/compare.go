package expr

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// condOperand is a value in a comparison: always a text, and possibly a number.
type condOperand struct {
	raw     json.RawMessage
	kind    Kind
	missing bool // null because the value is missing
	loose   bool // compared by the rules of PocketFlow
	numeric bool // PocketFlow: a number, or a text that reads as a number
	number  float64
	// text is set at once for strings only; textOf creates it for other kinds.
	text []byte
}

// readOperand reads v for comparisons. It copies only strings with escapes.
func readOperand(v json.RawMessage, loose bool) condOperand {
	o := condOperand{raw: v, kind: KindOf(v)}
	if o.kind == KindString {
		if o.text, _ = stringText(v); o.text == nil {
			o.text = []byte{}
		}
	}
	if !loose {
		return o
	}
	o.loose = true
	switch o.kind {
	case KindNumber:
		o.number, o.numeric = numberOrInf(o.raw)
	case KindString:
		o.number, o.numeric = parseFloat(o.text)
	}
	return o
}

// numberOrInf returns a number like Number, but a number too large for a float64 becomes infinite.
func numberOrInf(v json.RawMessage) (float64, bool) {
	f, ok := Number(v)
	if ok {
		return f, true
	}
	v = trimSpace(v)
	if !isNumber(v) {
		return 0, false
	}
	if v[0] == '-' {
		return math.Inf(-1), true
	}
	return math.Inf(1), true
}

// parseFloat parses a text that is a floating-point literal of Go as a whole.
func parseFloat(text []byte) (float64, bool) {
	// Most texts are not numbers; ParseFloat would allocate an error for each.
	if len(text) == 0 || strings.IndexByte("+-.0123456789iInN", text[0]) < 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// textOf returns the text by which lists and objects are compared. With the rules of PocketFlow all
// values are compared by their texts, unless both are numeric.
func (o *condOperand) textOf() []byte {
	switch {
	case o.text != nil:
		return o.text
	case !o.loose:
		return canonicalExact(o.raw)
	}
	switch o.kind {
	case KindNull:
		return null
	case KindBool:
		return trimSpace(o.raw)
	case KindNumber:
		return strconv.AppendFloat(nil, o.number, 'g', -1, 64)
	}
	return canonicalText(o.raw)
}

// withText returns the operand with its text set, for repeated comparisons.
func (o condOperand) withText() condOperand {
	o.text = o.textOf()
	return o
}

// canonicalText returns v as compact JSON with sorted keys and one spelling per number.
func canonicalText(v json.RawMessage) []byte {
	var decoded any
	if json.Unmarshal(v, &decoded) != nil {
		// At least one number is too large for a float64, so all numbers keep their spelling.
		d := json.NewDecoder(bytes.NewReader(v))
		d.UseNumber()
		if d.Decode(&decoded) != nil {
			return v
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(decoded) != nil {
		return v
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// canonicalExact returns v as compact JSON with sorted keys. The spelling of each number depends
// only on its exact value.
func canonicalExact(v json.RawMessage) []byte {
	value, err := decodeValue(v)
	if err != nil {
		return v
	}
	out, err := json.Marshal(normalizeNumbers(value))
	if err != nil {
		return v
	}
	return out
}

func normalizeNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(appendNumber(nil, []byte(v)))
	case []any:
		for i := range v {
			v[i] = normalizeNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalizeNumbers(v[k])
		}
	}
	return v
}

// equalOperands reports whether two values are equal: of the same kind, and numbers with the same
// exact value. With the rules of PocketFlow numbers are floats, and texts that read as numbers are
// numbers.
func equalOperands(a, b *condOperand) bool {
	switch {
	case a.loose && a.numeric && b.numeric:
		return a.number == b.number
	case a.loose:
		return bytes.Equal(a.textOf(), b.textOf())
	case a.kind != b.kind:
		return false
	}
	switch a.kind {
	case KindNull:
		return true
	case KindBool:
		return bytes.Equal(trimSpace(a.raw), trimSpace(b.raw))
	case KindNumber:
		return CompareNumbers(a.raw, b.raw) == 0
	}
	return bytes.Equal(a.textOf(), b.textOf())
}

// orderValues compares two values of the same kind: numbers, texts or booleans. Null equals null.
// It returns false for kinds without an order, and for different kinds.
func orderValues(a, b *condOperand) (n int, ordered bool) {
	if a.loose {
		return compareLoosely(a, b), true
	}
	if a.kind != b.kind {
		return 0, false
	}
	switch a.kind {
	case KindNull:
		return 0, true
	case KindBool:
		return bytes.Compare(trimSpace(a.raw), trimSpace(b.raw)), true
	case KindNumber:
		return CompareNumbers(a.raw, b.raw), true
	case KindString:
		return bytes.Compare(a.text, b.text), true
	}
	return 0, false
}

// compareLoosely compares two operands by the rules of PocketFlow. NaN is neither smaller nor
// greater than any number, so the result is 0 although NaN equals nothing.
func compareLoosely(a, b *condOperand) int {
	if !a.numeric || !b.numeric {
		return bytes.Compare(a.textOf(), b.textOf())
	}
	switch {
	case a.number < b.number:
		return -1
	case a.number > b.number:
		return 1
	}
	return 0
}

// containsValue reports whether a list has the value as an element, or a text contains the value.
func containsValue(collection, value *condOperand) bool {
	switch collection.kind {
	case KindString:
		return value.kind == KindString && bytes.Contains(collection.text, value.text)
	case KindArray:
		return hasElement(collection.raw, value)
	}
	return false
}

func hasElement(arr json.RawMessage, value *condOperand) bool {
	want := *value
	if want.loose || want.kind == KindArray || want.kind == KindObject {
		want = value.withText()
	}
	c, ok := newCursor(arr, '[')
	for ok && c.nextMember() {
		if element := readOperand(c.value, want.loose); equalOperands(&element, &want) {
			return true
		}
	}
	return false
}
