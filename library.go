package troupe

import (
	"context"
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/api/v1/flows"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition/define"
	"github.com/troupe-engine/troupe/persistence"
)

type (
	// Flow is a named flow with its versions.
	Flow = wire.Flow
	// FlowVersion is one published version of a flow.
	FlowVersion = wire.Version
	// FlowGraph holds the nodes and edges of a version.
	FlowGraph = wire.Graph
	// FlowDiff lists what differs between two versions.
	FlowDiff = wire.FlowDiff
	// DeletedFlow reports what went with a deleted flow.
	DeletedFlow = wire.DeletedFlow
)

// Published is the result of a publication.
type Published struct {
	Version  string // id of the version
	Number   int
	Created  bool     // false if the newest version was the same
	Warnings Problems // parts that may not be intended
}

// Publish makes a definition (JSON or YAML) the newest version of the flow with this slug. The same
// definition again changes nothing. All problems of a definition are reported at once, as Problems.
// Warnings are logged; Apply returns them, and Strict makes errors of them.
func (e *Engine) Publish(ctx context.Context, slug string, definition []byte, options ...PublishOption) error {
	published, err := e.Apply(ctx, slug, definition, options...)
	if err != nil {
		return err
	}
	e.logWarnings(slug, published.Number, published.Warnings)
	return nil
}

func (e *Engine) logWarnings(slug string, version int, warnings Problems) {
	for _, w := range warnings {
		e.cfg.Logger.Warn("definition has a warning", "flow", slug, "version", version, "warning", w.String())
	}
}

// PublishOption is an option of a publication.
type PublishOption func(*persistence.Publication)

// Strict rejects a definition for warnings, too, such as a node that is never reached.
func Strict() PublishOption { return func(p *persistence.Publication) { p.Strict = true } }

// Apply publishes like Publish, and returns the result. If slug is "", it is derived from the
// definition's name.
func (e *Engine) Apply(ctx context.Context, slug string, definition []byte, options ...PublishOption) (*Published, error) {
	if slug == "" {
		slug = flows.SlugFor(definition)
	}
	p := persistence.Publication{Slug: slug, Definition: definition, Now: time.Now().UnixMilli(),
		Limits: e.cfg.Limits, Secret: e.secrets.Listed, Func: e.functions.Check}
	for _, set := range options {
		set(&p)
	}
	published, err := persistence.Publish(ctx, e.stores.Newest, p)
	if err != nil {
		return nil, toTypedError(err)
	}
	v := published.Version
	return &Published{Version: v.ID, Number: v.Number, Created: published.Created, Warnings: published.Warnings}, nil
}

// PublishFlow publishes a flow that was built in Go under its name, like Publish. Warnings are
// logged; ApplyFlow returns them, and Strict makes errors of them.
func (e *Engine) PublishFlow(ctx context.Context, b *define.Builder, options ...PublishOption) error {
	definition, err := readBuilder(b)
	if err != nil {
		return err
	}
	return e.Publish(ctx, flows.SlugFor(definition), definition, options...)
}

// ApplyFlow publishes a flow that was built in Go under its name, and returns the result with its
// warnings, like Apply.
func (e *Engine) ApplyFlow(ctx context.Context, b *define.Builder, options ...PublishOption) (*Published, error) {
	definition, err := readBuilder(b)
	if err != nil {
		return nil, err
	}
	return e.Apply(ctx, flows.SlugFor(definition), definition, options...)
}

// readBuilder returns the definition of a flow that was built in Go.
func readBuilder(b *define.Builder) ([]byte, error) {
	definition, err := b.JSON()
	if err != nil {
		return nil, &classifiedError{err.Error(), []error{err, ErrInvalid}}
	}
	return definition, nil
}

// Validate returns all problems of a definition, including warnings; the Err of Problems is nil if
// the definition can be published. Nothing is stored.
func (e *Engine) Validate(ctx context.Context, definition []byte) (Problems, error) {
	_, problems, err := persistence.Prepare(ctx, e.stores.Newest,
		persistence.Publication{Definition: definition, Limits: e.cfg.Limits,
			Secret: e.secrets.Listed, Func: e.functions.Check})
	return problems, err
}

// Flows lists flows, newest first.
func (e *flowCalls) Flows(ctx context.Context, p Paging) (*Page[Flow], error) {
	return withTypedError(e.client.Flows(ctx, p))
}

// Flow reads a flow by its slug or id.
func (e *flowCalls) Flow(ctx context.Context, flow string) (*Flow, error) {
	return withTypedError(e.client.Flow(ctx, flow))
}

// DeleteFlow deletes a flow with its versions. A flow with tasks is a conflict, unless tasks is
// true: then they are deleted, too.
func (e *flowCalls) DeleteFlow(ctx context.Context, flow string, tasks bool) (*DeletedFlow, error) {
	return withTypedError(e.client.DeleteFlow(ctx, flow, tasks))
}

// Versions lists a flow's versions, highest number first.
func (e *flowCalls) Versions(ctx context.Context, flow string, p Paging) (*Page[FlowVersion], error) {
	return withTypedError(e.client.Versions(ctx, flow, p))
}

// Version reads a version with its definition; number 0 is the newest published version.
func (e *flowCalls) Version(ctx context.Context, flow string, number int) (*FlowVersion, error) {
	return withTypedError(e.client.Version(ctx, flow, number))
}

// Graph returns the nodes of a version and the edges between them. Nested nodes and nodes added by
// the compiler are included; number 0 is the newest published version.
func (e *flowCalls) Graph(ctx context.Context, flow string, number int) (*FlowGraph, error) {
	return withTypedError(e.client.Graph(ctx, flow, number))
}

// Diff returns the differences between two versions of a flow, and how many tasks still run the
// older one. to 0 is the newest published version; from 0 is the version before to.
func (e *flowCalls) Diff(ctx context.Context, flow string, from, to int) (*FlowDiff, error) {
	return withTypedError(e.client.Diff(ctx, flow, from, to))
}

// FlowOpenAPI returns an OpenAPI document that describes how to start tasks of a version over HTTP,
// with its declared inputs; number 0 is the newest published version.
func (e *flowCalls) FlowOpenAPI(ctx context.Context, flow string, number int) (json.RawMessage, error) {
	text, err := e.client.FlowOpenAPI(ctx, flow, number)
	return text, toTypedError(err)
}
