package job

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// jsonDirection is the direction in which JSON is used, reading or writing. It holds the interfaces
// of types that encode themselves, as values and as object keys.
type jsonDirection struct {
	self, text reflect.Type
}

var (
	readable = jsonDirection{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
	writable = jsonDirection{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
)

// checkType returns an error if JSON cannot represent a part of a type.
func (d jsonDirection) checkType(t reflect.Type) error {
	return d.visitType(t, "", map[reflect.Type]bool{})
}

func (d jsonDirection) visitType(t reflect.Type, at string, seen map[reflect.Type]bool) error {
	if seen[t] || d.hasMethod(t, d.self) || d.hasMethod(t, d.text) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return unsupportedError(t, at)
	case reflect.Interface:
		if d == readable && t.NumMethod() > 0 {
			return unsupportedError(t, at)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return d.visitType(t.Elem(), at, seen)
	case reflect.Map:
		if !d.isKey(t.Key()) {
			return unsupportedError(t, at)
		}
		return d.visitType(t.Elem(), at, seen)
	case reflect.Struct:
		return d.visitFields(t, at, seen)
	}
	return nil
}

func (d jsonDirection) visitFields(t reflect.Type, at string, seen map[reflect.Type]bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		inside := at
		if !f.Anonymous || name != "" {
			inside = strings.TrimPrefix(at+"."+f.Name, ".")
		}
		if err := d.visitType(f.Type, inside, seen); err != nil {
			return err
		}
	}
	return nil
}

// hasMethod reports whether a type, or a pointer to it, implements an interface.
func (d jsonDirection) hasMethod(t, method reflect.Type) bool {
	return t.Implements(method) || reflect.PointerTo(t).Implements(method)
}

func (d jsonDirection) isKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return d.hasMethod(t, d.text)
}

func unsupportedError(t reflect.Type, at string) error {
	if at == "" {
		return fmt.Errorf("it is a %s", t)
	}
	return fmt.Errorf("field %s is a %s: give it another type, or the tag `json:\"-\"`", at, t)
}
