package flow

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// formatBefore is the format of the previous release.
const formatBefore = max(Format-1, 1)

// Row is a journal row that is built decision by decision: {"f":1,"t":…,"e":[…]}. t is the time of
// events without a time of their own. Encoding and decoding are written by hand, because every step
// and every page of a history needs them. A test compares both with encoding/json.
type Row struct {
	// Format is the format of the row, at most the constant Format. 0 means the format that the
	// previous release can read.
	Format int

	b       []byte
	at      int64
	started bool
}

// Add adds events to the row.
func (r *Row) Add(events []Event) {
	if len(events) == 0 {
		return
	}
	r.b = slices.Grow(r.b, roomFor(events))
	if !r.started {
		r.writeHeader(events[0].At)
	}
	for i := range events {
		if last := len(r.b) - 1; r.b[last] != '[' {
			r.b = append(r.b, ',')
		}
		r.b = appendEvent(r.b, &events[i], r.at)
	}
}

func (r *Row) writeHeader(at int64) {
	r.at, r.started = at, true
	r.b = append(r.b, `{"f":`...)
	r.b = strconv.AppendInt(r.b, int64(max(r.Format, formatBefore)), 10)
	r.b = appendNumber(r.b, "t", at)
	r.b = append(r.b, `,"e":[`...)
}

// Len returns the current size of the row in bytes.
func (r *Row) Len() int { return len(r.b) }

// Bytes returns the finished row. Nothing may be added afterwards.
func (r *Row) Bytes() []byte {
	if !r.started {
		r.writeHeader(0)
	}
	return append(r.b, "]}"...)
}

// AppendEvents appends events as one row.
func AppendEvents(b []byte, events []Event) []byte {
	r := Row{b: b}
	r.Add(events)
	return r.Bytes()
}

// roomFor estimates the size of the row of some events.
func roomFor(events []Event) int {
	n := 32
	for i := range events {
		e := &events[i]
		n += 128 + len(e.Input) + len(e.Output) + len(e.Params) + len(e.Permits) + len(e.Error) + len(e.Details) + len(e.Metrics)
	}
	return n
}

func appendEvent(b []byte, e *Event, at int64) []byte {
	b = append(b, `{"e":"`...)
	b = append(b, e.Type...)
	b = append(b, '"')
	if e.At != at {
		b = appendNumber(b, "t", e.At)
	}
	b = appendText(b, "s", e.Scope)
	b = appendText(b, "n", e.Node)
	b = appendNumber(b, "v", int64(e.Visit))
	b = appendNumber(b, "u", int64(e.Unit))
	b = appendNumber(b, "a", int64(e.Attempt))
	b = appendText(b, "st", e.Status)
	b = appendText(b, "ac", e.Action)
	b = appendText(b, "nx", e.Next)
	b = appendTrue(b, "po", e.Post)
	b = appendRaw(b, "in", e.Input)
	b = appendText(b, "ir", e.InputRef)
	b = appendRaw(b, "ou", e.Output)
	b = appendText(b, "er", e.Error)
	b = appendRaw(b, "de", e.Details)
	b = appendRaw(b, "me", e.Metrics)
	b = appendText(b, "re", e.Reason)
	b = appendNumber(b, "to", int64(e.Total))
	b = appendNumber(b, "ix", int64(e.Index))
	b = appendNumber(b, "ke", int64(e.Kept))
	b = appendNumber(b, "si", int64(e.Since))
	b = appendNumber(b, "du", e.Due)
	b = appendText(b, "ca", e.Carrier)
	b = appendText(b, "wo", e.Worker)
	b = appendText(b, "ur", e.URL)
	b = appendTrue(b, "lo", e.Log)
	b = appendText(b, "tk", e.Token)
	b = appendNumber(b, "ul", e.Until)
	b = appendText(b, "no", e.Note)
	b = appendText(b, "k", e.Key)
	b = appendText(b, "by", e.By)
	b = appendText(b, "ve", e.Version)
	b = appendRaw(b, "pa", e.Params)
	b = appendRaw(b, "pm", e.Permits)
	b = appendText(b, "og", e.Origin)
	b = appendTraced(b, e.Traced)
	b = appendText(b, "rq", e.Request)
	return append(b, '}')
}

// appendTraced appends the trace context as encoded by encoding/json. It only runs at the start of
// some tasks.
func appendTraced(b []byte, t *Traced) []byte {
	if t == nil {
		return b
	}
	text, _ := json.Marshal(t) // cannot fail: texts and booleans
	return append(appendName(b, "tr"), text...)
}

func appendName(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func appendText(b []byte, name, v string) []byte {
	if v == "" {
		return b
	}
	return expr.AppendQuote(appendName(b, name), v)
}

func appendNumber(b []byte, name string, v int64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(appendName(b, name), v, 10)
}

func appendTrue(b []byte, name string, v bool) []byte {
	if !v {
		return b
	}
	return append(appendName(b, name), "true"...)
}

func appendRaw(b []byte, name string, v json.RawMessage) []byte {
	if len(v) == 0 {
		return b
	}
	return append(appendName(b, name), v...)
}
