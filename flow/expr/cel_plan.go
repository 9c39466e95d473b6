package expr

import (
	"regexp"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// costMetering changes the nodes of a program so that their cost is charged before they work. Calls
// cost the size of their arguments, and constructors the size of the created values. So a value of
// an expression is never larger than its cost, even if it repeats a part many times.
type costMetering map[string]*functions.Overload

// newMetering collects the functions of an environment.
func newMetering(env *cel.Env) (costMetering, error) {
	m := costMetering{}
	for _, f := range env.Functions() {
		bindings, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			m[b.Operator] = b
		}
	}
	return m, nil
}

func (m costMetering) meterNode(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case interpreter.InterpretableConst:
		return i, nil
	case interpreter.InterpretableAttribute:
		return meteredAttribute{i}, nil
	case interpreter.InterpretableConstructor:
		return meteredConstructor{i}, nil
	case interpreter.InterpretableCall:
		return m.meterCall(i)
	}
	return meteredNode{i}, nil
}

// meteredNode charges for an and, an or, or a comprehension.
type meteredNode struct{ interpreter.InterpretableV2 }

func (n meteredNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterOf(frame).chargeCost(1)
	return n.InterpretableV2.Exec(frame)
}

func (n meteredNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// meteredAttribute charges for a variable, or a part of a value.
type meteredAttribute struct {
	interpreter.InterpretableAttribute
}

func (a meteredAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterOf(frame).chargeCost(1)
	val := a.InterpretableAttribute.Exec(frame)
	if isMissing(val) {
		return a.findMissing(frame, val)
	}
	return val
}

func (a meteredAttribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// meteredConstructor charges for a list or an object that the expression creates.
type meteredConstructor struct {
	interpreter.InterpretableConstructor
}

func (c meteredConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	val := c.InterpretableConstructor.Exec(frame)
	if m, ok := val.(traits.Mapper); ok {
		val = newCELObject(m)
	}
	meterOf(frame).chargeFor(val)
	return val
}

func (c meteredConstructor) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// meterArgument is the argument that passes the meter to calls.
type meterArgument struct{ interpreter.InterpretableConst }

func (meterArgument) Exec(frame *interpreter.ExecutionFrame) ref.Val { return meterOf(frame) }

func (t meterArgument) Eval(vars interpreter.Activation) ref.Val {
	return t.Exec(interpreter.AsFrame(vars))
}

// meterCall returns the call with the meter as its last argument.
func (m costMetering) meterCall(c interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	run, err := m.callFunction(c)
	if err != nil || run == nil {
		return meteredNode{c}, err
	}
	times := timesOf(c)
	paid := func(args ...ref.Val) ref.Val {
		meter, args := args[len(args)-1].(*costMeter), args[:len(args)-1]
		meter.chargeCost(callCost(c.Function(), args, meter.left) * times)
		result := run(args)
		meter.chargeFor(result)
		return result
	}
	args := append(append([]interpreter.InterpretableV2(nil), c.Args()...), meterArgument{interpreter.NewConstValue(0, types.NullValue)})
	return interpreter.NewCall(c.ID(), c.Function(), c.OverloadID(), args, paid), nil
}

// timesOf returns how often a call may read its arguments. A regular expression may read them once
// per state.
func timesOf(c interpreter.InterpretableCall) uint64 {
	if c.Function() != "matches" {
		return 1
	}
	n, err := regexStates(regexOf(c))
	if err != nil { // Compile reports this error
		return 1
	}
	return uint64(n)
}

// regexOf returns the literal pattern of a call of matches, or "" if the pattern is not a literal.
func regexOf(c interpreter.InterpretableCall) string {
	pattern, _ := c.Args()[1].(interpreter.InterpretableConst)
	text, _ := pattern.Value().(types.String)
	return string(text)
}

// callFunction returns the function of a call. It returns nil if the function must also receive
// arguments that are errors.
func (m costMetering) callFunction(c interpreter.InterpretableCall) (func([]ref.Val) ref.Val, error) {
	switch c.Function() {
	case operators.Equals:
		return func(args []ref.Val) ref.Val { return equalValues(args[0], args[1]) }, nil
	case operators.NotEquals:
		return func(args []ref.Val) ref.Val { return types.Bool(equalValues(args[0], args[1]) != types.True) }, nil
	case "matches":
		return matchesFunction(c)
	}
	o := m[c.OverloadID()]
	if o == nil {
		o = m[c.Function()]
	}
	if o == nil || o.NonStrict {
		return nil, nil
	}
	return func(args []ref.Val) ref.Val {
		if answer := compareValues(c.Function(), args); answer != nil {
			return answer
		}
		if !passesOn(c.Function()) {
			if refusal := refuseLong(c.Function(), args); refusal != nil {
				return refusal
			}
		}
		args = widenInts(c.Function(), args)
		if i := slices.IndexFunc(args, types.IsError); i >= 0 {
			return args[i]
		}
		return invokeOverload(c, o, args)
	}, nil
}

// passesOn reports whether a function accepts a longNumber, because it does no arithmetic.
func passesOn(function string) bool {
	switch function {
	case operators.In, operators.Index, operators.OptIndex, "string", "type", "dyn":
		return true
	}
	return false
}

func invokeOverload(c interpreter.InterpretableCall, o *functions.Overload, args []ref.Val) ref.Val {
	if o.OperandTrait != 0 && (len(args) == 0 || !args[0].Type().HasTrait(o.OperandTrait)) {
		return types.NewErr("no such overload: %s", c.Function())
	}
	switch {
	case len(args) == 1 && o.Unary != nil:
		return o.Unary(args[0])
	case len(args) == 2 && o.Binary != nil:
		return o.Binary(args[0], args[1])
	case o.Function != nil:
		return o.Function(args...)
	}
	return types.NewErr("no such overload: %s", c.Function())
}

// matchesFunction returns the function of a call of matches. The regular expression is a literal,
// so it is compiled once.
func matchesFunction(c interpreter.InterpretableCall) (func([]ref.Val) ref.Val, error) {
	pattern, _ := c.Args()[1].(interpreter.InterpretableConst)
	text, ok := pattern.Value().(types.String)
	if !ok {
		return func([]ref.Val) ref.Val { return types.NewErr("no such overload: matches") }, nil
	}
	compiled, err := regexp.Compile(string(text))
	return func(args []ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		if !ok {
			return types.NewErr("no such overload: matches")
		}
		return types.Bool(compiled.MatchString(string(s)))
	}, err
}
