// Package catalog finds the flows, versions and tasks that requests name or select.
package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/persistence"
)

// Flows finds flows and versions by the names in a request.
type Flows struct {
	Store  api.Store
	Reader api.Reader
}

// FlowPath identifies a flow.
type FlowPath struct {
	Flow string `path:"flow" maxLength:"128" doc:"Slug of the flow, or its ID." example:"order"`
}

// FindFlow finds a flow by its slug, or by its id if no flow has that slug.
func (c *Flows) FindFlow(ctx context.Context, where, name string) (*persistence.Flow, error) {
	f, err := c.Store.FlowBySlug(ctx, name)
	if api.Missing(err) {
		f, err = c.Store.Flow(ctx, name)
	}
	if api.Missing(err) {
		return nil, route.NewNotFoundError(where, "publish it first, or look for its name at /v1/flows", "there is no flow %.140q", name)
	}
	return f, err
}

// InputsOf returns the input schema of a version; nil if the version has none or cannot be read.
func (c *Flows) InputsOf(ctx context.Context, v *persistence.Version) (json.RawMessage, error) {
	plan, err := c.Reader.Plan(ctx, v.ID)
	switch {
	case errors.Is(err, persistence.ErrUnreadable):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return plan.Root.Inputs.Schema(), nil
}

// FindVersion finds a version of a flow by number. 0 means the newest published version.
func (c *Flows) FindVersion(ctx context.Context, where string, f *persistence.Flow, number int) (*persistence.Version, error) {
	v, err := c.Store.FindVersion(ctx, f.ID, number)
	if !api.Missing(err) {
		return v, err
	}
	hint := "/v1/flows/" + NameOf(f) + "/versions lists what there is"
	if number == 0 {
		return nil, route.NewNotFoundError(where, hint, "flow %s has no published version", NameOf(f))
	}
	return nil, route.NewNotFoundError(where, hint, "flow %s has no version %d", NameOf(f), number)
}

// NameOf returns the slug of a flow, or its id if it has no slug.
func NameOf(f *persistence.Flow) string { return cmp.Or(f.Slug, f.ID) }
