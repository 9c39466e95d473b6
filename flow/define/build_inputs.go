package define

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Input declares one of the things that a task is started with. The form is a text such as "int",
// "optional text" or "int = 3 (how many at once)", or what becomes the JSON of a form that
// describes it, such as map[string]any{"type": "int", "min": 1}. A flow that declares one takes no
// others.
func (b *Builder) Input(name string, form any) *Builder {
	text, err := json.Marshal(form)
	if err != nil {
		b.recordError("input %s: %w", name, err)
		return b
	}
	one := append(append(expr.AppendQuote([]byte{'{'}, name), ':'), text...)
	b.definition.Inputs.raw = expr.Merge(b.definition.Inputs.raw, append(one, '}'))
	return b
}

// Inputs declares all of them at once: a JSON Schema, or an object of forms by name.
func (b *Builder) Inputs(schema json.RawMessage) *Builder {
	if b.definition.Inputs.raw = expr.Compact(schema); b.definition.Inputs.raw == nil {
		b.recordError("the inputs are no JSON")
	}
	return b
}
