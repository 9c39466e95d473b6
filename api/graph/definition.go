package graph

import (
	"bytes"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/persistence"
)

// definitionOf takes YAML if there is some, else JSON, and refuses what no task could run, with
// everything that is wrong. What is kept is JSON: as it was sent, or made from the YAML, and with
// the profile of its clients. The slug is that of the flow it is a version of, "" if that has none.
func (g *graph) definitionOf(ctx context.Context, b *api.Body, slug string, strict bool) (*persistence.Prepared, error) {
	p := persistence.Publication{Slug: slug, Strict: strict, Definition: []byte(b.Document("DefinitionJSON")), Limits: g.Limits, Secret: g.Secret, Func: g.Func, Parse: define.ParseJSON, Profile: define.ProfilePocketflow}
	if y := b.Text("DefinitionYAML"); y != "" {
		if _, err := define.YAMLToJSON([]byte(y)); err != nil {
			return nil, badRequest("invalid yaml: " + err.Error())
		}
		p.Definition, p.Parse = []byte(y), define.ParseYAML
	}
	d, _ := p.Parse(p.Definition)
	if len(bytes.TrimSpace(p.Definition)) == 0 || d != nil && d.Start == "" && d.Mode == "" && !namesProfileOfDags(d) { // a dag has to say that it is one
		return nil, badRequest(noStart)
	}
	ready, problems, err := persistence.Prepare(ctx, g.Store, p)
	switch {
	case err != nil:
		return nil, err
	case ready == nil:
		return nil, definitionError(problems)
	}
	return ready, nil
}

// namesProfileOfDags reports whether a definition names a profile that only dags have.
func namesProfileOfDags(d *define.Definition) bool {
	return d.Profile != "" && d.Profile != define.ProfileTroupe && d.Profile != define.ProfilePocketflow
}

// definitionError tells what is wrong with a definition.
func definitionError(problems define.Problems) error {
	errs := slices.DeleteFunc(problems, func(p define.Problem) bool { return p.Severity != define.SeverityError })
	if len(errs) == 1 && errs[0].Msg == noStart {
		return badRequest(noStart)
	}
	return errs
}

// noStart is what the first clients are told about a flow that does not say where to begin.
const noStart = "no start"
