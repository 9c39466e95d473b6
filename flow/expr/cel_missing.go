package expr

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// isMissing reports whether an attribute failed because a part of its path is missing.
func isMissing(val ref.Val) bool {
	err, failed := val.(*types.Err)
	return failed && (strings.HasPrefix(err.Error(), noSuchKey) || strings.HasPrefix(err.Error(), "index out of bounds"))
}

// noSuchKey is the beginning of the library's error text. Only the key follows.
const noSuchKey = "no such key"

// findMissing returns an error with the path of the missing part of a failed attribute. If the
// source calls that part empty, its value is null, and the attribute may not fail at all.
func (a meteredAttribute) findMissing(frame *interpreter.ExecutionFrame, failed ref.Val) ref.Val {
	attr, ok := a.Attr().(interpreter.NamespacedAttribute)
	if !ok { // an attribute of a function's result
		return failed
	}
	path, obj := findVariable(frame, attr)
	if path == "" {
		return failed
	}
	for _, q := range attr.Qualifiers() {
		part, ok := q.(interpreter.ConstantQualifier)
		if !ok {
			return failed
		}
		next, err := q.Qualify(frame, obj)
		switch {
		case err == nil:
			obj = next
		case isEmpty(obj, part.Value()):
			obj = types.NullValue
		default:
			return types.WrapErr(missingPart(path, part.Value()))
		}
		path += pathStep(part.Value())
	}
	return a.Adapter().NativeToValue(obj)
}

// findVariable returns the variable with which an attribute begins.
func findVariable(frame *interpreter.ExecutionFrame, attr interpreter.NamespacedAttribute) (name string, value any) {
	for _, name := range attr.CandidateVariableNames() {
		if v, there := frame.ResolveName(name); there {
			return name, v
		}
	}
	return "", nil
}

// isEmpty reports whether a missing key counts as null.
func isEmpty(obj any, key ref.Val) bool {
	o, isObject := obj.(*celObject)
	name, isText := key.(types.String)
	return isObject && isText && o.source.Empty != nil && o.source.Empty(string(name))
}

// pathStep returns one step of a path in the notation of CEL.
func pathStep(part ref.Val) string {
	name, isText := part.(types.String)
	switch {
	case !isText:
		return fmt.Sprintf("[%v]", part.Value())
	case identifierPattern.MatchString(string(name)):
		return "." + string(name)
	}
	return "[" + string(Quote(string(name))) + "]"
}

var identifierPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func missingPart(of string, part ref.Val) error {
	at := pathStep(part)
	ask := "has(" + of + at + ")"
	switch name, isText := part.(types.String); {
	case !isText:
		ask = "size(" + of + ")"
	case at[0] == '[':
		ask = string(Quote(string(name))) + " in " + of
	}
	return &MissingError{of + at, ask}
}
