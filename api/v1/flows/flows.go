// Package flows serves the flows of /v1: publishing, versions, graphs, differences and trials.
package flows

import (
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Handler serves flows: their versions, definitions, checks and trials.
type Handler struct {
	Router  *route.Router
	Catalog *catalog.Flows
	Finder  *catalog.Tasks

	Store       api.Store
	Reader      api.Reader
	Engine      engine.Engine
	Limits      flow.Limits
	CheckFunc   func(name string) error
	CheckSecret func(name string) error
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	h.addFlowRoutes(rt)
	h.addTryRoutes(rt)
	h.addDiffRoutes(rt)
}

func (h *Handler) addFlowRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "publish-flow", Method: http.MethodPut,
		Path: "/v1/flows/{flow}", Tag: "flows", Created: true, Body: h.definitionBody(),
		Summary: "Publish a version",
		Text: "Publishes a definition as the newest version of the flow with this slug. Content " +
			"equal to the newest version changes nothing."}, h.publishAs)
	route.Register(rt, route.Operation{ID: "publish-named-flow", Method: http.MethodPost,
		Path: "/v1/flows", Tag: "flows", Created: true, Body: h.definitionBody(),
		Summary: "Publish a version of the flow that the definition names",
		Text: "Like PUT /v1/flows/{flow}; the slug is sent along or derived from the definition's " +
			"name."}, h.publishFlow)
	route.Register(rt, route.Operation{ID: "validate-definition", Method: http.MethodPost,
		Path: "/v1/validate", Tag: "flows", Body: h.definitionBody(),
		Summary: "Validate a definition",
		Text:    "Returns all its problems with their places. Nothing is stored."}, h.validateDefinition)
	route.Register(rt, route.Operation{ID: "list-flows", Method: http.MethodGet, Path: "/v1/flows", Tag: "flows",
		Summary: "List flows",
		Text: "Newest first. With a summary: the numbers of started and ended tasks in the last " +
			"day, their durations, the latest tasks, and the time of the next scheduled one."}, h.listFlows)
	route.Register(rt, route.Operation{ID: "get-flow", Method: http.MethodGet, Path: "/v1/flows/{flow}", Tag: "flows",
		Summary: "Get a flow"}, h.getFlow)
	route.Register(rt, route.Operation{ID: "delete-flow", Method: http.MethodDelete, Path: "/v1/flows/{flow}", Tag: "flows",
		Summary: "Delete a flow with its versions",
		Text: "A flow with tasks is a conflict (409). With tasks=true its tasks are deleted, too: " +
			"those that have not ended are canceled by force first."}, h.deleteFlow)
	route.Register(rt, route.Operation{ID: "list-versions", Method: http.MethodGet, Path: "/v1/flows/{flow}/versions", Tag: "flows",
		Summary: "List a flow's versions",
		Text:    "Highest number first."}, h.listVersions)
	route.Register(rt, route.Operation{ID: "get-version", Method: http.MethodGet, Path: "/v1/flows/{flow}/versions/{version}", Tag: "flows",
		Summary: "Get a version with its definition"}, h.getVersion)
	route.Register(rt, route.Operation{ID: "get-graph", Method: http.MethodGet,
		Path: "/v1/flows/{flow}/versions/{version}/graph", Tag: "flows",
		Summary: "Get the graph of a version",
		Text: "All nodes, including inner and generated ones, and their edges. POST " +
			"/v1/validate?graph=true returns the graph of a definition that is not published, " +
			"with the places in its text."}, h.getGraph)
	route.Register(rt, route.Operation{ID: "get-flow-openapi", Method: http.MethodGet,
		Path: "/v1/flows/{flow}/versions/{version}/openapi", Tag: "flows",
		Summary: "Get an OpenAPI document for one flow",
		Text: "The part of this document that a client of one flow needs. The inputs that the " +
			"version declares are the schema of params. Use it to generate a client."},
		h.getOpenAPI)
}

// definitionBody describes the two forms of a publish request.
func (h *Handler) definitionBody() *huma.RequestBody {
	schemas := h.Router.API.OpenAPI().Components.Schemas
	definition := &huma.Schema{Type: huma.TypeObject, Description: "Definition.", AdditionalProperties: true,
		Required: []string{"nodes"}}
	envelope := schemas.Schema(reflect.TypeFor[wire.PublishRequest](), true, "")
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{AnyOf: []*huma.Schema{definition, envelope}}},
		"application/yaml": {Schema: &huma.Schema{Type: huma.TypeString, Description: "Definition."}},
	}}
}

