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
// is safe for concurrent use.
//
// The result depends only on the values of the variables: there are no functions of time. The keys
// of an object are visited in the order in which they are written. The keys of an object that the
// expression creates are visited in alphabetical order.
//
// A number without fraction and exponent is an int if it fits into 64 bits. Any other number is a
// double; arithmetic may mix the two. A number that neither type holds exactly, such as
// 10000000000000000001, can be passed on and compared exactly, but arithmetic with it is an error.
// A value that is passed on unchanged, such as a whole object, keeps its bytes.
//
// An expression cannot run for long or use much memory: its work is counted, and too much work is
// an error.
type CEL struct {
	source  string
	kind    *cel.Type
	program cel.Program
	budget  uint64
	allowed *Allowance // shared allowance; nil for the whole budget
	broken  error      // error of the compilation
	reads   []Read     // parts of variables that the expression names
}

// On returns the expression with an allowance that it shares with other expressions.
func (c *CEL) On(a *Allowance) *CEL {
	on := *c
	on.allowed = a
	return &on
}

// CompileCEL compiles a single expression. vars are the names of its variables.
func CompileCEL(source string, vars ...string) (*CEL, error) {
	return NewLanguage(vars...).Compile(source)
}

// BrokenCEL returns a CEL for an expression that could not be compiled. Its evaluation fails with
// err.
func BrokenCEL(source string, err error) *CEL { return &CEL{source: source, broken: err} }

// Broken returns the error of the compilation, or nil if there was none.
func (c *CEL) Broken() error { return c.broken }

// MayBeBool reports whether the expression may return a boolean. If not, Type returns the type of
// the result.
func (c *CEL) MayBeBool() bool {
	return c.kind.IsExactType(cel.BoolType) || c.kind.IsExactType(cel.DynType)
}

// Type returns the type of the result as far as it is known without values, or dyn if it is
// unknown.
func (c *CEL) Type() string { return c.kind.String() }

// Source returns the text of the expression.
func (c *CEL) Source() string { return c.source }

// Eval returns the value of the expression as JSON.
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

// Bool returns the value of the expression. It returns an error if the value is not a boolean.
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

// Shorten cuts the text of an expression for a message.
func Shorten(source string) string {
	const most = 80
	if len(source) <= most {
		return source
	}
	return strings.ToValidUTF8(source[:most], "") + "…"
}

// Vars returns the variable with a name. A missing variable is an error only if the evaluation
// needs it.
type Vars func(name string) (Source, bool)

// Source provides the value of a variable. All returns the whole value. If Field is set, the
// variable is an object, and Field returns one field without building the whole. Empty reports
// whether a field that is missing in All counts as null; has(…) is false for such a field.
type Source struct {
	Field func(key string) (json.RawMessage, bool)
	All   func() json.RawMessage
	Empty func(key string) bool
}

// Raw returns the source of an existing value.
func Raw(v json.RawMessage) Source {
	return Source{All: func() json.RawMessage { return v }}
}

// sharedSource returns the source of the variable shared.
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

// Var returns the variables params, input and shared, which references call $params, $input and
// $shared.
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
