package expr

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// isMissing reports whether an attribute failed because a part of it is not there.
func isMissing(val ref.Val) bool {
	err, failed := val.(*types.Err)
	return failed && (strings.HasPrefix(err.Error(), noSuchKey) || strings.HasPrefix(err.Error(), "index out of bounds"))
}

// noSuchKey is how the library's error begins, which names no more than the key.
const noSuchKey = "no such key"

// findMissing says which part of an attribute is not there, after it failed for that. What a source
// calls empty is null, and then nothing may be missing.
func (a meteredAttribute) findMissing(frame *interpreter.ExecutionFrame, failed ref.Val) ref.Val {
	attr, ok := a.Attr().(interpreter.NamespacedAttribute)
	if !ok { // of what a function has returned
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

// findVariable is that with which an attribute begins.
func findVariable(frame *interpreter.ExecutionFrame, attr interpreter.NamespacedAttribute) (name string, value any) {
	for _, name := range attr.CandidateVariableNames() {
		if v, there := frame.ResolveName(name); there {
			return name, v
		}
	}
	return "", nil
}

// isEmpty reports whether a key without a value is null all the same.
func isEmpty(obj any, key ref.Val) bool {
	o, isObject := obj.(*celObject)
	name, isText := key.(types.String)
	return isObject && isText && o.source.Empty != nil && o.source.Empty(string(name))
}

// pathStep is a part of a path as it is written in the language.
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
