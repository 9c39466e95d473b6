package flow

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Values that a decision creates may be as large as values from outside: the result of an
// expression, a combined input, or an answer merged into an existing value. Env.Refer returns
// references for such values, which replace them in the events and in the state. Values from
// outside arrive as references already.

// referValues replaces large values of an event by references.
func (d *decider) referValues(e *Event) {
	switch e.Type {
	case StepEnded:
		e.Output = d.env.Refer(e.Output)
		if e.Post {
			e.Input = d.largeParts(e)
		}
	case SignalReceived:
		e.Output = d.env.Refer(e.Output)
		if len(e.Input) > 0 {
			e.Input = d.env.Refer(e.Input)
		}
	case AttemptEnded, ExternalJobEnded, StepRecorded:
		e.Output = d.env.Refer(e.Output)
	}
}

// referInput replaces large parts in the input of a step that is about to be entered. Even a part
// of a large value may be large.
func (d *decider) referInput(sc *Scope, e *Event, params json.RawMessage) {
	if d.env.Refer == nil {
		return
	}
	if e.InputRef == "" {
		e.Input = d.env.Refer(e.Input)
		return
	}
	v := sc.resolveText(e.InputRef, params)
	if ref := d.env.Refer(v); !bytes.Equal(ref, v) {
		e.Input, e.InputRef = ref, ""
	}
}

// largeParts returns references for the large parts that an output_map takes from an output, by key
// of shared. It returns nil if there are none.
func (d *decider) largeParts(e *Event) json.RawMessage {
	st := d.s.activeStep(e.Address())
	if st == nil || len(st.Node.Post.OutputMap) == 0 {
		return nil
	}
	parts := map[string]json.RawMessage{}
	st.eachPost(st.stepResult(e), func(key string, v json.RawMessage) {
		delete(parts, key)
		if ref := d.env.Refer(v); !bytes.Equal(ref, v) {
			parts[key] = ref
		}
	})
	if len(parts) == 0 {
		return nil
	}
	b := []byte{'{'}
	for i, key := range slices.Sorted(maps.Keys(parts)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(expr.AppendQuote(b, key), ':'), parts[key]...)
	}
	return append(b, '}')
}

// referenceOr returns the value for a key of shared when a step ends: v, or the reference that the
// event holds for it.
func referenceOr(e *Event, key string, v json.RawMessage) json.RawMessage {
	if ref, there := expr.Field(e.Input, key); there {
		return ref
	}
	return v
}

// equalValues reports whether two values are equal, comparing the contents of references.
func (sc *Scope) equalValues(a, b json.RawMessage) bool {
	a, b = expr.Compact(a), expr.Compact(b)
	if bytes.Equal(a, b) || sc.Plan.contents == nil {
		return bytes.Equal(a, b)
	}
	_, _, of := sc.Plan.contents.Glimpse(a, 0)
	_, _, other := sc.Plan.contents.Glimpse(b, 0)
	return of == other
}