func (h *Handler) getFlow(ctx context.Context, in *struct{ catalog.FlowPath }) (*route.Response[wire.Flow], error) {
	f, err := h.Catalog.FindFlow(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	answer := toFlow(f)
	v, err := h.Store.FindVersion(ctx, f.ID, 0)
	switch {
	case api.Missing(err): // a flow without a published version can start no task
		return &route.Response[wire.Flow]{Body: answer}, nil
	case err != nil:
		return nil, err
	}
	answer.Inputs, err = h.Catalog.InputsOf(ctx, v)
	return &route.Response[wire.Flow]{Body: answer}, err
}

type deleteFlowInput struct {
	catalog.FlowPath
	Tasks bool `query:"tasks" doc:"True to delete its tasks, too, including running ones."`
}

func (h *Handler) deleteFlow(ctx context.Context, in *deleteFlowInput) (*route.Response[wire.DeletedFlow], error) {
	f, err := h.Catalog.FindFlow(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	if err := h.tasksMayGo(ctx, f, in.Tasks); err != nil {
		return nil, err
	}
	deleted, err := api.DeleteFlow(ctx, h.Engine, h.Store, f.ID)
	if flow.ErrorKindOf(err) == flow.Conflict {
		return nil, route.LocateError("path.flow", err)
	}
	if err != nil {
		return nil, err
	}
	return &route.Response[wire.DeletedFlow]{Body: wire.DeletedFlow{Flow: catalog.NameOf(f), Tasks: deleted}}, nil
}

// tasksMayGo returns an error if a flow has tasks, unless sure is true.
func (h *Handler) tasksMayGo(ctx context.Context, f *persistence.Flow, sure bool) error {
	if sure {
		return nil
	}
	has, err := h.Store.CountTasks(ctx, persistence.TaskFilter{FlowID: f.ID})
	if err != nil || has == 0 {
		return err
	}
	open, err := h.Store.CountTasks(ctx, persistence.TaskFilter{FlowID: f.ID, Statuses: api.Unfinished})
	if err != nil {
		return err
	}
	return &route.LocatedError{Where: "query.tasks", Hint: "send tasks=true to delete its tasks, too",
		Err: flow.Errorf(flow.Conflict, "flow %s has tasks: %d, of which %d have not ended", catalog.NameOf(f), has, open)}
}

type versionsInput struct {
	catalog.FlowPath
	route.Paging
}

func (h *Handler) listVersions(ctx context.Context, in *versionsInput) (*route.Response[wire.Page[wire.Version]], error) {
	at, continued, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	f, err := h.Catalog.FindFlow(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	versions, err := h.Store.ListVersions(ctx, f.ID)
	if err != nil {
		return nil, err
	}
	if continued {
		versions = afterVersion(versions, at)
	}
	versions, more := route.CutPage(versions, in.Limit)
	page := wire.Page[wire.Version]{Items: make([]wire.Version, len(versions))}
	for i := range versions {
		page.Items[i] = toVersion(f, &versions[i])
	}
	if more {
		last := versions[len(versions)-1]
		page.Next = route.Cursor{At: int64(last.Number), Name: last.ID}.String()
	}
	return &route.Response[wire.Page[wire.Version]]{Body: page}, nil
}

// afterVersion returns the versions after a cursor.
func afterVersion(versions []persistence.Version, at route.Cursor) []persistence.Version {
	for i, v := range versions {
		if v.ID == at.Name {
			return versions[i+1:]
		}
	}
	return nil
}

type versionInput struct {
	catalog.FlowPath
	Version string `path:"version" maxLength:"20" doc:"Number of the version, or latest for the newest published one."`
}

// findVersion finds the version that the path parameters name.
func (in *versionInput) findVersion(ctx context.Context, c *catalog.Flows) (*persistence.Flow, *persistence.Version, error) {
	number := 0
	if in.Version != "latest" {
		n, err := strconv.Atoi(in.Version)
		if err != nil || n < 1 {
			return nil, nil, route.NewInvalidError("path.version", "send a number of at least 1, or latest",
				"%.20q is not a version", in.Version)
		}
		number = n
	}
	f, err := c.FindFlow(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, nil, err
	}
	v, err := c.FindVersion(ctx, "path.version", f, number)
	return f, v, err
}

func (h *Handler) getVersion(ctx context.Context, in *versionInput) (*route.Response[wire.Version], error) {
	f, v, err := in.findVersion(ctx, h.Catalog)
	if err != nil {
		return nil, err
	}
	answer := toVersion(f, v)
	answer.Definition = definitionJSON(v.Definition)
	answer.Inputs, err = h.Catalog.InputsOf(ctx, v)
	return &route.Response[wire.Version]{Body: answer}, err
}

func toFlow(f *persistence.Flow) wire.Flow {
	return wire.Flow{Slug: f.Slug, ID: f.ID, Name: f.Name, Description: f.Description, CreatedAt: wire.Millis(f.CreatedAt), Trial: f.Tried}
}

func toVersion(f *persistence.Flow, v *persistence.Version) wire.Version {
	return wire.Version{ID: v.ID, Flow: catalog.NameOf(f), Number: v.Number, Status: v.Status, Hash: v.Hash,
		CreatedAt: wire.Millis(v.CreatedAt)}
}
