package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/persistence"
)

// Strictness holds the parameter that turns warnings of a definition into errors.
type Strictness struct {
	Strict bool `query:"strict" doc:"true: warnings are errors, too"`
}

type publishAsInput struct {
	FlowPath
	Strictness
	After   int    `query:"after" default:"-1" minimum:"-1" doc:"number of the newest version that is known, 0 = there is none: a conflict (409) when there is another one; absent = whatever is there"`
	RawBody []byte `contentType:"application/yaml"`
}

type publishInput struct {
	Slug string `query:"slug" maxLength:"128" doc:"what the flow is addressed by; else it is made from the definition's name"`
	Strictness
	RawBody []byte `contentType:"application/yaml"`
}

type validateInput struct {
	Strictness
	Graph   bool   `query:"graph" doc:"true: answers with the graph, too, as far as the definition can be understood"`
	RawBody []byte `contentType:"application/yaml"`
}

type publishAnswer = statusResponse[wire.Published]

func (h *flowHandler) publishAs(ctx context.Context, in *publishAsInput) (*publishAnswer, error) {
	d, err := readDefinition(ctx, in.RawBody)
	if err != nil {
		return nil, err
	}
	if d.slug != "" && d.slug != in.Flow {
		return nil, newInvalidError("body.slug", "leave it out, or send the same one",
			"the path says %.140q, the body %.140q", in.Flow, d.slug)
	}
	d.slug, d.strict = in.Flow, d.strict || in.Strict
	if in.After >= 0 {
		d.after = &in.After
	}
	return h.publishDefinition(ctx, "path.flow", d)
}

func (h *flowHandler) publishFlow(ctx context.Context, in *publishInput) (*publishAnswer, error) {
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

func (h *flowHandler) publishDefinition(ctx context.Context, where string, d *sentDefinition) (*publishAnswer, error) {
	unnamed := d.slug == ""
	if unnamed {
		d.slug = SlugFor(d.text)
	}
	p := h.toPublication(d)
	p.Now, p.After = h.engine.Now().UnixMilli(), d.after
	ready, problems, err := persistence.Prepare(ctx, h.store, p)
	switch {
	case err != nil:
		return nil, err
	case ready == nil:
		return nil, locateError("body", problems)
	}
	if unnamed && d.slug == "" {
		return nil, newInvalidError("query.slug",
			"send slug=…, use PUT /v1/flows/{flow}, or give the definition a name",
			"nothing says what the flow is to be addressed by")
	}
	if err := persistence.CheckSlug(d.slug); err != nil {
		return nil, locateError(where, err)
	}
	done, err := persistence.PublishPrepared(ctx, h.store, p, ready)
	if errors.Is(err, persistence.ErrOvertaken) {
		return nil, &locatedError{where: "query.after",
			hint: "look at what was published, and publish after that",
			err: flow.Errorf(flow.Conflict, "version %d of %s is no longer the newest one",
				*d.after, d.slug)}
	}
	var f *persistence.Flow
	if err == nil {
		f, err = h.store.Flow(ctx, done.Version.FlowID)
	}
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, &locatedError{where: where, hint: "publish it again, if it is still wanted",
			err: flow.Errorf(flow.Conflict, "the flow %s was deleted while this was published", d.slug)}
	}
	if err != nil {
		return nil, err
	}
	published := wire.Published{Created: done.Created, Flow: toFlow(f),
		Version: toVersion(f, done.Version), Warnings: api.DefinitionProblems(done.Warnings)}
	published.Version.Inputs, err = h.catalog.inputsOf(ctx, done.Version)
	return &publishAnswer{statusOf(done.Created), published}, err
}

