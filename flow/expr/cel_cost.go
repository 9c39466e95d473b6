package expr

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// weighValue returns the cost of reading all of v. It stops above limit, because a value that an
// expression creates may contain the same part many times.
func weighValue(v ref.Val, limit uint64) uint64 {
	switch v := v.(type) {
	case types.String:
		return 1 + uint64(len(v))/8
	case types.Bytes:
		return 1 + uint64(len(v))/8
	case *celArray:
		return 1 + uint64(len(v.raw))/4
	case *celObject:
		if raw := v.rawJSON(); raw != nil {
			return 1 + uint64(len(raw))/4
		}
		return weighAll(v.Iterator(), v.Get, limit)
	case traits.Lister:
		return weighAll(v.Iterator(), func(_ ref.Val) ref.Val { return types.NullValue }, limit)
	case traits.Mapper:
		return weighAll(v.Iterator(), v.Get, limit)
	}
	return 1
}

func weighAll(it traits.Iterator, more func(ref.Val) ref.Val, limit uint64) uint64 {
	sum := uint64(1)
	for sum <= limit && it.HasNext() == types.True {
		v := it.Next()
		sum += weighValue(v, limit-sum)
		if sum <= limit {
			sum += weighValue(more(v), limit-sum)
		}
	}
	return sum
}

// costMeter holds the rest of the budget of an evaluation. Calls get the meter as an additional
// argument, so it has the methods of a value.
type costMeter struct {
	types.Null
	left uint64
}

// meterName is the name of the variable that holds the meter. No variable of a user can have this
// name.
const meterName = "@meter"

func meterOf(frame *interpreter.ExecutionFrame) *costMeter {
	v, _ := frame.ResolveName(meterName)
	return v.(*costMeter)
}

func (m *costMeter) chargeCost(cost uint64) {
	if cost > m.left {
		m.left = 0
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: tooMuch})
	}
	m.left -= cost
}

// chargeFor charges for a value that an expression has created. A list that a comprehension still
// extends was charged element by element.
func (m *costMeter) chargeFor(v ref.Val) {
	if _, building := v.(traits.MutableLister); !building {
		m.chargeCost(weighValue(v, m.left))
	}
}

// maxRegex is the maximum number of states of a regular expression, because a match may try all
// states for each byte.
const maxRegex = 200

// callCost returns the cost of a call. The result counts only if it may be much larger than the
// arguments.
func callCost(function string, args []ref.Val, limit uint64) uint64 {
	weights := make([]uint64, len(args))
	sum := uint64(1)
	for i, arg := range args {
		if _, building := arg.(traits.MutableLister); !building && !(function == "size" && isContainer(arg)) {
			weights[i] = weighValue(arg, limit)
			sum += weights[i]
		}
	}
	switch function {
	case "replace":
		return sum + countReplacements(args)*weights[2]
	case "join":
		if len(args) == 2 {
			return sum + listLength(args[0])*weights[1]
		}
	case "indexOf", "lastIndexOf", "sets.contains", "sets.equivalent", "sets.intersects":
		return sum + 2*weights[0]*weights[1]
	case "distinct":
		return sum + listLength(args[0])*weights[0]
	}
	return sum
}

func isContainer(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

func listLength(v ref.Val) uint64 {
	if sizer, ok := v.(traits.Sizer); ok {
		if n, ok := sizer.Size().(types.Int); ok {
			return uint64(n)
		}
	}
	return 1
}

func countReplacements(args []ref.Val) uint64 {
	s, _ := args[0].(types.String)
	old, _ := args[1].(types.String)
	return uint64(strings.Count(string(s), string(old)))
}
