package expr

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// arithmeticOps are the operators that accept an int and a double together. JSON has only one kind
// of number, and an expression must work whether or not a price is a whole number.
var arithmeticOps = []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide}

// mixedArithmetic declares the overloads for an int and a double together; see widenInts.
func mixedArithmetic() cel.EnvOption {
	var options []cel.EnvOption
	for _, operator := range arithmeticOps {
		options = append(options, cel.Function(operator,
			cel.Overload(operator+"int_double", []*cel.Type{cel.IntType, cel.DoubleType}, cel.DoubleType),
			cel.Overload(operator+"double_int", []*cel.Type{cel.DoubleType, cel.IntType}, cel.DoubleType)))
	}
	return func(e *cel.Env) (*cel.Env, error) {
		var err error
		for _, option := range options {
			if e, err = option(e); err != nil {
				return nil, err
			}
		}
		return e, nil
	}
}

// widenInts converts an int operand to a double if the other operand is a double. An int that a
// double cannot hold exactly is an error.
func widenInts(operator string, args []ref.Val) []ref.Val {
	if !slices.Contains(arithmeticOps, operator) || len(args) != 2 {
		return args
	}
	a, b := args[0], args[1]
	if i, ok := a.(types.Int); ok && b.Type() == types.DoubleType {
		return []ref.Val{widenInt(i), b}
	}
	if i, ok := b.(types.Int); ok && a.Type() == types.DoubleType {
		return []ref.Val{a, widenInt(i)}
	}
	return args
}

func widenInt(i types.Int) ref.Val {
	if f := types.Double(i); f < 1<<63 && types.Int(f) == i {
		return f
	}
	return types.NewErr("%d cannot be calculated with a number that has a fraction, since more "+
		"than 53 bits of it would be needed: use whole numbers alone", int64(i))
}

// setFunctions returns the functions of the library's sets extension. The library computes their
// cost from the lengths of the lists, which ignores the sizes of the elements.
func setFunctions() []cel.EnvOption {
	list := cel.ListType(cel.TypeParamType("T"))
	declare := func(name string, f func(a, b traits.Lister) bool) cel.EnvOption {
		return cel.Function("sets."+name, cel.Overload("sets_"+name, []*cel.Type{list, list}, cel.BoolType,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val { return types.Bool(f(a.(traits.Lister), b.(traits.Lister))) })))
	}
	return []cel.EnvOption{
		declare("contains", hasAll),
		declare("equivalent", func(a, b traits.Lister) bool { return hasAll(a, b) && hasAll(b, a) }),
		declare("intersects", hasSome),
	}
}

func hasAll(list, wanted traits.Lister) bool {
	for it := wanted.Iterator(); it.HasNext() == types.True; {
		if list.Contains(it.Next()) != types.True {
			return false
		}
	}
	return true
}

func hasSome(list, wanted traits.Lister) bool {
	for it := wanted.Iterator(); it.HasNext() == types.True; {
		if list.Contains(it.Next()) == types.True {
			return true
		}
	}
	return false
}
