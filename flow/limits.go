package flow

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Limits keep one task from harming the others. Zero fields mean the default.
type Limits struct {
	Depth      int // of nested scopes
	Units      int // of one step
	Steps      int // of one task, over its whole life
	Window     int // attempts of one step in flight at once
	Deliveries int // of one attempt
	Events     int // of one decision
	Shared     int // bytes of a scope's shared, and of what a step or branch makes of the outputs inside it
	Value      int // bytes of one output, one signal, the params, or an input put together of parts
	Levels     int // of arrays and objects inside each other, in any value; at most the default
}

// DefaultLimits are in force where Limits says nothing.
var DefaultLimits = Limits{
	Depth: 16, Units: 100_000, Steps: 1_000_000, Window: 2_000, Deliveries: 5, Events: 1_000, Value: 1 << 20, Shared: 64 << 20, Levels: 1_000,
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
	set(&d.Levels, min(l.Levels, d.Levels)) // a value deeper than ten times that cannot be read from the store again
	return d
}

// checkValue refuses what is too large or nested too deep to be carried about, and what a store could not keep.
func (l Limits) checkValue(what string, v json.RawMessage) error {
	if len(v) > l.Value {
		return Errorf(Limit, "%s has %d bytes, more than the limit of %d; keep large data elsewhere and pass a reference", what, len(v), l.Value)
	}
	if !utf8.Valid(v) {
		return Errorf(Invalid, "%s is not UTF-8 text", what)
	}
	if expr.Deeper(v, l.Levels) {
		return l.tooDeep(what)
	}
	return nil
}

func (l Limits) tooDeep(what string) error {
	return Errorf(Limit, "%s nests arrays and objects deeper than %d levels: make it flatter, or pass it as a text", what, l.Levels)
}

// Bounds of texts that others write: names (of flows, services, functions, labels, workers, keys, requests), errors, of
// one attempt or of all units of a step together, and what a flow says of itself.
const (
	MaxName        = 256
	MaxLabels      = 1000
	maxErrorText   = 64 << 10
	MaxDescription = 16 << 10
)

// text cuts a text of others to what an event may hold. What is not UTF-8 would come back from the
// journal as another text, so it is replaced before it goes in.
func text(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
