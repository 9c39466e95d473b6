package api

import (
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// definitionOf takes YAML if there is some, else JSON, and refuses what no task could run, with
// everything that is wrong. What is kept is JSON: as it was sent, or made from the YAML.
func (g *graph) definitionOf(b *graphBody) ([]byte, error) {
	text := b.document("DefinitionJSON")
	source := text
	if y := b.text("DefinitionYAML"); y != "" {
		converted, err := flow.YAMLToJSON([]byte(y))
		if err != nil {
			return nil, badRequest("invalid yaml: " + err.Error())
		}
		text, source = string(converted), y
	}
	if strings.TrimSpace(text) == "" {
		return nil, badRequest(noStart)
	}
	_, problems := flow.CompileText([]byte(source), g.limits)
	if err := problems.Err(); err != nil {
		return nil, refusal(problems)
	}
	return []byte(text), nil
}

// noStart is what the first clients are told about a flow that does not say where to begin.
const noStart = "no start"

func refusal(problems flow.Problems) error {
	var errs flow.Problems
	for _, p := range problems {
		if p.Severity == flow.SeverityError {
			errs = append(errs, p)
		}
	}
	if len(errs) == 1 && errs[0].Msg == noStart {
		return badRequest(noStart)
	}
	return badRequest(errs.Error())
}