func (h *flowHandler) validateDefinition(ctx context.Context, in *validateInput) (*bodyResponse[wire.Validation], error) {
	d, err := readDefinition(ctx, in.RawBody)
	if err != nil {
		return nil, err
	}
	d.strict = d.strict || in.Strict
	sketch, problems, err := persistence.Sketch(ctx, h.store, h.toPublication(d))
	if err != nil {
		return nil, err
	}
	answer := wire.Validation{Valid: problems.Err() == nil, Problems: []wire.DefinitionProblem{}}
	answer.Problems = append(answer.Problems, api.DefinitionProblems(problems)...)
	if in.Graph && sketch != nil && sketch.Plan != nil {
		answer.Graph = toGraph(sketch.Plan, sketch.Definition.NodeSpots())
	}
	return &bodyResponse[wire.Validation]{answer}, nil
}

func (h *flowHandler) toPublication(d *sentDefinition) persistence.Publication {
	return persistence.Publication{Slug: d.slug, Definition: d.text, Limits: h.limits,
		Secret: h.checkSecret, Func: h.checkFunc, Strict: d.strict}
}

func looksLikeJSON(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n\ufeff"), []byte("{"))
}

// sentDefinition is a definition to be published: JSON or YAML.
type sentDefinition struct {
	slug   string
	text   []byte
	strict bool
	after  *int // newest version number that the caller knows; nil accepts any
}

// readDefinition reads the body as a definition. A body with the field definition, which no
// definition has, is a wire.Publish.
func readDefinition(ctx context.Context, sent []byte) (*sentDefinition, error) {
	kind, err := mediaType(ctx)
	if err != nil {
		return nil, err
	}
	text := bytes.Clone(sent) // the framework reuses its buffer
	if kind == "json" && !looksLikeJSON(text) {
		return nil, newInvalidError("body", "send the definition as a JSON object, or YAML with "+
			"Content-Type: application/yaml", "the body is no JSON object")
	}
	var fields map[string]json.RawMessage
	if kind == "yaml" || json.Unmarshal(text, &fields) != nil || fields["definition"] == nil {
		return &sentDefinition{text: text}, nil // the parser reports faults in more detail
	}
	return openEnvelope(fields)
}

func openEnvelope(fields map[string]json.RawMessage) (*sentDefinition, error) {
	for name := range fields {
		if name != "slug" && name != "strict" && name != "definition" {
			return nil, newInvalidError("body", "known are: slug, strict, definition", "there is no field %.80q beside definition", name)
		}
	}
	d := &sentDefinition{text: definitionText(fields["definition"])}
	if raw := fields["slug"]; raw != nil && json.Unmarshal(raw, &d.slug) != nil {
		return nil, newInvalidError("body.slug", "send a text", "the slug is no text")
	}
	if raw := fields["strict"]; raw != nil && json.Unmarshal(raw, &d.strict) != nil {
		return nil, newInvalidError("body.strict", "send true or false", "strict is neither")
	}
	return d, nil
}

// mediaType returns json or yaml; "" if the client sends no type.
func mediaType(ctx context.Context) (string, error) {
	x := ctx.Value(exchangeKey{}).(httpExchange)
	header := x.r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(header)
	switch {
	case header == "", isForm(x.r):
		return "", nil
	case err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")):
		return "json", nil
	case err == nil && (strings.HasSuffix(kind, "/yaml") || strings.HasSuffix(kind, "/x-yaml") || kind == "text/plain"):
		return "yaml", nil
	}
	return "", newInvalidError("header.Content-Type", "send application/json or application/yaml",
		"a definition cannot be read from %.80q", header)
}

// SlugFor makes a slug from the definition's name; "" if that is not possible.
func SlugFor(text []byte) string {
	d, _ := define.Parse(text)
	if d == nil {
		return ""
	}
	return slugOf(d.Name)
}

// slugOf keeps the characters of a name that a slug may have, and replaces the rest by dashes.
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

// definitionJSON returns a definition as JSON; unchanged if it is JSON already.
func definitionJSON(text []byte) json.RawMessage {
	if json.Valid(text) {
		return text
	}
	converted, err := define.YAMLToJSON(text)
	if err != nil { // accepted by another release: show its text
		converted, _ = json.Marshal(string(text)) // a string can always be marshaled
	}
	return converted
}
