package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Body is a request's body as the compatible dialects read it: names in any case and with or
// without underscores, unknown fields ignored, fields of the wrong type skipped (and counted as
// bad).
type Body struct {
	Bad    bool // it is no JSON object, or a field that was looked at has the wrong type
	fields map[string]json.RawMessage
	wrong  string // the first field that is of the wrong type
}

type bodyKey struct{}

// ReadBody fails only for a body over the limit. What is no JSON object counts as empty, and bad.
func ReadBody(r *http.Request) (*Body, error) {
	if b, ok := r.Context().Value(bodyKey{}).(*Body); ok {
		return b, nil // it had to be read to know whose request this is
	}
	b := &Body{fields: map[string]json.RawMessage{}}
	fields := map[string]json.RawMessage{}
	err := json.NewDecoder(r.Body).Decode(&fields)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, err
	}
	if err != nil {
		b.Bad = true
		return b, nil
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // of two spellings the same one wins every time
		b.fields[fieldName(name)] = fields[name]
	}
	return b, nil
}

// ReadStrict is for routes that refuse what the others overlook.
func ReadStrict(r *http.Request, into func(*Body)) error {
	b, err := ReadBody(r)
	if err != nil {
		return err
	}
	return b.Strict(func() { into(b) })
}

// Strict reads fields, and refuses a body that is bad in the words of the original.
func (b *Body) Strict(read func()) error {
	read()
	if b.Bad {
		return &Refusal{http.StatusBadRequest, flow.Invalid, "bad request"}
	}
	return nil
}

func fieldName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "")
}

// Has reports whether a field was sent with a value.
func (b *Body) Has(name string) bool {
	v, ok := b.fields[fieldName(name)]
	return ok && !bytes.Equal(v, []byte("null"))
}

// Unknown returns the first field in alphabetical order that is not among those named, "" = there
// is none.
func (b *Body) Unknown(known ...string) string {
	for _, name := range slices.Sorted(maps.Keys(b.fields)) {
		if !slices.ContainsFunc(known, func(k string) bool { return fieldName(k) == name }) {
			return name
		}
	}
	return ""
}

// Raw is a field as it was sent.
func (b *Body) Raw(name string) json.RawMessage { return b.fields[fieldName(name)] }

// Into reads a field into v. One of the wrong type makes the body bad.
func (b *Body) Into(name string, v any) {
	if b.Has(name) && json.Unmarshal(b.Raw(name), v) != nil {
		b.Bad, b.wrong = true, cmp.Or(b.wrong, name)
	}
}

// Problem says what is bad to those who are told more than the original told.
func (b *Body) Problem() error {
	if b.wrong == "" {
		return flow.Errorf(flow.Invalid, "the body must be a JSON object")
	}
	return flow.Errorf(flow.Invalid, "%s has a value of the wrong type", b.wrong)
}

// Text is a field that holds one; "" = it is not there.
func (b *Body) Text(name string) string {
	var s string
	b.Into(name, &s)
	return s
}

// Number is a field that holds a whole one; 0 = it is not there.
func (b *Body) Number(name string) int {
	var n int
	b.Into(name, &n)
	return n
}

// Texts is a field that holds a list of them.
func (b *Body) Texts(name string) []string {
	var list []string
	b.Into(name, &list)
	return list
}

// Document reads a field that is text holding JSON, or that JSON itself.
func (b *Body) Document(name string) string {
	raw := b.Raw(name)
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
		return string(raw)
	}
	return b.Text(name)
}
