package expr

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
)

// CompareNumbers compares two JSON numbers by their exact values and returns -1, 0 or 1. The cost
// is linear in the lengths of the numbers, whatever their exponents. A text that is not a number
// counts as 0.
func CompareNumbers(a, b json.RawMessage) int {
	a, b = trimSpace(a), trimSpace(b)
	if n, ok := compareIntegers(a, b); ok {
		return n
	}
	return parseDecimal(a).compareTo(parseDecimal(b))
}

// compareIntegers compares two numbers that consist only of digits and a sign.
func compareIntegers(a, b []byte) (int, bool) {
	x, negative := bytes.CutPrefix(a, []byte("-"))
	y, other := bytes.CutPrefix(b, []byte("-"))
	if negative != other || len(x) == 0 || len(y) == 0 || countDigits(x) != len(x) || countDigits(y) != len(y) {
		return 0, false
	}
	n := cmp.Or(cmp.Compare(len(x), len(y)), bytes.Compare(x, y))
	if negative {
		n = -n
	}
	return n, true
}

// decimalNumber is a number in the form ±0.digits × 10^(power + exponent). The first and the last
// digit are not 0; zero has no digits.
type decimalNumber struct {
	negative bool
	digits   []byte
	power    int64
	// exponentSign and exponentDigits hold an exponent that is too long for an int64. For any other
	// exponent both are zero, and power includes the exponent.
	exponentSign   int
	exponentDigits []byte
}

func parseDecimal(v []byte) decimalNumber {
	if !isNumber(v) {
		return decimalNumber{}
	}
	mantissa, exponent := v, []byte("0")
	if i := bytes.IndexAny(v, "eE"); i >= 0 {
		mantissa, exponent = v[:i], v[i+1:]
	}
	mantissa, negative := bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	all := append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	significant := bytes.TrimLeft(all, "0")
	d := decimalNumber{negative: negative, digits: bytes.TrimRight(significant, "0"),
		power: int64(len(whole)) - int64(len(all)-len(significant))}
	if len(d.digits) == 0 {
		return decimalNumber{}
	}
	power, ok := parseExponent(exponent)
	if ok {
		d.power += power
		return d
	}
	d.exponentSign = 1
	if exponent[0] == '-' {
		d.exponentSign = -1
	}
	d.exponentDigits = bytes.TrimLeft(exponent, "+-0")
	return d
}

func (d decimalNumber) signOf() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (d decimalNumber) compareTo(other decimalNumber) int {
	sign := d.signOf()
	if n := cmp.Compare(sign, other.signOf()); n != 0 || sign == 0 {
		return n
	}
	exponents := cmp.Or(cmp.Compare(len(d.exponentDigits), len(other.exponentDigits)),
		bytes.Compare(d.exponentDigits, other.exponentDigits))
	return sign * cmp.Or(
		cmp.Compare(d.exponentSign, other.exponentSign), d.exponentSign*exponents,
		cmp.Compare(d.power, other.power), bytes.Compare(d.digits, other.digits))
}

// FitsDouble reports whether a float64 holds a JSON number exactly, and returns that float64.
func FitsDouble(v json.RawMessage) (float64, bool) {
	v = trimSpace(v)
	f, ok := Number(v)
	if !ok {
		return 0, false
	}
	var buf [32]byte
	return f, CompareNumbers(strconv.AppendFloat(buf[:0], f, 'g', -1, 64), v) == 0
}
