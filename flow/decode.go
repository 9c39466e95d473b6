package flow

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// DecodeEvents reads a journal row. The events' values share its bytes.
func DecodeEvents(row []byte) ([]Event, error) {
	return DecodeEventsTo(make([]Event, 0, min(1+len(row)/64, 8)), row)
}

// DecodeEventsTo is DecodeEvents into the memory of events that are no longer needed.
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
		return nil, fmt.Errorf("flow: a journal row has format %d, this version knows 1 to %d: it was written by a newer Troupe", r.Format, Format)
	}
	for i := range r.Events {
		if r.Events[i].At == 0 {
			r.Events[i].At = r.At
		}
	}
	return r.Events, nil
}

// decodeRow reads a row in the very form that AppendEvents writes, in one pass that only walks over values.
// Of anything else it is false.
func decodeRow(events []Event, row []byte) ([]Event, bool) {
	d := rowDecoder{b: row}
	d.word(`{"f":`)
	format := d.digits()
	d.bad = d.bad || format < 1 || format > Format
	at := int64(0)
	d.number("t", &at)
	d.word(`,"e":[`)
	for !d.bad && !d.has("]") {
		if len(events) > 0 {
			d.word(",")
		}
		events = append(events, Event{At: at})
		d.event(events)
	}
	d.word("}")
	return events, !d.bad && d.i == len(d.b)
}

type rowDecoder struct {
	b   []byte
	i   int
	bad bool
}

// has moves behind a word if it is next.
func (d *rowDecoder) has(word string) bool {
	if len(d.b)-d.i < len(word) || string(d.b[d.i:d.i+len(word)]) != word {
		return false
	}
	d.i += len(word)
	return true
}

func (d *rowDecoder) word(word string) {
	d.bad = d.bad || !d.has(word)
}

// event reads the last of the events, whose fields have an order. Texts that the one before has too are not
// kept twice.
func (d *rowDecoder) event(events []Event) {
	e, before := &events[len(events)-1], &Event{}
	if len(events) > 1 {
		before = &events[len(events)-2]
	}
	d.word(`{"e":`)
	e.Type = EventType(d.textOr(string(before.Type)))
	d.number("t", &e.At)
	d.text("s", &e.Scope, before.Scope)
	d.text("n", &e.Node, before.Node)
	d.int("v", &e.Visit)
	d.int("u", &e.Unit)
	d.int("a", &e.Attempt)
	d.text("st", &e.Status, before.Status)
	d.text("ac", &e.Action, before.Action)
	d.text("nx", &e.Next, before.Next)
	d.yes("po", &e.Post)
	d.value("in", &e.Input)
	d.text("ir", &e.InputRef, before.InputRef)
	d.value("ou", &e.Output)
	d.text("er", &e.Error, before.Error)
	d.value("de", &e.Details)
	d.value("me", &e.Metrics)
	d.text("re", &e.Reason, before.Reason)
	d.int("to", &e.Total)
	d.int("ix", &e.Index)
	d.int("ke", &e.Kept)
	d.int("si", &e.Since)
	d.number("du", &e.Due)
	d.text("ca", &e.Carrier, before.Carrier)
	d.text("wo", &e.Worker, before.Worker)
	d.text("ur", &e.URL, before.URL)
	d.yes("lo", &e.Log)
	d.text("tk", &e.Token, before.Token)
	d.number("ul", &e.Until)
	d.text("no", &e.Note, before.Note)
	d.text("k", &e.Key, before.Key)
	d.text("by", &e.By, before.By)
	d.text("ve", &e.Version, before.Version)
	d.value("pa", &e.Params)
	d.value("pm", &e.Permits)
	d.text("og", &e.Origin, before.Origin)
	d.traced(&e.Traced)
	d.text("rq", &e.Request, before.Request)
	d.word("}")
}

func (d *rowDecoder) traced(t **Traced) {
	var v json.RawMessage
	if d.value("tr", &v); v != nil {
		d.bad = d.bad || json.Unmarshal(v, t) != nil
	}
}

// field moves behind the name of a field if it is next.
func (d *rowDecoder) field(name string) bool {
	at := d.i + 2
	end := at + len(name)
	if len(d.b) < end+2 || d.b[d.i] != ',' || string(d.b[at:end]) != name || d.b[at-1] != '"' || d.b[end] != '"' || d.b[end+1] != ':' {
		return false
	}
	d.i = end + 2
	return true
}

func (d *rowDecoder) text(name string, v *string, before string) {
	if d.field(name) {
		*v = d.textOr(before)
	}
}

// textOr reads a text, which may be the one it is given.
func (d *rowDecoder) textOr(before string) string {
	text := d.raw()
	if n := len(text) - 2; n >= 0 && n == len(before) && string(text[1:1+n]) == before && strings.IndexByte(before, '\\') < 0 {
		return before
	}
	s, ok := expr.String(text)
	d.bad = d.bad || !ok
	return s
}

func (d *rowDecoder) value(name string, v *json.RawMessage) {
	if d.field(name) {
		*v = d.raw()
	}
}

func (d *rowDecoder) raw() json.RawMessage {
	end := expr.End(d.b, d.i)
	if end < 0 {
		d.bad = true
		return nil
	}
	v := json.RawMessage(d.b[d.i:end:end])
	d.i = end
	return v
}

func (d *rowDecoder) yes(name string, v *bool) {
	if d.field(name) {
		d.word("true")
		*v = true
	}
}

func (d *rowDecoder) int(name string, v *int) {
	n := int64(*v)
	d.number(name, &n)
	*v = int(n)
}

func (d *rowDecoder) number(name string, v *int64) {
	if d.field(name) {
		*v = d.digits()
	}
}

// digits reads a whole number as strconv writes it.
func (d *rowDecoder) digits() int64 {
	start := d.i
	for d.i < len(d.b) && (d.b[d.i] == '-' || '0' <= d.b[d.i] && d.b[d.i] <= '9') {
		d.i++
	}
	n, err := strconv.ParseInt(string(d.b[start:d.i]), 10, 64)
	d.bad = d.bad || err != nil
	return n
}
