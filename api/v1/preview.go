package v1

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Values says how much of the values of users is answered.
type Values struct {
	Values string `query:"values" enum:"full,preview,none" default:"full" doc:"full: values as they are; preview: each as {bytes, value}, or when it is larger than 2 KiB as {bytes, preview, truncated} with the beginning of its text; none: as {bytes}. /v1/tasks/{task}/value has all of one"`
}

// Bounds of previews: of each value, and of all that is shown of shared together.
const (
	previewBytes  = 2 << 10
	sharedPreview = 64 << 10
)

// cut makes previews of values, unless they are wanted as they are. Those that are not there stay so.
func (v *Values) cut(values ...*json.RawMessage) {
	if v.Values == "full" || v.Values == "" {
		return
	}
	for _, value := range values {
		if len(*value) > 0 {
			*value = v.preview(*value, previewBytes)
		}
	}
}

func (v *Values) preview(value json.RawMessage, most int) json.RawMessage {
	b := strconv.AppendInt([]byte(`{"bytes":`), int64(len(value)), 10)
	switch {
	case v.Values == "none" || most == 0:
	case len(value) <= most:
		b = append(append(b, `,"value":`...), value...)
	default:
		for most > 0 && !utf8.RuneStart(value[most]) {
			most--
		}
		b = append(expr.AppendQuote(append(b, `,"preview":`...), string(value[:most])), `,"truncated":true`...)
	}
	return append(b, '}')
}

func (v *Values) cutTask(t *wire.Task) {
	if v.Values == "full" || v.Values == "" {
		return
	}
	v.cut(&t.Params, &t.Result)
	shared, room := make(map[string]json.RawMessage, len(t.Shared)), sharedPreview // the state's own stays as it is
	for _, key := range slices.Sorted(maps.Keys(t.Shared)) {
		shared[key] = v.preview(t.Shared[key], min(previewBytes, room))
		room -= min(len(t.Shared[key]), previewBytes, room)
	}
	t.Shared = shared
	v.cutSteps(t.Active)
}

func (v *Values) cutSteps(steps []wire.Step) {
	for i := range steps {
		v.cut(&steps[i].Output, &steps[i].Details)
	}
}
