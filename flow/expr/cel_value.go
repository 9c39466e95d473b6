package expr

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// celScope resolves the variables of one evaluation. Each variable is decoded once, and only as
// deep as the expression reads.
type celScope struct {
	vars      Vars
	knownVars map[string]ref.Val
	meter     costMeter
}

func newCELScope(vars Vars, budget uint64) *celScope {
	return &celScope{vars: vars, knownVars: map[string]ref.Val{}, meter: costMeter{left: budget}}
}

func (s *celScope) Parent() interpreter.Activation { return nil }

func (s *celScope) ResolveName(name string) (any, bool) {
	if name == meterName {
		return &s.meter, true
	}
	if v, ok := s.knownVars[name]; ok {
		return v, true
	}
	source, ok := s.vars(name)
	if !ok {
		return nil, false
	}
	var v ref.Val = types.NullValue
	switch {
	case source.Field != nil:
		v = &celObject{source: source, depth: 1, meter: &s.meter}
	case source.All != nil:
		v = decodeCEL(source.All(), 1, &s.meter)
		if o, ok := v.(*celObject); ok {
			o.source.Empty = source.Empty
		}
	}
	s.knownVars[name] = v
	return v, true
}

// decodeCEL converts JSON to a CEL value. Arrays and objects are decoded at their first access.
func decodeCEL(raw json.RawMessage, depth int, m *costMeter) ref.Val {
	switch KindOf(raw) {
	case KindBool:
		return types.Bool(trimSpace(raw)[0] == 't')
	case KindNumber:
		return decodeNumber(trimSpace(raw))
	case KindString:
		text, _ := String(raw)
		return types.String(text)
	case KindArray:
		return &celArray{raw: raw, depth: depth, meter: m}
	case KindObject:
		return &celObject{raw: raw, depth: depth, meter: m}
	}
	return types.NullValue
}

// checkDepth ends an evaluation that reads deeper into a value than a reference may. Each level is
// read again on the way down.
func checkDepth(depth int) {
	if depth > maxDepth {
		panic(interpreter.EvalCancelledError{Message: fmt.Sprintf("the value is nested deeper than %d", maxDepth)})
	}
}

// celArray is a JSON array. Its elements are decoded at the first access.
type celArray struct {
	raw   json.RawMessage
	depth int
	meter *costMeter
	list  traits.Lister
}

func (a *celArray) decodeList() traits.Lister {
	if a.list == nil {
		checkDepth(a.depth)
		a.meter.chargeCost(uint64(len(a.raw)) / 4)
		elements, _ := Elements(a.raw)
		vals := make([]ref.Val, len(elements))
		for i, e := range elements {
			vals[i] = decodeCEL(e, a.depth+1, a.meter)
		}
		a.list = types.NewRefValList(types.DefaultTypeAdapter, vals)
	}
	return a.list
}

func (a *celArray) Add(other ref.Val) ref.Val                 { return a.decodeList().Add(other) }
func (a *celArray) Contains(v ref.Val) ref.Val                { return a.decodeList().Contains(v) }
func (a *celArray) ConvertToType(t ref.Type) ref.Val          { return a.decodeList().ConvertToType(t) }
func (a *celArray) Equal(other ref.Val) ref.Val               { return a.decodeList().Equal(other) }
func (a *celArray) Get(i ref.Val) ref.Val                     { return a.decodeList().Get(i) }
func (a *celArray) Iterator() traits.Iterator                 { return a.decodeList().Iterator() }
func (a *celArray) Size() ref.Val                             { return a.decodeList().Size() }
func (a *celArray) Type() ref.Type                            { return types.ListType }
func (a *celArray) Value() any                                { return a }
func (a *celArray) ConvertToNative(reflect.Type) (any, error) { return nil, errNotNative }

var errNotNative = errors.New("a list or an object cannot be used here")

// celObject is a JSON object, or an object that an expression created. Unlike the maps of the
// library, it keeps the order of its keys, so that results are always the same.
type celObject struct {
	source Source // source of a variable with fields that can be read one by one
	raw    json.RawMessage
	depth  int
	meter  *costMeter

	knownFields map[string]ref.Val // fields read so far, before all were decoded
	keys        []ref.Val
	decodedMap  traits.Mapper
}

