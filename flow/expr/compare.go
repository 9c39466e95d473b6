package expr

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// operand is a value as expressions see it: perhaps a number, always a text.
type operand struct {
	raw     json.RawMessage
	kind    Kind
	missing bool // it is null because there is no such value
	loose   bool // it is compared by the rules of PocketFlow
	numeric bool // with these rules: it is, or reads as, a number
	number  float64
	// text is there from the start for strings alone; textOf makes it for the others.
	text []byte
}

// look reads v. It copies nothing unless v is a string with escapes.
func look(v json.RawMessage, loose bool) operand {
	o := operand{raw: v, kind: KindOf(v)}
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
		o.number, o.numeric = magnitude(o.raw)
	case KindString:
		o.number, o.numeric = parseFloat(o.text)
	}
	return o
}

// magnitude is Number, but what is too large for a float64 counts as infinite.
func magnitude(v json.RawMessage) (float64, bool) {
	f, ok := Number(v)
	if ok {
		return f, true
	}
	v = trim(v)
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

// textOf is the text by which lists and objects are compared; with the rules of PocketFlow, all values that are not both
// numeric.
func (o *operand) textOf() []byte {
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
		return trim(o.raw)
	case KindNumber:
		return strconv.AppendFloat(nil, o.number, 'g', -1, 64)
	}
	return canonical(o.raw)
}

// withText makes the text now, for an operand that is compared many times.
func (o operand) withText() operand {
	o.text = o.textOf()
	return o
}

// canonical is v as compact JSON with sorted keys and each number in one spelling.
func canonical(v json.RawMessage) []byte {
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
	value, err := decoded(v)
	if err != nil {
		return v
	}
	out, err := json.Marshal(normalized(value))
	if err != nil {
		return v
	}
	return out
}

func normalized(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(appendNumber(nil, []byte(v)))
	case []any:
		for i := range v {
			v[i] = normalized(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalized(v[k])
		}
	}
	return v
}

// equal reports whether two values are the same: of one kind, numbers of the same exact value. With the rules of PocketFlow
// numbers are floats, and texts that read as a number are numbers.
func equal(a, b *operand) bool {
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
		return bytes.Equal(trim(a.raw), trim(b.raw))
	case KindNumber:
		return CompareNumbers(a.raw, b.raw) == 0
	}
	return bytes.Equal(a.textOf(), b.textOf())
}

// orderValues compares two values of one kind that has an order: numbers, texts and booleans; false for others. Null equals null.
func orderValues(a, b *operand) (n int, ordered bool) {
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
		return bytes.Compare(trim(a.raw), trim(b.raw)), true
	case KindNumber:
		return CompareNumbers(a.raw, b.raw), true
	case KindString:
		return bytes.Compare(a.text, b.text), true
	}
	return 0, false
}

// compareLoosely orders two operands by the rules of PocketFlow. NaN is neither smaller nor greater than any number, so it
// counts as 0 here although it equals nothing.
func compareLoosely(a, b *operand) int {
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

// holds says whether a collection has the value as an element or, being text, as a part.
func holds(collection, value *operand) bool {
	switch collection.kind {
	case KindString:
		return value.kind == KindString && bytes.Contains(collection.text, value.text)
	case KindArray:
		return hasElement(collection.raw, value)
	}
	return false
}

func hasElement(arr json.RawMessage, value *operand) bool {
	want := *value
	if want.loose || want.kind == KindArray || want.kind == KindObject {
		want = value.withText()
	}
	c, ok := enter(arr, '[')
	for ok && c.next() {
		if element := look(c.value, want.loose); equal(&element, &want) {
			return true
		}
	}
	return false
}
