package flow

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// DecodeEvents decodes a journal row. The values of the events share the memory of the row.
func DecodeEvents(row []byte) ([]Event, error) {
	return DecodeEventsTo(make([]Event, 0, min(1+len(row)/64, 8)), row)
}

// DecodeEventsTo decodes a journal row like DecodeEvents, but reuses the memory of events that are
// no longer needed.
func DecodeEventsTo(room []Event, row []byte) ([]Event, error) {
	if events, ok := decodeRow(room[:0], row); ok {
		return events, nil
	}
	var r struct {
		Format int     `json:"f"`
		At     int64   `json:"t"`
		Events []Event `json:"e"`
	}
	if err := json.Unmarshal(row, &r); err != nil {
		return nil, fmt.Errorf("flow: a journal row cannot be read: %w", err)
	}
	if r.Format < 1 || r.Format > Format {
		return nil, fmt.Errorf("flow: a journal row has format %d, this version knows 1 to %d: "+
			"it was written by a newer Troupe", r.Format, Format)
	}
	for i := range r.Events {
		if r.Events[i].At == 0 {
			r.Events[i].At = r.At
		}
	}
	return r.Events, nil
}

// decodeRow decodes a row in the exact form that AppendEvents writes, in one pass that skips over
// values. It returns false for any other form.
func decodeRow(events []Event, row []byte) ([]Event, bool) {
	d := rowDecoder{b: row}
	d.expectToken(`{"f":`)
	format := d.readDigits()
	d.bad = d.bad || format < 1 || format > Format
	at := int64(0)
	d.readNumber("t", &at)
	d.expectToken(`,"e":[`)
	for !d.bad && !d.acceptToken("]") {
		if len(events) > 0 {
			d.expectToken(",")
		}
		events = append(events, Event{At: at})
		d.readEvent(events)
	}
	d.expectToken("}")
	return events, !d.bad && d.i == len(d.b)
}

type rowDecoder struct {
	b   []byte
	i   int
	bad bool
}

// acceptToken consumes a token if it is next.
func (d *rowDecoder) acceptToken(word string) bool {
	if len(d.b)-d.i < len(word) || string(d.b[d.i:d.i+len(word)]) != word {
		return false
	}
	d.i += len(word)
	return true
}

func (d *rowDecoder) expectToken(word string) {
	d.bad = d.bad || !d.acceptToken(word)
}

// readEvent decodes the last of the events. The fields have a fixed order. Texts that equal those
// of the previous event share its memory.
func (d *rowDecoder) readEvent(events []Event) {
	e, before := &events[len(events)-1], &Event{}
	if len(events) > 1 {
		before = &events[len(events)-2]
	}
	d.expectToken(`{"e":`)
	e.Type = EventType(d.readTextOr(string(before.Type)))
	d.readNumber("t", &e.At)
	d.readText("s", &e.Scope, before.Scope)
	d.readText("n", &e.Node, before.Node)
	d.readInt("v", &e.Visit)
	d.readInt("u", &e.Unit)
	d.readInt("a", &e.Attempt)
	d.readText("st", &e.Status, before.Status)
	d.readText("ac", &e.Action, before.Action)
	d.readText("nx", &e.Next, before.Next)
	d.readTrue("po", &e.Post)
	d.readValue("in", &e.Input)
	d.readText("ir", &e.InputRef, before.InputRef)
	d.readValue("ou", &e.Output)
	d.readText("er", &e.Error, before.Error)
	d.readValue("de", &e.Details)
	d.readValue("me", &e.Metrics)
	d.readText("re", &e.Reason, before.Reason)
	d.readInt("to", &e.Total)
	d.readInt("ix", &e.Index)
	d.readInt("ke", &e.Kept)
	d.readInt("si", &e.Since)
	d.readNumber("du", &e.Due)
	d.readText("ca", &e.Carrier, before.Carrier)
	d.readText("wo", &e.Worker, before.Worker)
	d.readText("ur", &e.URL, before.URL)
	d.readTrue("lo", &e.Log)
	d.readText("tk", &e.Token, before.Token)
	d.readNumber("ul", &e.Until)
	d.readText("no", &e.Note, before.Note)
	d.readText("k", &e.Key, before.Key)
	d.readText("by", &e.By, before.By)
	d.readText("ve", &e.Version, before.Version)
	d.readValue("pa", &e.Params)
	d.readValue("pm", &e.Permits)
	d.readText("og", &e.Origin, before.Origin)
	d.readTraced(&e.Traced)
	d.readText("rq", &e.Request, before.Request)
	d.expectToken("}")
}

func (d *rowDecoder) readTraced(t **Traced) {
	var v json.RawMessage
	if d.readValue("tr", &v); v != nil {
		d.bad = d.bad || json.Unmarshal(v, t) != nil
	}
}

// acceptField consumes the name of a field if it is next.
func (d *rowDecoder) acceptField(name string) bool {
	at := d.i + 2
	end := at + len(name)
	if len(d.b) < end+2 || d.b[d.i] != ',' || string(d.b[at:end]) != name || d.b[at-1] != '"' || d.b[end] != '"' || d.b[end+1] != ':' {
		return false
	}
	d.i = end + 2
	return true
}

func (d *rowDecoder) readText(name string, v *string, before string) {
	if d.acceptField(name) {
		*v = d.readTextOr(before)
	}
}

// readTextOr decodes a text. If it equals before, it returns before and allocates nothing.
func (d *rowDecoder) readTextOr(before string) string {
	text := d.readRaw()
	if n := len(text) - 2; n >= 0 && n == len(before) && string(text[1:1+n]) == before && strings.IndexByte(before, '\\') < 0 {
		return before
	}
	s, ok := expr.String(text)
	d.bad = d.bad || !ok
	return s
}

func (d *rowDecoder) readValue(name string, v *json.RawMessage) {
	if d.acceptField(name) {
		*v = d.readRaw()
	}
}

func (d *rowDecoder) readRaw() json.RawMessage {
	end := expr.End(d.b, d.i)
	if end < 0 {
		d.bad = true
		return nil
	}
	v := json.RawMessage(d.b[d.i:end:end])
	d.i = end
	return v
}

func (d *rowDecoder) readTrue(name string, v *bool) {
	if d.acceptField(name) {
		d.expectToken("true")
		*v = true
	}
}

func (d *rowDecoder) readInt(name string, v *int) {
	n := int64(*v)
	d.readNumber(name, &n)
	*v = int(n)
}

func (d *rowDecoder) readNumber(name string, v *int64) {
	if d.acceptField(name) {
		*v = d.readDigits()
	}
}

// readDigits decodes an integer in the form that strconv writes.
func (d *rowDecoder) readDigits() int64 {
	start := d.i
	for d.i < len(d.b) && (d.b[d.i] == '-' || '0' <= d.b[d.i] && d.b[d.i] <= '9') {
		d.i++
	}
	n, err := strconv.ParseInt(string(d.b[start:d.i]), 10, 64)
	d.bad = d.bad || err != nil
	return n
}
