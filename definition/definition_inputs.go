package definition

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Inputs declare the inputs of a task, either by name or by one JSON Schema (2020-12) with type:
// object and properties. By name each has a type such as text, optional int, list of text, int = 3
// or one of a | b, or an object that describes it.
type Inputs struct {
	Raw json.RawMessage // as written; nil for none
}

// IsZero reports whether nothing was written.
func (in Inputs) IsZero() bool { return in.Raw == nil }

// MarshalJSON encodes them as written.
func (in Inputs) MarshalJSON() ([]byte, error) { return in.Raw, nil }

// Read returns the parsed declaration and its problems. The declaration is nil if there is none or
// it is invalid.
func (in Inputs) Read() (*types.Inputs, []types.Problem) {
	if in.IsZero() {
		return nil, nil
	}
	return types.Read(in.Raw)
}

// Named returns the declared names alone, for a declaration with problems. It is nil if nothing is
// declared or not even the names can be read.
func (in Inputs) Named() *types.Inputs {
	if in.IsZero() {
		return nil
	}
	return types.Named(in.Raw)
}

func (in *Inputs) decodeValue(from decoder, v textValue, at *Place) {
	raw := v.rawJSON()
	if expr.Deeper(raw, flow.DefaultLimits.Levels) {
		from.addProblem(SeverityError, at, v.position(), "nests arrays and objects deeper than %d levels", flow.DefaultLimits.Levels)
		return
	}
	from.refuseDuplicatesInside(v, at)
	in.Raw = raw
}

// Below returns the place at the end of a path of keys below this one. Elements of lists are
// written as [2].
func (p *Place) Below(path []string) *Place {
	for _, key := range path {
		p = p.childPlace(key)
	}
	return p
}
