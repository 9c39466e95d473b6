package flow

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Limits keep one task from harming the others. Zero fields mean the default.
type Limits struct {
	Depth      int // of nested scopes
	Units      int // of one step
	Steps      int // of one task, over its whole life
	Window     int // attempts of one step in flight at once
	Deliveries int // of one attempt
	Events     int // of one decision
	Shared     int // bytes of the task's shared that a signal may add a key to
	Value      int // bytes of one output, one signal, the params, or an input put together of parts
}

// DefaultLimits are in force where Limits says nothing.
var DefaultLimits = Limits{
	Depth: 16, Units: 100_000, Steps: 1_000_000, Window: 2_000, Deliveries: 5, Events: 1_000, Value: 1 << 20, Shared: 64 << 20,
}

// OrDefault fills what is zero.
func (l Limits) OrDefault() Limits {
	d := DefaultLimits
	set := func(to *int, v int) {
		if v > 0 {
			*to = v
		}
	}
	set(&d.Depth, l.Depth)
	set(&d.Units, l.Units)
	set(&d.Steps, l.Steps)
	set(&d.Window, l.Window)
	set(&d.Deliveries, l.Deliveries)
	set(&d.Events, l.Events)
	set(&d.Value, l.Value)
	set(&d.Shared, l.Shared)
	return d
}

// checkValue refuses what is too large to be carried about, and what a store could not keep.
func (l Limits) checkValue(what string, v json.RawMessage) error {
	if len(v) > l.Value {
		return Errorf(Limit, "%s has %d bytes, more than the limit of %d; keep large data elsewhere and pass a reference", what, len(v), l.Value)
	}
	if !utf8.Valid(v) {
		return Errorf(Invalid, "%s is not UTF-8 text", what)
	}
	return nil
}

// Bounds of texts that others write: names (of workers, keys, requests) and errors, of one attempt or
// of all units of a step together.
const (
	maxName      = 256
	maxErrorText = 64 << 10
)

// text cuts a text of others to what an event may hold. What is not UTF-8 would come back from the
// journal as another text, so it is replaced before it goes in.
func text(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
