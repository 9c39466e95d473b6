package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// InputSchema returns the JSON Schema of the params that a type accepts. The type must be a struct
// or a map with string keys, because params are an object. A field is required if it is neither a
// pointer nor marked with omitempty or omitzero. It returns nil for a type that accepts any object.
func InputSchema(t reflect.Type) (json.RawMessage, error) {
	if err := readable.checkType(t); err != nil {
		return nil, fmt.Errorf("its input cannot be read from JSON: %w", err)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Map || t.Kind() == reflect.Interface || readable.hasMethod(t, readable.self):
		return nil, nil
	case t.Kind() != reflect.Struct:
		return nil, errors.New("its input must be a struct or a map, because the params of a task are an object")
	}
	return json.Marshal(schemaOf(t, nil))
}

// OutputError returns an error if JSON cannot represent a type of results.
func OutputError(t reflect.Type) error {
	if err := writable.checkType(t); err != nil {
		return fmt.Errorf("its output cannot be written as JSON: %w", err)
	}
	return nil
}

// schemaOf returns the schema of a type. A type that contains itself accepts any value at the inner
// place.
func schemaOf(t reflect.Type, around []reflect.Type) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case readable.hasMethod(t, readable.self) || slices.Contains(around, t):
		return map[string]any{}
	case readable.hasMethod(t, readable.text):
		return map[string]any{"type": "string"}
	}
	around = append(around, t)
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 { // a byte slice is a base64 text
			return map[string]any{"type": []string{"string", "null"}}
		}
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(t.Elem(), around)}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": schemaOf(t.Elem(), around)}
	case reflect.Struct:
		s := &structSchema{properties: map[string]any{}}
		s.addFields(t, around)
		schema := map[string]any{"type": "object", "properties": s.properties, "additionalProperties": false}
		if len(s.required) > 0 {
			schema["required"] = s.required
		}
		return schema
	}
	return map[string]any{}
}

type structSchema struct {
	properties map[string]any
	required   []string
}

// addFields adds the fields of a struct, and those of embedded structs.
func (s *structSchema) addFields(t reflect.Type, around []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
			continue
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			s.addFields(inner, around)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		schema := schemaOf(f.Type, around)
		optional := f.Type.Kind() == reflect.Pointer || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if kind, isOne := schema["type"].(string); isOne && f.Type.Kind() == reflect.Pointer {
			schema["type"] = []string{kind, "null"}
		}
		if strings.Contains(options, "string") {
			schema = map[string]any{"type": "string"}
		}
		s.properties[name] = schema
		if !optional {
			s.required = append(s.required, name)
		}
	}
}
