package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Typed makes a handler from a function whose input and result are Go values. It returns an error
// if JSON cannot represent these types.
func Typed[In, Out any](name string, fn func(context.Context, In) (Out, error)) (Handler, error) {
	switch {
	case name == "":
		return nil, errors.New("a function needs the name that flows call it by")
	case fn == nil:
		return nil, errors.New("there is no function to call")
	}
	if err := readable.checkType(reflect.TypeFor[In]()); err != nil {
		return nil, fmt.Errorf("its input cannot be read from JSON: %w", err)
	}
	if err := writable.checkType(reflect.TypeFor[Out]()); err != nil {
		return nil, fmt.Errorf("its output cannot be written as JSON: %w", err)
	}
	return func(ctx context.Context, j Job) (any, error) {
		var in In
		if err := readInput(&j, &in); err != nil {
			return nil, Fatal(fmt.Errorf("function %s, node %s: %w", name, j.Step, err))
		}
		return fn(ctx, in)
	}, nil
}

// ReadInput decodes the input of a job, or its params if the job has no input. The error names the
// part that does not fit.
func ReadInput[In any](j Job, in *In) error { return readInput(&j, in) }

// readInput decodes the input of a job, or its params if the job has no input.
func readInput[In any](j *Job, in *In) error {
	what, raw := "input", j.Input
	if isNull(raw) {
		what, raw = "params", j.Params
	}
	if isNull(raw) {
		return nil // the zero value, as in encoding/json
	}
	err := json.Unmarshal(raw, in)
	if err == nil {
		return nil
	}
	return inputError[In](what, raw, err)
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// inputError explains, in terms of the flow, why an input does not fit a function.
func inputError[In any](what string, raw json.RawMessage, err error) error {
	var wrong *json.UnmarshalTypeError
	field := ""
	if errors.As(err, &wrong) {
		field = wrong.Field
	}
	if field == "" {
		field = findBadField[In](raw)
	}
	where := "its " + what
	if field != "" {
		where = fmt.Sprintf("field %s of its %s", field, what)
	}
	if wrong != nil {
		return fmt.Errorf("%s is %s, the function takes %s", where, kindOf(wrong.Value), typeName(wrong.Type))
	}
	return fmt.Errorf("%s cannot be read: %w", where, err)
}

// findBadField returns the field of an object that a type rejects. It is used for errors that name
// no field, which come from types with their own decoding.
func findBadField[In any](raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	for name, value := range fields {
		alone, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err == nil && json.Unmarshal(alone, new(In)) != nil {
			return name
		}
	}
	return ""
}

// kindOf returns a readable name for the kind of value that encoding/json reports, with an article.
// The name of a number contains the number.
func kindOf(value string) string {
	switch kind, text, _ := strings.Cut(value, " "); {
	case kind == "number" && text != "":
		return "the number " + text
	case kind == "array" || kind == "object":
		return "an " + kind
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a text"
	default:
		return "a " + kind
	}
}

// typeName returns a readable name of a type.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number (" + t.String() + ")"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative (" + t.String() + ")"
	case reflect.Float32, reflect.Float64:
		return "a number (" + t.String() + ")"
	case reflect.String:
		return "a text (" + t.String() + ")"
	case reflect.Bool:
		return "true or false (" + t.String() + ")"
	case reflect.Slice, reflect.Array:
		return "an array (" + t.String() + ")"
	}
	return "an object (" + t.String() + ")"
}
