package v1

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	experimental "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Bodies and values of so many bytes are read with care for their size.
const (
	largeBody  = 16 << 10
	largeValue = 4 << 10
)

// userValues are the names of the members of bodies that hold any JSON of a user. The description
// of a body says nothing about what is inside them, so a large one is not built to be compared with
// it: a small value of its kind stands for it.
type userValues map[string]bool

var rawType, rawListType = reflect.TypeFor[json.RawMessage](), reflect.TypeFor[[]json.RawMessage]()

// noteFields finds the user values in the type of a body.
func (u userValues) noteFields(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		if f.Type == rawType || f.Type == rawListType {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			u[name] = true
		} else {
			u.noteFields(f.Type)
		}
	}
}

// unmarshalFast decodes a body as encoding/json does, only faster when it is large. Whatever is
// wrong with a body is told by encoding/json.
func (u userValues) unmarshalFast(body []byte, to any) error {
	if len(body) >= largeBody {
		if compared, ok := to.(*any); ok && u.decodeOutline(body, compared) == nil || !ok && experimental.Unmarshal(body, to, asEncodingJSON) == nil {
			return nil
		}
		reflect.ValueOf(to).Elem().SetZero()
	}
	return unmarshalBody(body, to)
}

// asEncodingJSON reads a body in one go: it is read twice only to tell what is wrong with it.
var asEncodingJSON = experimental.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// decodeOutline decodes a body for the comparison with its description.
func (u userValues) decodeOutline(body []byte, to *any) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), asEncodingJSON)
	v, err := u.decodeNext(dec, "")
	if err != nil {
		return err
	}
	*to = v
	_, err = dec.ReadToken()
	if err == io.EOF {
		return nil
	}
	return cmp.Or(err, errors.New("there is more behind the body's value"))
}

// decodeNext decodes the next value of a body, the member of this name of an object.
func (u userValues) decodeNext(dec *jsontext.Decoder, name string) (any, error) {
	kind := dec.PeekKind()
	switch {
	case u[name] || kind != '{' && kind != '[':
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if u[name] && len(raw) >= largeValue {
			return standIns[kind], nil
		}
		var v any
		err = unmarshalBody(raw, &v)
		return v, err
	case kind == '{':
		return u.decodeObject(dec)
	}
	return u.decodeArray(dec)
}

// standIns are small values of each kind. An array that is large has elements.
var standIns = map[jsontext.Kind]any{'{': map[string]any{}, '[': []any{nil}, '"': "", '0': 0.0}

func (u userValues) decodeObject(dec *jsontext.Decoder) (any, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	o := map[string]any{}
	for dec.PeekKind() != '}' {
		t, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := t.String()
		if o[name], err = u.decodeNext(dec, name); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return o, err
}

func (u userValues) decodeArray(dec *jsontext.Decoder) (any, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	a := []any{}
	for dec.PeekKind() != ']' {
		v, err := u.decodeNext(dec, "")
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	_, err := dec.ReadToken()
	return a, err
}
