package expr

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// longNumber is a JSON number that neither an int nor a double holds exactly. It is compared by its
// exact value and passed on unchanged. Arithmetic with it is an error.
type longNumber struct{ text string }

// decodeNumber returns an int if the number has no fraction and exponent and fits into 64 bits.
// Else it returns a double if a double holds the number exactly, and otherwise a longNumber.
func decodeNumber(text []byte) ref.Val {
	if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return types.Int(i)
	}
	if f, ok := FitsDouble(text); ok {
		return types.Double(f)
	}
	return longNumber{string(text)}
}

// numberText returns a number as JSON. It returns false for NaN, infinite values and values that
// are not numbers.
func numberText(v ref.Val) (json.RawMessage, bool) {
	switch v := v.(type) {
	case longNumber:
		return json.RawMessage(v.text), true
	case types.Int:
		return strconv.AppendInt(nil, int64(v), 10), true
	case types.Uint:
		return strconv.AppendUint(nil, uint64(v), 10), true
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, false
		}
		return exactDouble(float64(v)), true
	}
	return nil, false
}

// exactDouble returns the text of a double: all digits of a whole number, else the shortest text
// that reads back as the same double.
func exactDouble(f float64) json.RawMessage {
	if f == math.Trunc(f) && math.Abs(f) < 1<<64 {
		return strconv.AppendFloat(nil, f, 'f', 0, 64)
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64)
}

// comparisons are the operators that compare numbers of different types by their exact values.
var comparisons = []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals}

// compareExactly compares two numbers that the library would round. It returns false if the library
// does not round them.
func compareExactly(a, b ref.Val) (int, bool) {
	if !roundsTogether(a, b) {
		return 0, false
	}
	x, isNumber := numberText(a)
	y, areNumbers := numberText(b)
	if !isNumber || !areNumbers {
		return 0, false
	}
	return CompareNumbers(x, y), true
}

// roundsTogether reports whether the library would round for a comparison: one value is a
// longNumber, or one is a double and the other an integer.
func roundsTogether(a, b ref.Val) bool {
	if isLong(a) || isLong(b) {
		return true
	}
	_, left := a.(types.Double)
	_, right := b.(types.Double)
	return left != right
}

func isLong(v ref.Val) bool {
	_, long := v.(longNumber)
	return long
}

// equalValues compares two values for == and !=.
func equalValues(a, b ref.Val) ref.Val {
	if n, ok := compareExactly(a, b); ok {
		return types.Bool(n == 0)
	}
	return types.Equal(a, b)
}

// compareValues returns the result of a comparison of numbers that the library would round. It
// returns nil for all other calls.
func compareValues(operator string, args []ref.Val) ref.Val {
	if len(args) != 2 || !slices.Contains(comparisons, operator) {
		return nil
	}
	n, ok := compareExactly(args[0], args[1])
	if !ok {
		return nil
	}
	switch operator {
	case operators.Less:
		return types.Bool(n < 0)
	case operators.LessEquals:
		return types.Bool(n <= 0)
	case operators.Greater:
		return types.Bool(n > 0)
	}
	return types.Bool(n >= 0)
}

// refuseLong returns an error for a call with a longNumber, which the call would have to round. It
// returns nil if no argument is a longNumber.
func refuseLong(function string, args []ref.Val) ref.Val {
	for _, arg := range args {
		if long, ok := arg.(longNumber); ok {
			return long.refuseCall(function)
		}
	}
	return nil
}

func (n longNumber) refuseCall(function string) ref.Val {
	if name, ok := operators.FindReverse(function); ok && name != "" {
		function = name
	}
	return types.NewErr("%s cannot calculate with %s, which has more digits than 64 bits hold: "+
		"compare it, or pass it on, as it is, or send it as a text",
		function, Shorten(n.text))
}

func (n longNumber) Equal(other ref.Val) ref.Val {
	text, ok := numberText(other)
	return types.Bool(ok && CompareNumbers(json.RawMessage(n.text), text) == 0)
}

// Compare compares the number with another one, for functions that sort.
func (n longNumber) Compare(other ref.Val) ref.Val {
	text, ok := numberText(other)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Int(CompareNumbers(json.RawMessage(n.text), text))
}

func (n longNumber) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(n.text)
	case types.TypeType:
		return types.DoubleType
	}
	return n.refuseCall(t.TypeName())
}

func (longNumber) ConvertToNative(reflect.Type) (any, error) { return nil, errNotNative }
func (longNumber) Type() ref.Type                            { return types.DoubleType }
func (n longNumber) Value() any                              { return n }