// newCELObject returns an object for a map that an expression created, with its keys in a fixed
// order.
func newCELObject(m traits.Mapper) *celObject {
	o := &celObject{decodedMap: m}
	for it := m.Iterator(); it.HasNext() == types.True; {
		o.keys = append(o.keys, it.Next())
	}
	slices.SortFunc(o.keys, func(a, b ref.Val) int {
		return cmp.Or(cmp.Compare(a.Type().TypeName(), b.Type().TypeName()), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return o
}

func (o *celObject) decodeMap() traits.Mapper {
	if o.decodedMap != nil {
		return o.decodedMap
	}
	checkDepth(o.depth)
	raw := o.rawJSON()
	o.meter.chargeCost(uint64(len(raw)) / 4)
	members, _ := Members(raw)
	vals := make(map[ref.Val]ref.Val, len(members))
	for _, m := range lastOfEach(members) {
		key := types.String(m.Key)
		o.keys = append(o.keys, key)
		vals[key] = decodeCEL(m.Value, o.depth+1, o.meter)
	}
	o.decodedMap = types.NewRefValMap(types.DefaultTypeAdapter, vals)
	return o.decodedMap
}

// rawJSON returns the object as written, or nil if an expression created it.
func (o *celObject) rawJSON() json.RawMessage {
	if o.raw == nil && o.source.All != nil {
		o.raw = o.source.All()
	}
	return o.raw
}

// fewKeys is the number of fields that are read one by one. For further fields the whole object is
// decoded.
const fewKeys = 4

func (o *celObject) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok || o.decodedMap != nil || len(o.knownFields) >= fewKeys && o.source.Field == nil {
		return o.decodeMap().Find(key)
	}
	if v, ok := o.knownFields[string(name)]; ok {
		return v, v != nil
	}
	if o.knownFields == nil {
		o.knownFields = map[string]ref.Val{}
	}
	o.knownFields[string(name)] = o.findField(string(name))
	return o.knownFields[string(name)], o.knownFields[string(name)] != nil
}

func (o *celObject) findField(name string) ref.Val {
	checkDepth(o.depth)
	find := o.source.Field
	if find == nil {
		o.meter.chargeCost(uint64(len(o.raw)) / 64)
		find = func(name string) (json.RawMessage, bool) { return Field(o.raw, name) }
	}
	raw, ok := find(name)
	if !ok {
		return nil
	}
	return decodeCEL(raw, o.depth+1, o.meter)
}

func (o *celObject) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if !found {
		return types.ValOrErr(v, "no such key: %v", key)
	}
	return v
}

func (o *celObject) Contains(key ref.Val) ref.Val {
	_, found := o.Find(key)
	return types.Bool(found)
}

func (o *celObject) Iterator() traits.Iterator {
	o.decodeMap()
	return types.NewRefValList(types.DefaultTypeAdapter, o.keys).Iterator()
}

func (o *celObject) Equal(other ref.Val) ref.Val               { return o.decodeMap().Equal(other) }
func (o *celObject) ConvertToType(t ref.Type) ref.Val          { return o.decodeMap().ConvertToType(t) }
func (o *celObject) Size() ref.Val                             { return o.decodeMap().Size() }
func (o *celObject) Type() ref.Type                            { return types.MapType }
func (o *celObject) Value() any                                { return o }
func (o *celObject) ConvertToNative(reflect.Type) (any, error) { return nil, errNotNative }

func celKind(v ref.Val) string {
	switch v.(type) {
	case types.Null:
		return "null"
	case types.String:
		return "a text"
	case types.Int, types.Uint, types.Double, longNumber:
		return "a number"
	case types.Bytes:
		return "bytes"
	case traits.Lister:
		return "a list"
	case traits.Mapper:
		return "an object"
	}
	return cel.ObjectType(v.Type().TypeName()).String()
}
