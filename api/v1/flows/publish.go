package flows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Strictness holds the query parameter that treats warnings as errors.
type Strictness struct {
	Strict bool `query:"strict" doc:"True to treat warnings as errors."`
}

type publishAsInput struct {
	catalog.FlowPath
	Strictness
	After   int    `query:"after" default:"-1" minimum:"-1" doc:"Number of the newest known version, 0 = none: a conflict (409) if there is a newer one; absent = no check."`
	RawBody []byte `contentType:"application/yaml"`
}

type publishInput struct {
	Slug string `query:"slug" maxLength:"128" doc:"Slug of the flow; the default is derived from the definition's name."`
	Strictness
	RawBody []byte `contentType:"application/yaml"`
}

type validateInput struct {
	Strictness
	Graph   bool   `query:"graph" doc:"True to include the graph, if the definition can be parsed."`
	RawBody []byte `contentType:"application/yaml"`
}

type publishAnswer = route.StatusResponse[wire.PublishResult]

func (h *Handler) publishAs(ctx context.Context, in *publishAsInput) (*publishAnswer, error) {
	d, err := readDefinition(ctx, in.RawBody)
	if err != nil {
		return nil, err
	}
	if d.slug != "" && d.slug != in.Flow {
		return nil, route.NewInvalidError("body.slug", "remove it, or send the same slug in both",
			"the path has the slug %.140q, the body has %.140q", in.Flow, d.slug)
	}
	d.slug, d.strict = in.Flow, d.strict || in.Strict
	if in.After >= 0 {
		d.after = &in.After
	}
	return h.publishDefinition(ctx, "path.flow", d)
}

func (h *Handler) publishFlow(ctx context.Context, in *publishInput) (*publishAnswer, error) {
	d, err := readDefinition(ctx, in.RawBody)
	if err != nil {
		return nil, err
	}
	d.strict = d.strict || in.Strict
	where := "body.slug"
	if in.Slug != "" {
		where, d.slug = "query.slug", in.Slug
	}
	return h.publishDefinition(ctx, where, d)
}

func (h *Handler) publishDefinition(ctx context.Context, where string, d *sentDefinition) (*publishAnswer, error) {
	unnamed := d.slug == ""
	if unnamed {
		d.slug = SlugFor(d.text)
	}
	p := h.toPublication(d)
	p.Now, p.After = h.Engine.Now().UnixMilli(), d.after
	ready, problems, err := persistence.Prepare(ctx, h.Store, p)
	switch {
	case err != nil:
		return nil, err
	case ready == nil:
		return nil, route.LocateError("body", problems)
	}
	if unnamed && d.slug == "" {
		return nil, route.NewInvalidError("query.slug",
			"send slug=…, use PUT /v1/flows/{flow}, or give the definition a name",
			"the flow has no slug")
	}
	if err := persistence.CheckSlug(d.slug); err != nil {
		return nil, route.LocateError(where, err)
	}
	done, err := persistence.PublishPrepared(ctx, h.Store, p, ready)
	if errors.Is(err, persistence.ErrOvertaken) {
		return nil, &route.LocatedError{Where: "query.after",
			Hint: "read the newest version, then publish with its number in after",
			Err: flow.Errorf(flow.Conflict, "version %d of %s is no longer the newest one",
				*d.after, d.slug)}
	}
	var f *persistence.Flow
	if err == nil {
		f, err = h.Store.Flow(ctx, done.Version.FlowID)
	}
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, &route.LocatedError{Where: where, Hint: "publish it again if you still need it",
			Err: flow.Errorf(flow.Conflict, "the flow %s was deleted during the publication", d.slug)}
	}
	if err != nil {
		return nil, err
	}
	published := wire.PublishResult{Created: done.Created, Flow: toFlow(f),
		Version: toVersion(f, done.Version), Warnings: api.DefinitionProblems(done.Warnings)}
	published.Version.Inputs, err = h.Catalog.InputsOf(ctx, done.Version)
	return &publishAnswer{Status: route.StatusOf(done.Created), Body: published}, err
}

