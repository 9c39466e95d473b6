package expr

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// condOperand is a value as expressions see it: perhaps a number, always a text.
type condOperand struct {
	raw     json.RawMessage
	kind    Kind
	missing bool // it is null because there is no such value
	loose   bool // it is compared by the rules of PocketFlow
	numeric bool // with these rules: it is, or reads as, a number
	number  float64
	// text is there from the start for strings alone; textOf makes it for the others.
	text []byte
}

// readOperand reads v. It copies nothing unless v is a string with escapes.
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

// numberOrInf is Number, but what is too large for a float64 counts as infinite.
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

// parseFloat reads text that is a floating-point literal of Go as a whole.
func parseFloat(text []byte) (float64, bool) {
	// Most text is no number; asking ParseFloat would cost an error each time.
	if len(text) == 0 || strings.IndexByte("+-.0123456789iInN", text[0]) < 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// textOf is the text by which lists and objects are compared; with the rules of PocketFlow, all
// values that are not both numeric.
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

// withText makes the text now, for an operand that is compared many times.
func (o condOperand) withText() condOperand {
	o.text = o.textOf()
	return o
}

// canonicalText is v as compact JSON with sorted keys and each number in one spelling.
func canonicalText(v json.RawMessage) []byte {
	var decoded any
	if json.Unmarshal(v, &decoded) != nil {
		// A number too large for a float64; all numbers stay as they are written then.
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

// canonicalExact is v as compact JSON with sorted keys, each number spelled by its exact value.
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

// equalOperands reports whether two values are the same: of one kind, numbers of the same exact
// value. With the rules of PocketFlow numbers are floats, and texts that read as a number are
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

// orderValues compares two values of one kind that has an order: numbers, texts and booleans; false
// for others. Null equals null.
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

// compareLoosely orders two operands by the rules of PocketFlow. NaN is neither smaller nor greater
// than any number, so it counts as 0 here although it equals nothing.
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

// containsValue reports whether a collection has the value as an element or, being text, as a part.
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
