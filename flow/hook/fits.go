package hook

import (
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Fits returns the problems of the names in params, compared with the inputs that the flow
// declares. Their values are known only when a delivery arrives.
func (h *Hook) Fits(in *types.Inputs) (problems Problems) {
	if in == nil || h.params == nil || h.params.kind != expr.KindObject {
		return nil
	}
	for _, f := range h.params.fields {
		if wrong := in.Reaches([]string{f.key}); wrong != "" {
			problems = append(problems, Problem{"params." + f.key, wrong})
		}
	}
	for _, input := range in.List() {
		named := slices.ContainsFunc(h.params.fields, func(f templateField) bool { return f.key == input.Name })
		if input.Required && !named {
			problems = append(problems, Problem{"params", "the flow needs the input " + input.Name})
		}
	}
	return problems
}
