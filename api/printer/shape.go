package printer

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
)

var (
	rawType       = reflect.TypeFor[json.RawMessage]()
	textType      = reflect.TypeFor[Text]()
	marshalerType = reflect.TypeFor[json.Marshaler]()

	timeType          = reflect.TypeFor[wire.Time]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// typeShape holds properties of a type.
type typeShape struct {
	holdsValues bool // the type may contain values of users
	fields      []structField
}

// structField is a field of a struct as encoding/json sees it.
type structField struct {
	index               []int
	name                string // quoted name with its colon
	omitEmpty, omitZero bool
	plain, time         bool
}

var shapes sync.Map // cache of *typeShape by reflect.Type

func shapeOf(t reflect.Type) *typeShape {
	if s, ok := shapes.Load(t); ok {
		return s.(*typeShape)
	}
	s := &typeShape{holdsValues: canHoldValues(t, map[reflect.Type]bool{})}
	if s.holdsValues && t.Kind() == reflect.Struct {
		s.fields = fieldsOf(t)
	}
	shapes.Store(t, s)
	return s
}

// canHoldValues reports whether a type may contain values of users. A type with its own marshaler
// contains none.
func canHoldValues(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch {
	case t == rawType || t == textType:
		return true
	case seen[t] || t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType):
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return canHoldValues(t.Elem(), seen)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && canHoldValues(t.Elem(), seen)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if canHoldValues(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

func fieldsOf(t reflect.Type) (fields []structField) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields = append(fields, structField{f.Index, strconv.Quote(name) + ":",
			strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero"),
			isPlain(f.Type), f.Type == timeType})
	}
	return fields
}

// isPlain reports whether the values of a type are texts or whole numbers without a marshaler.
func isPlain(t reflect.Type) bool {
	for _, own := range []reflect.Type{marshalerType, textMarshalerType} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return false
		}
	}
	return t.Kind() == reflect.String || reflect.Zero(t).CanInt()
}

func (f *structField) isOmitted(v reflect.Value) bool {
	return f.omitEmpty && isEmpty(v) || f.omitZero && isZero(v)
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}
