package define

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Inputs say what a task is started with: an object of names, each with a type such as text,
// optional int, list of text, int = 3 or one of a | b, or with an object that describes it; or one
// JSON Schema (2020-12) that says type: object and properties.
type Inputs struct{ raw json.RawMessage }

// IsZero says that nothing was written.
func (in Inputs) IsZero() bool { return in.raw == nil }

// MarshalJSON writes them as they are read.
func (in Inputs) MarshalJSON() ([]byte, error) { return in.raw, nil }

// Read says what they mean, and what is wrong with them. Nil: nothing is declared, or what is means
// nothing.
func (in Inputs) Read() (*types.Inputs, []types.Problem) {
	if in.IsZero() {
		return nil, nil
	}
	return types.Read(in.raw)
}

// Named is what is known of those that Read finds something wrong with: their names. Nil: nothing
// is declared, or not even that is known.
func (in Inputs) Named() *types.Inputs {
	if in.IsZero() {
		return nil
	}
	return types.Named(in.raw)
}

func (in *Inputs) decodeValue(from decoder, v textValue, at *Place) {
	raw := v.rawJSON()
	if expr.Deeper(raw, flow.DefaultLimits.Levels) {
		from.addProblem(SeverityError, at, v.position(), "nests arrays and objects deeper than %d levels", flow.DefaultLimits.Levels)
		return
	}
	from.refuseDuplicatesInside(v, at)
	in.raw = raw
}

// Below is the place that some keys lead to from another one, elements of lists as [2].
func (p *Place) Below(path []string) *Place {
	for _, key := range path {
		p = p.childPlace(key)
	}
	return p
}
