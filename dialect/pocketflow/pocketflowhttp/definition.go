package pocketflowhttp

import (
	"bytes"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/persistence"
)

// definitionOf prepares a version from the YAML if there is some, otherwise from the JSON. It
// rejects a definition that no task could run, with all its problems. The stored form is JSON as it
// was sent, or converted from the YAML, with the profile of this dialect's clients. slug is the
// slug of the version's flow, or "" if the version has no flow.
func (g *graph) definitionOf(ctx context.Context, b *api.Body, slug string, strict bool) (*persistence.Prepared, error) {
	p := persistence.Publication{Slug: slug, Strict: strict,
		Definition: []byte(b.Document("DefinitionJSON")), Limits: g.Limits, Secret: g.Secret,
		Func: g.Func, Parse: definition.ParseJSON, Profile: definition.ProfilePocketflow}
	if y := b.Text("DefinitionYAML"); y != "" {
		if _, err := definition.YAMLToJSON([]byte(y)); err != nil {
			return nil, badRequest("invalid yaml: " + err.Error())
		}
		p.Definition, p.Parse = []byte(y), definition.ParseYAML
	}
	d, _ := p.Parse(p.Definition)
	// a dag must declare its mode
	if len(bytes.TrimSpace(p.Definition)) == 0 || d != nil && d.Start == "" && d.Mode == "" && !namesProfileOfDags(d) {
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
func namesProfileOfDags(d *definition.Definition) bool {
	return d.Profile != "" && d.Profile != definition.ProfileTroupe && d.Profile != definition.ProfilePocketflow
}

// definitionError converts problems of a definition to an error.
func definitionError(problems definition.Problems) error {
	errs := slices.DeleteFunc(problems, func(p definition.Problem) bool { return p.Severity != definition.SeverityError })
	if len(errs) == 1 && errs[0].Msg == noStart {
		return badRequest(noStart)
	}
	return errs
}

// noStart is the message that the first clients expect for a flow without a start.
const noStart = "no start"
