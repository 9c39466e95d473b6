package define

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Input declares one input of the flow's tasks. The form is a text such as "int", "optional text"
// or "int = 3 (how many at once)". It may also be a value whose JSON describes the input, such as
// map[string]any{"type": "int", "min": 1}. A flow that declares inputs accepts no others.
func (b *Builder) Input(name string, form any) *Builder {
	text, err := json.Marshal(form)
	if err != nil {
		b.recordError("input %s: %w", name, err)
		return b
	}
	one := append(append(expr.AppendQuote([]byte{'{'}, name), ':'), text...)
	b.definition.Inputs.Raw = expr.Merge(b.definition.Inputs.Raw, append(one, '}'))
	return b
}

// Inputs declares all inputs at once: a JSON Schema, or an object from names to forms.
func (b *Builder) Inputs(schema json.RawMessage) *Builder {
	if b.definition.Inputs.Raw = expr.Compact(schema); b.definition.Inputs.Raw == nil {
		b.recordError("the inputs are no JSON")
	}
	return b
}
