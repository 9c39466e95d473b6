package render

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/payload"
)

// Values selects the form of the values of users in an answer.
type Values struct {
	Values string `query:"values" enum:"full,preview,none" default:"full" doc:"Form of the values. full: complete. preview: {bytes, value}, or {bytes, preview, truncated} with the first part of a value over 2 KiB. none: {bytes}. /v1/tasks/{task}/value returns a complete one."`
}

// These are the limits of previews in bytes: of each value, and of all values of shared.
const (
	previewBytes  = 2 << 10
	sharedPreview = 64 << 10
)

// CutValues replaces values by previews, unless full values are requested. Missing values stay
// missing.
func (v *Values) CutValues(p *payload.Store, values ...*json.RawMessage) {
	if v.Values == "full" || v.Values == "" {
		return
	}
	for _, value := range values {
		if len(*value) > 0 {
			*value = v.previewValue(p, *value, previewBytes)
		}
	}
}

// previewValue returns the preview of a value. It only reads the beginning of a value in the
// payload store. If the value cannot be read, the preview contains the reason.
func (v *Values) previewValue(p *payload.Store, value json.RawMessage, most int) json.RawMessage {
	size := p.Size(value)
	b := strconv.AppendInt([]byte(`{"bytes":`), int64(size), 10)
	if v.Values == "none" || most == 0 {
		return append(b, '}')
	}
	read := func() ([]byte, error) { return p.Begin(context.Background(), value, most+1) }
	if size <= most {
		read = func() ([]byte, error) { return p.Whole(value) }
	}
	text, err := read()
	switch {
	case err != nil:
		b = append(expr.AppendQuote(append(b, `,"preview":`...), err.Error()), `,"truncated":true`...)
	case size <= most:
		b = append(append(b, `,"value":`...), text...)
	default:
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		b = append(expr.AppendQuote(append(b, `,"preview":`...), string(text[:most])), `,"truncated":true`...)
	}
	return append(b, '}')
}

// CutTask replaces the values of a task by previews.
func (v *Values) CutTask(p *payload.Store, t *wire.Task) {
	if v.Values == "full" || v.Values == "" {
		return
	}
	v.CutValues(p, &t.Params, &t.Result)
	// a copy, because the map belongs to the state
	shared, room := make(map[string]json.RawMessage, len(t.Shared)), sharedPreview
	for _, key := range slices.Sorted(maps.Keys(t.Shared)) {
		shared[key] = v.previewValue(p, t.Shared[key], min(previewBytes, room))
		room -= min(p.Size(t.Shared[key]), previewBytes, room)
	}
	t.Shared = shared
	v.CutSteps(p, t.Active)
}

// CutSteps replaces the values of steps by previews.
func (v *Values) CutSteps(p *payload.Store, steps []wire.Step) {
	for i := range steps {
		v.CutValues(p, &steps[i].Output, &steps[i].Details)
	}
}
