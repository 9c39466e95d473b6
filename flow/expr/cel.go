package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// CEL is a compiled expression in the Common Expression Language, such as params.amount > 1000. It
// may be used by any number of goroutines.
//
// What it gives depends on the values of its variables alone: there are no functions of time, and
// the keys of an object are visited in the order they are written, those of an object made by the
// expression in the order of the alphabet. A number written without fraction and exponent is an int
// if it fits into 64 bits, every other one a double; an int and a double may be calculated with
// each other. A number that neither holds exactly, such as 10000000000000000001, can be compared,
// which is exact, and passed on; calculating with it is an error. What is passed on as it is, such
// as a whole object, keeps its bytes.
//
// No expression keeps its evaluator for long or takes much memory: what it does is counted, and
// one that does too much ends with an error.
type CEL struct {
	source  string
	kind    *cel.Type
	program cel.Program
	budget  uint64
	allowed *Allowance // nil = all of its budget
	broken  error      // it could not be compiled
	reads   []Read     // the parts of variables that it names
}

// On is the expression with what it may do together with others.
func (c *CEL) On(a *Allowance) *CEL {
	on := *c
	on.allowed = a
	return &on
}

// CompileCEL compiles one expression over variables of these names, as a Language of its own would.
func CompileCEL(source string, vars ...string) (*CEL, error) {
	return NewLanguage(vars...).Compile(source)
}

// BrokenCEL is an expression that could not be compiled. It fails with that when it is evaluated.
func BrokenCEL(source string, err error) *CEL { return &CEL{source: source, broken: err} }

// Broken is why the expression could not be compiled, or nil.
func (c *CEL) Broken() error { return c.broken }

// MayBeBool is false if the expression can be seen never to give a boolean; then Type says what it
// gives.
func (c *CEL) MayBeBool() bool {
	return c.kind.IsExactType(cel.BoolType) || c.kind.IsExactType(cel.DynType)
}

// Type names what the expression gives, as far as that is known without values; dyn if it is not.
func (c *CEL) Type() string { return c.kind.String() }

// Source is the expression as it was written.
func (c *CEL) Source() string { return c.source }

// Eval gives the value of the expression as JSON.
func (c *CEL) Eval(vars Vars) (json.RawMessage, error) {
	val, err := c.evalValue(vars)
	if err != nil {
		return nil, err
	}
	out, err := appendCEL(nil, val, 1)
	if err != nil {
		return nil, c.wrapError(err)
	}
	return out, nil
}

// Bool gives the value of an expression that has to be a boolean.
func (c *CEL) Bool(vars Vars) (bool, error) {
	val, err := c.evalValue(vars)
	if err != nil {
		return false, err
	}
	b, ok := val.(types.Bool)
	if !ok {
		return false, c.wrapError(fmt.Errorf("it gives %s, not true or false", celKind(val)))
	}
	return bool(b), nil
}

func (c *CEL) evalValue(vars Vars) (ref.Val, error) {
	if c.broken != nil {
		return nil, c.wrapError(c.broken)
	}
	scope := newCELScope(vars, c.budget)
	if c.allowed != nil {
		scope.meter.left = min(c.budget, c.allowed.left)
	}
	before := scope.meter.left
	val, _, err := c.program.Eval(scope)
	if c.allowed != nil {
		c.allowed.left -= before - scope.meter.left
	}
	switch {
	case err != nil:
		return nil, c.wrapError(err)
	case types.IsUnknown(val):
		return nil, c.wrapError(errors.New("a value is unknown"))
	}
	return val, nil
}

func (c *CEL) wrapError(err error) error {
	source := Shorten(c.source)
	if strings.HasPrefix(err.Error(), noSuchKey) {
		return fmt.Errorf("expression %q: %w: ask has(…) first whether it is there", source, err)
	}
	return fmt.Errorf("expression %q: %w", source, err)
}

// Shorten cuts the text of an expression that is too long for a message.
func Shorten(source string) string {
	const most = 80
	if len(source) <= most {
		return source
	}
	return strings.ToValidUTF8(source[:most], "") + "…"
}

// Vars finds the variables of an expression by name. One that is not there is an error only if the
// evaluation comes to it.
type Vars func(name string) (Source, bool)

// Source is where a variable has its value from. All gives the whole of it. If Field is set as
// well, the variable is an object, and a key of it is found without putting the whole together.
// Empty tells of a key that All does not have whether it is null, instead of missing; has(…) is
// false for it.
type Source struct {
	Field func(key string) (json.RawMessage, bool)
	All   func() json.RawMessage
	Empty func(key string) bool
}

// Raw is a source of a value that is there already.
func Raw(v json.RawMessage) Source {
	return Source{All: func() json.RawMessage { return v }}
}

// sharedSource is the source of shared.
func (e *Env) sharedSource() Source {
	if e.Whole == nil {
		return Source{Field: e.Shared, All: e.SharedAll}
	}
	return Source{
		Field: func(key string) (json.RawMessage, bool) {
			v, there := e.Shared(key)
			return e.Whole(v), there
		},
		All: func() json.RawMessage { return e.Whole(e.SharedAll()) },
	}
}

// Var finds what references call $params, $input and $shared.
func (e *Env) Var(name string) (Source, bool) {
	switch name {
	case "params":
		return Raw(e.Whole.openValue(e.Params)), true
	case "input":
		return Raw(e.Whole.openValue(e.Input)), true
	case "shared":
		return e.sharedSource(), true
	}
	return Source{}, false
}
