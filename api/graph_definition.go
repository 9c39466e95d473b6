package api

import (
	"bytes"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// definitionOf takes YAML if there is some, else JSON, and refuses what no task could run, with
// everything that is wrong. What is kept is JSON: as it was sent, or made from the YAML.
func (g *graph) definitionOf(b *graphBody) ([]byte, error) {
	if y := b.text("DefinitionYAML"); y != "" {
		text, err := flow.YAMLToJSON([]byte(y))
		if err != nil {
			return nil, badRequest("invalid yaml: " + err.Error())
		}
		return text, g.refuse(flow.ParseYAML([]byte(y)))
	}
	text := []byte(b.document("DefinitionJSON"))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, badRequest(noStart)
	}
	return text, g.refuse(flow.ParseJSON(text))
}

// refuse tells what is wrong with a definition that was parsed.
func (g *graph) refuse(d *flow.Definition, err error) error {
	if d == nil {
		return err
	}
	if d.Start == "" && d.Mode == "" && d.Profile == "" { // a dag has to say that it is one
		return badRequest(noStart)
	}
	_, problems := flow.Compile(d, g.limits)
	if problems.Err() == nil {
		return nil
	}
	errs := slices.DeleteFunc(problems, func(p flow.Problem) bool { return p.Severity != flow.SeverityError })
	if len(errs) == 1 && errs[0].Msg == noStart {
		return badRequest(noStart)
	}
	return errs
}

// noStart is what the first clients are told about a flow that does not say where to begin.
const noStart = "no start"
