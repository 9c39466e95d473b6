package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// IsStrict reports whether warnings reject a definition. The query parameter strict or the field of
// that name in the body decides this.
func IsStrict(r *http.Request, field json.RawMessage) (bool, error) {
	const wrong = "strict must be true or false, is %.40q"
	if len(field) > 0 && string(field) != "null" {
		var strict bool
		if json.Unmarshal(field, &strict) != nil {
			return false, flow.Errorf(flow.Invalid, wrong, string(field))
		}
		if strict {
			return true, nil
		}
	}
	text := r.URL.Query().Get("strict")
	if text == "" {
		return false, nil
	}
	strict, err := strconv.ParseBool(text)
	if err != nil {
		return false, flow.Errorf(flow.Invalid, wrong, text)
	}
	return strict, nil
}

// DefinitionProblems converts problems of a definition to their wire form.
func DefinitionProblems(problems definition.Problems) []wire.DefinitionProblem {
	var sent []wire.DefinitionProblem
	for _, p := range problems {
		sent = append(sent, wire.DefinitionProblem{File: p.File, Path: p.Path, Line: p.Line,
			Column: p.Column, Severity: string(p.Severity), Message: p.Msg})
	}
	return sent
}
