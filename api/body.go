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

// Body is the body of a request in a compatible dialect. Field names match in any case, with or
// without underscores. Unknown fields are ignored. Fields of the wrong type are skipped and set
// Bad.
type Body struct {
	Bad    bool // the body is no JSON object, or a field that was read has the wrong type
	fields map[string]json.RawMessage
	wrong  string // name of the first field with the wrong type
}

type bodyKey struct{}

// ReadBody returns an error only for a body over the limit. A body that is no JSON object counts as
// empty and bad.
func ReadBody(r *http.Request) (*Body, error) {
	if b, ok := r.Context().Value(bodyKey{}).(*Body); ok {
		return b, nil // the body was read earlier to find the dialect of the request
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
	// sorted, so that the same spelling of a name always wins
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		b.fields[fieldName(name)] = fields[name]
	}
	return b, nil
}

// ReadStrict reads a body and rejects a bad one, for routes that do not ignore mistakes.
func ReadStrict(r *http.Request, into func(*Body)) error {
	b, err := ReadBody(r)
	if err != nil {
		return err
	}
	return b.Strict(func() { into(b) })
}

// Strict runs read, and returns the error text of the original product if the body is bad.
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

// Unknown returns the first field in alphabetical order that is not in known; "" if there is none.
func (b *Body) Unknown(known ...string) string {
	for _, name := range slices.Sorted(maps.Keys(b.fields)) {
		if !slices.ContainsFunc(known, func(k string) bool { return fieldName(k) == name }) {
			return name
		}
	}
	return ""
}

// Raw returns a field as it was sent.
func (b *Body) Raw(name string) json.RawMessage { return b.fields[fieldName(name)] }

// Into reads a field into v. A value of the wrong type makes the body bad.
func (b *Body) Into(name string, v any) {
	if b.Has(name) && json.Unmarshal(b.Raw(name), v) != nil {
		b.Bad, b.wrong = true, cmp.Or(b.wrong, name)
	}
}

// Problem describes a bad body, for routes that report more than the original product did.
func (b *Body) Problem() error {
	if b.wrong == "" {
		return flow.Errorf(flow.Invalid, "the body must be a JSON object")
	}
	return flow.Errorf(flow.Invalid, "%s has a value of the wrong type", b.wrong)
}

// Text returns a text field; "" if it is missing.
func (b *Body) Text(name string) string {
	var s string
	b.Into(name, &s)
	return s
}

// Number returns a field that is a whole number; 0 if it is missing.
func (b *Body) Number(name string) int {
	var n int
	b.Into(name, &n)
	return n
}

// Texts returns a field that is a list of texts.
func (b *Body) Texts(name string) []string {
	var list []string
	b.Into(name, &list)
	return list
}

// Document returns a field that is either text holding JSON, or the JSON itself.
func (b *Body) Document(name string) string {
	raw := b.Raw(name)
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
		return string(raw)
	}
	return b.Text(name)
}
