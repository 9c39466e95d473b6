package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// graphBody is a request's body as this dialect reads it: names in any case and with or without
// underscores, unknown fields ignored, fields of the wrong type skipped (and counted as bad).
type graphBody struct {
	fields map[string]json.RawMessage
	bad    bool
	wrong  string // the first field that is of the wrong type
}

// readBody fails only for a body over the limit. What is no JSON object counts as empty, and bad.
func readBody(r *http.Request) (*graphBody, error) {
	b := &graphBody{fields: map[string]json.RawMessage{}}
	fields := map[string]json.RawMessage{}
	err := json.NewDecoder(r.Body).Decode(&fields)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, err
	}
	if err != nil {
		b.bad = true
		return b, nil
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // of two spellings the same one wins every time
		b.fields[fieldName(name)] = fields[name]
	}
	return b, nil
}

// readStrict is for the queue's routes, which refuse what the others overlook.
func readStrict(r *http.Request, into func(*graphBody)) error {
	b, err := readBody(r)
	if err != nil {
		return err
	}
	return b.strict(func() { into(b) })
}

func (b *graphBody) strict(read func()) error {
	read()
	if b.bad {
		return badRequest("bad request")
	}
	return nil
}

func fieldName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "")
}

// has says whether a field was sent with a value.
func (b *graphBody) has(name string) bool {
	v, ok := b.fields[fieldName(name)]
	return ok && !bytes.Equal(v, []byte("null"))
}

func (b *graphBody) raw(name string) json.RawMessage { return b.fields[fieldName(name)] }

func (b *graphBody) into(name string, v any) {
	if b.has(name) && json.Unmarshal(b.raw(name), v) != nil {
		b.bad, b.wrong = true, cmp.Or(b.wrong, name)
	}
}

// problem says what is bad to those who are told more than the original told.
func (b *graphBody) problem() error {
	if b.wrong == "" {
		return flow.Errorf(flow.Invalid, "the body must be a JSON object")
	}
	return flow.Errorf(flow.Invalid, "%s has a value of the wrong type", b.wrong)
}

func (b *graphBody) text(name string) string {
	var s string
	b.into(name, &s)
	return s
}

func (b *graphBody) number(name string) int {
	var n int
	b.into(name, &n)
	return n
}

func (b *graphBody) texts(name string) []string {
	var list []string
	b.into(name, &list)
	return list
}

// document reads a field that is text holding JSON, or that JSON itself.
func (b *graphBody) document(name string) string {
	raw := b.raw(name)
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
		return string(raw)
	}
	return b.text(name)
}

// queryNumber reads a number of the query; what is no number counts as absent.
func queryNumber(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return otherwise
	}
	return n
}

// paging reads which page is asked for. Nobody needs more than maxPageSize rows at once.
func paging(r *http.Request) (page, size int) {
	page, size = queryNumber(r, "page", 1), queryNumber(r, "page_size", 10)
	if page < 1 || page > maxPages {
		page = 1
	}
	if size < 1 {
		size = 10
	}
	return page, min(size, maxPageSize)
}

const (
	maxPageSize = 1_000
	maxPages    = 1 << 40
)

type graphPage[T any] struct {
	Data  []T `json:"data"`
	Total int `json:"total"`
	Page  int `json:"page"`
	Size  int `json:"size"`
}

func writePage[T any](w http.ResponseWriter, rows []T, total, page, size int) error {
	if rows == nil {
		rows = []T{}
	}
	writeJSON(w, http.StatusOK, graphPage[T]{rows, total, page, size})
	return nil
}
