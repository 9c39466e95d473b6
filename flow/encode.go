package flow

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// eventsFormat names how journal rows are written. Rows of every format ever written are read.
const eventsFormat = 1

// AppendEvents adds events as one journal row: {"f":1,"t":…,"e":[…]}, where t is the time of those that
// have none. It is written and read by hand because it is on the path of every step and of every page of a history;
// a test holds both against encoding/json.
func AppendEvents(b []byte, events []Event) []byte {
	b = slices.Grow(b, roomFor(events))
	b = append(b, `{"f":`...)
	b = strconv.AppendInt(b, eventsFormat, 10)
	at := int64(0)
	if len(events) > 0 {
		at = events[0].At
	}
	b = appendNumber(b, "t", at)
	b = append(b, `,"e":[`...)
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEvent(b, &events[i], at)
	}
	return append(b, "]}"...)
}

// roomFor is how long the row of some events is at a guess.
func roomFor(events []Event) int {
	n := 32
	for i := range events {
		e := &events[i]
		n += 128 + len(e.Input) + len(e.Output) + len(e.Params) + len(e.Error)
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
	b = appendText(b, "re", e.Reason)
	b = appendNumber(b, "to", int64(e.Total))
	b = appendNumber(b, "ke", int64(e.Kept))
	b = appendNumber(b, "du", e.Due)
	b = appendText(b, "ca", e.Carrier)
	b = appendText(b, "wo", e.Worker)
	b = appendText(b, "ur", e.URL)
	b = appendTrue(b, "lo", e.Log)
	b = appendText(b, "tk", e.Token)
	b = appendNumber(b, "ul", e.Until)
	b = appendText(b, "no", e.Note)
	b = appendText(b, "k", e.Key)
	b = appendText(b, "ve", e.Version)
	b = appendRaw(b, "pa", e.Params)
	b = appendText(b, "rq", e.Request)
	return append(b, '}')
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