func (h *Handler) validateDefinition(ctx context.Context, in *validateInput) (*route.Response[wire.Validation], error) {
	d, err := readDefinition(ctx, in.RawBody)
	if err != nil {
		return nil, err
	}
	d.strict = d.strict || in.Strict
	sketch, problems, err := persistence.Sketch(ctx, h.Store, h.toPublication(d))
	if err != nil {
		return nil, err
	}
	answer := wire.Validation{Valid: problems.Err() == nil, Problems: []wire.DefinitionProblem{}}
	answer.Problems = append(answer.Problems, api.DefinitionProblems(problems)...)
	if in.Graph && sketch != nil && sketch.Plan != nil {
		answer.Graph = toGraph(sketch.Plan, sketch.Definition.NodeSpots())
	}
	return &route.Response[wire.Validation]{Body: answer}, nil
}

func (h *Handler) toPublication(d *sentDefinition) persistence.Publication {
	return persistence.Publication{Slug: d.slug, Definition: d.text, Limits: h.Limits,
		Secret: h.CheckSecret, Func: h.CheckFunc, Strict: d.strict}
}

func looksLikeJSON(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n\ufeff"), []byte("{"))
}

// sentDefinition is a definition to be published: JSON or YAML.
type sentDefinition struct {
	slug   string
	text   []byte
	strict bool
	after  *int // newest version number that the caller knows; nil means any
}

// readDefinition reads a publish request. A body with the field definition is a
// wire.PublishRequest, because no definition has that field.
func readDefinition(ctx context.Context, sent []byte) (*sentDefinition, error) {
	kind, err := mediaType(ctx)
	if err != nil {
		return nil, err
	}
	text := bytes.Clone(sent) // the framework reuses its buffer
	if kind == "json" && !looksLikeJSON(text) {
		return nil, route.NewInvalidError("body", "send the definition as a JSON object, or YAML with "+
			"Content-Type: application/yaml", "the body is not a JSON object")
	}
	var fields map[string]json.RawMessage
	if kind == "yaml" || json.Unmarshal(text, &fields) != nil || fields["definition"] == nil {
		return &sentDefinition{text: text}, nil // the parser reports faults in detail
	}
	return openEnvelope(fields)
}

func openEnvelope(fields map[string]json.RawMessage) (*sentDefinition, error) {
	for name := range fields {
		if name != "slug" && name != "strict" && name != "definition" {
			return nil, route.NewInvalidError("body", "the known fields are slug, strict and definition", "there is no field %.80q", name)
		}
	}
	d := &sentDefinition{text: definitionText(fields["definition"])}
	if raw := fields["slug"]; raw != nil && json.Unmarshal(raw, &d.slug) != nil {
		return nil, route.NewInvalidError("body.slug", "send a text", "the slug is not a text")
	}
	if raw := fields["strict"]; raw != nil && json.Unmarshal(raw, &d.strict) != nil {
		return nil, route.NewInvalidError("body.strict", "send true or false", "strict is neither true nor false")
	}
	return d, nil
}

// mediaType returns json or yaml; "" if the request has no Content-Type.
func mediaType(ctx context.Context) (string, error) {
	x := route.ExchangeOf(ctx)
	header := x.Request.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(header)
	switch {
	case header == "", route.IsForm(x.Request):
		return "", nil
	case err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")):
		return "json", nil
	case err == nil && (strings.HasSuffix(kind, "/yaml") || strings.HasSuffix(kind, "/x-yaml") || kind == "text/plain"):
		return "yaml", nil
	}
	return "", route.NewInvalidError("header.Content-Type", "send application/json or application/yaml",
		"a definition cannot be read from %.80q", header)
}

// SlugFor derives a slug from the definition's name; "" if there is no valid one.
func SlugFor(text []byte) string {
	d, _ := definition.Parse(text)
	if d == nil {
		return ""
	}
	return slugOf(d.Name)
}

// slugOf converts a name to a slug. It replaces other characters by dashes.
func slugOf(name string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		}
		return '-'
	}, strings.ToLower(name))
	for strings.Contains(slug, "--") {
		slug = strings.ReplaceAll(slug, "--", "-")
	}
	return strings.TrimRight(strings.TrimLeft(slug[:min(len(slug), 128)], "-._"), "-")
}

// definitionJSON returns a definition as JSON. It returns JSON unchanged.
func definitionJSON(text []byte) json.RawMessage {
	if json.Valid(text) {
		return text
	}
	converted, err := definition.YAMLToJSON(text)
	if err != nil { // accepted by another release, so its text is shown
		converted, _ = json.Marshal(string(text)) // a string can always be marshaled
	}
	return converted
}
