package route

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

// largeBody and the following are sizes in bytes above which bodies and values are read in a way
// that saves memory.
const (
	largeBody  = 16 << 10
	largeValue = 4 << 10
)

// userValues holds the names of body fields that may contain any JSON. A schema does not restrict
// them, so a small value replaces a large one for the comparison with the schema.
type userValues map[string]bool

var rawType, rawListType = reflect.TypeFor[json.RawMessage](), reflect.TypeFor[[]json.RawMessage]()

// noteFields adds the fields of a body type that may contain any JSON.
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

// unmarshalFast decodes a body like encoding/json, but faster for large bodies. encoding/json
// reports the faults of a body.
func (u userValues) unmarshalFast(body []byte, to any) error {
	if len(body) >= largeBody {
		if compared, ok := to.(*any); ok && u.decodeOutline(body, compared) == nil ||
			!ok && experimental.Unmarshal(body, to, asEncodingJSON) == nil {
			return nil
		}
		reflect.ValueOf(to).Elem().SetZero()
	}
	return unmarshalBody(body, to)
}

// asEncodingJSON decodes a body in one pass. A faulty body is read again to report the fault.
var asEncodingJSON = experimental.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// decodeOutline decodes a body for the comparison with its schema.
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

// decodeNext decodes the next value of a body. name is its key in the enclosing object.
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

// standIns holds a small value of each kind. The array has one element, because a large array is
// not empty.
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
