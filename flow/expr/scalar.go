package expr

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

func isScalar(v json.RawMessage) bool {
	kind := KindOf(v)
	return kind != KindArray && kind != KindObject
}

// appendScalar appends a form of a scalar that is the same for equal scalars.
func appendScalar(dst []byte, v json.RawMessage) []byte {
	switch KindOf(v) {
	case KindString:
		text, _ := stringText(v)
		return append(append(dst, '"'), text...)
	case KindNumber:
		return appendNumber(dst, trimSpace(v))
	case KindBool:
		return append(dst, trimSpace(v)...)
	}
	return append(dst, null...)
}

// appendNumber appends the sign of a number, its digits without outer zeros, and its power of ten.
func appendNumber(dst, v []byte) []byte {
	if !isNumber(v) {
		return append(dst, v...)
	}
	mantissa, exponent := v, []byte("0")
	if i := bytes.IndexAny(v, "eE"); i >= 0 {
		mantissa, exponent = v[:i], v[i+1:]
	}
	mantissa, negative := bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	start := len(dst)
	if negative {
		dst = append(dst, '-')
	}
	first := len(dst)
	dst = append(append(dst, whole...), fraction...)
	dst = append(dst[:first], bytes.TrimLeft(dst[first:], "0")...)
	written := len(dst)
	dst = dst[:first+len(bytes.TrimRight(dst[first:], "0"))]
	if len(dst) == first {
		return append(dst[:start], '0')
	}
	power, ok := parseExponent(exponent)
	if !ok {
		return append(dst[:start], v...)
	}
	power += int64(written-len(dst)) - int64(len(fraction))
	return strconv.AppendInt(append(dst, 'e'), power, 10)
}

// Whole reports whether v is a number without a fraction, in any spelling, such as 2, 2.0 or 20e-1.
func Whole(v json.RawMessage) bool {
	v = trimSpace(v)
	if n := countDigits(bytes.TrimPrefix(v, []byte("-"))); n > 0 && n >= len(v)-1 && v[len(v)-1] <= '9' && v[len(v)-1] >= '0' {
		return isNumber(v)
	}
	if !isNumber(v) {
		return false
	}
	text := appendNumber(nil, v)
	_, power, found := bytes.Cut(text, []byte("e"))
	return string(text) == "0" || found && power[0] != '-'
}

// AppendCanonical appends a form of v that is the same for equal values, and different for all
// other values.
func AppendCanonical(dst []byte, v json.RawMessage) []byte {
	switch KindOf(v) {
	case KindArray:
		elements, _ := Elements(v)
		dst = append(dst, '[')
		for _, e := range elements {
			dst = append(AppendCanonical(dst, e), ',')
		}
		return append(dst, ']')
	case KindObject:
		members, _ := Members(v)
		members = lastOfEach(members)
		slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(AppendQuote(dst, m.Key), ':')
			dst = append(AppendCanonical(dst, m.Value), ',')
		}
		return append(dst, '}')
	case KindString:
		text, _ := String(v)
		return AppendQuote(dst, text)
	}
	return appendScalar(dst, v)
}

// parseExponent parses an exponent. It returns false if an int64 could overflow when digits are
// moved.
func parseExponent(text []byte) (int64, bool) {
	text, negative := bytes.CutPrefix(bytes.TrimPrefix(text, []byte("+")), []byte("-"))
	if text = bytes.TrimLeft(text, "0"); len(text) > 18 {
		return 0, false
	}
	var n int64
	for _, b := range text {
		n = n*10 + int64(b-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
