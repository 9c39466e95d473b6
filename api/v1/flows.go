package v1

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// flowHandler serves flows: their versions, definitions, checks and trials.
type flowHandler struct {
	router  *apiRouter
	catalog *flowCatalog
	finder  *taskFinder

	store       api.Store
	reader      api.Reader
	engine      engine.Engine
	limits      flow.Limits
	checkFunc   func(name string) error
	checkSecret func(name string) error
}

// flowCatalog finds flows and versions by the names in a request.
type flowCatalog struct {
	store  api.Store
	reader api.Reader
}

func (h *flowHandler) addFlowRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "publish-flow", method: http.MethodPut,
		path: "/v1/flows/{flow}", tag: "flows", created: true, body: h.definitionBody(),
		summary: "Publish a version",
		text: "Makes a definition the newest version of the flow with this slug. The content " +
			"that the newest version has already changes nothing."}, h.publishAs)
	registerOperation(rt, apiOperation{id: "publish-named-flow", method: http.MethodPost,
		path: "/v1/flows", tag: "flows", created: true, body: h.definitionBody(),
		summary: "Publish a version of the flow that the definition names",
		text:    "As PUT /v1/flows/{flow}; the slug is sent along or made from the definition's name."}, h.publishFlow)
	registerOperation(rt, apiOperation{id: "validate-definition", method: http.MethodPost,
		path: "/v1/validate", tag: "flows", body: h.definitionBody(),
		summary: "Check a definition", text: "Tells all its problems, with their places. Nothing is kept."}, h.validateDefinition)
	registerOperation(rt, apiOperation{id: "list-flows", method: http.MethodGet, path: "/v1/flows", tag: "flows",
		summary: "List flows, newest first",
		text: "With a summary: how many tasks of each began and ended in the last day, how " +
			"long they took, the last ones, and when a schedule begins the next."}, h.listFlows)
	registerOperation(rt, apiOperation{id: "get-flow", method: http.MethodGet, path: "/v1/flows/{flow}", tag: "flows",
		summary: "Read a flow"}, h.getFlow)
	registerOperation(rt, apiOperation{id: "delete-flow", method: http.MethodDelete, path: "/v1/flows/{flow}", tag: "flows",
		summary: "Delete a flow with its versions",
		text: "A flow that has tasks is a conflict (409), unless tasks=true says that they " +
			"are deleted too: those that have not ended are canceled by force first."}, h.deleteFlow)
	registerOperation(rt, apiOperation{id: "list-versions", method: http.MethodGet, path: "/v1/flows/{flow}/versions", tag: "flows",
		summary: "List a flow's versions, highest number first"}, h.listVersions)
	registerOperation(rt, apiOperation{id: "get-version", method: http.MethodGet, path: "/v1/flows/{flow}/versions/{version}", tag: "flows",
		summary: "Read a version with its definition"}, h.getVersion)
	registerOperation(rt, apiOperation{id: "get-graph", method: http.MethodGet,
		path: "/v1/flows/{flow}/versions/{version}/graph", tag: "flows",
		summary: "See the graph of a version",
		text: "All nodes, those inside of others and those that the compiler has made among " +
			"them, and what leads from one to the other. POST /v1/validate?graph=true draws a " +
			"definition that has not been published, with places in its text."}, h.getGraph)
	registerOperation(rt, apiOperation{id: "get-flow-openapi", method: http.MethodGet,
		path: "/v1/flows/{flow}/versions/{version}/openapi", tag: "flows",
		summary: "Read how tasks of a version are started, as an OpenAPI document",
		text: "The part of this description that a client of one flow needs, with the inputs " +
			"that the version declares as the schema of params: for those who have clients made."},
		h.getOpenAPI)
}

// definitionBody describes the two forms of publishing.
func (h *flowHandler) definitionBody() *huma.RequestBody {
	schemas := h.router.huma.OpenAPI().Components.Schemas
	definition := &huma.Schema{Type: huma.TypeObject, Description: "the definition itself", AdditionalProperties: true,
		Required: []string{"nodes"}}
	envelope := schemas.Schema(reflect.TypeFor[wire.Publish](), true, "")
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{AnyOf: []*huma.Schema{definition, envelope}}},
		"application/yaml": {Schema: &huma.Schema{Type: huma.TypeString, Description: "the definition itself"}},
	}}
}

// FlowPath identifies a flow.
type FlowPath struct {
	Flow string `path:"flow" maxLength:"128" doc:"slug of the flow, or its id" example:"order"`
}

// flowBy finds a flow by its slug, or by its id if no flow has that slug.
func (c *flowCatalog) flowBy(ctx context.Context, where, name string) (*persistence.Flow, error) {
	f, err := c.store.FlowBySlug(ctx, name)
	if api.Missing(err) {
		f, err = c.store.Flow(ctx, name)
	}
	if api.Missing(err) {
		return nil, newNotFoundError(where, "publish it first, or look for its name at /v1/flows", "there is no flow %.140q", name)
	}
	return f, err
}

func (h *flowHandler) getFlow(ctx context.Context, in *struct{ FlowPath }) (*bodyResponse[wire.Flow], error) {
	f, err := h.catalog.flowBy(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	answer := toFlow(f)
	v, err := h.store.FindVersion(ctx, f.ID, 0)
	switch {
	case api.Missing(err): // no task of it can be started
		return &bodyResponse[wire.Flow]{answer}, nil
	case err != nil:
		return nil, err
	}
	answer.Inputs, err = h.catalog.inputsOf(ctx, v)
	return &bodyResponse[wire.Flow]{answer}, err
}

// inputsOf returns the schema that a version declares for the inputs of its tasks; nil if it
// declares none, or cannot be read any more.
func (c *flowCatalog) inputsOf(ctx context.Context, v *persistence.Version) (json.RawMessage, error) {
	plan, err := c.reader.Plan(ctx, v.ID)
	switch {
	case errors.Is(err, persistence.ErrUnreadable):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return plan.Root.Inputs.Schema(), nil
}

type deleteFlowInput struct {
	FlowPath
	Tasks bool `query:"tasks" doc:"delete its tasks, too, whatever they are doing"`
}

func (h *flowHandler) deleteFlow(ctx context.Context, in *deleteFlowInput) (*bodyResponse[wire.DeletedFlow], error) {
	f, err := h.catalog.flowBy(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	if err := h.tasksMayGo(ctx, f, in.Tasks); err != nil {
		return nil, err
	}
	deleted, err := api.DeleteFlow(ctx, h.engine, h.store, f.ID)
	if flow.ErrorKindOf(err) == flow.Conflict {
		return nil, locateError("path.flow", err)
	}
	if err != nil {
		return nil, err
	}
	return &bodyResponse[wire.DeletedFlow]{wire.DeletedFlow{Flow: nameOf(f), Tasks: deleted}}, nil
}

// tasksMayGo returns an error if a flow still has tasks and the request does not allow deleting
// them.
func (h *flowHandler) tasksMayGo(ctx context.Context, f *persistence.Flow, sure bool) error {
	if sure {
		return nil
	}
	has, err := h.store.CountTasks(ctx, persistence.TaskFilter{FlowID: f.ID})
	if err != nil || has == 0 {
		return err
	}
	open, err := h.store.CountTasks(ctx, persistence.TaskFilter{FlowID: f.ID, Statuses: api.Unfinished})
	if err != nil {
		return err
	}
	return &locatedError{where: "query.tasks", hint: "send tasks=true to have them deleted, too",
		err: flow.Errorf(flow.Conflict, "flow %s has tasks: %d, of which %d have not ended", nameOf(f), has, open)}
}

type versionsInput struct {
	FlowPath
	Paging
}

func (h *flowHandler) listVersions(ctx context.Context, in *versionsInput) (*bodyResponse[wire.Page[wire.Version]], error) {
	at, continued, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	f, err := h.catalog.flowBy(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	versions, err := h.store.ListVersions(ctx, f.ID)
	if err != nil {
		return nil, err
	}
	if continued {
		versions = afterVersion(versions, at)
	}
	versions, more := cutPage(versions, in.Limit)
	page := wire.Page[wire.Version]{Items: make([]wire.Version, len(versions))}
	for i := range versions {
		page.Items[i] = toVersion(f, &versions[i])
	}
	if more {
		last := versions[len(versions)-1]
		page.Next = listCursor{int64(last.Number), last.ID}.String()
	}
	return &bodyResponse[wire.Page[wire.Version]]{page}, nil
}

// afterVersion returns the versions that follow a version.
func afterVersion(versions []persistence.Version, at listCursor) []persistence.Version {
	for i, v := range versions {
		if v.ID == at.name {
			return versions[i+1:]
		}
	}
	return nil
}

type versionInput struct {
	FlowPath
	Version string `path:"version" maxLength:"20" doc:"its number, or latest for the newest published one"`
}

// findVersion finds the version of the input.
func (in *versionInput) findVersion(ctx context.Context, c *flowCatalog) (*persistence.Flow, *persistence.Version, error) {
	number := 0
	if in.Version != "latest" {
		n, err := strconv.Atoi(in.Version)
		if err != nil || n < 1 {
			return nil, nil, newInvalidError("path.version", "send a number from 1 on, or latest", "%.20q is no version", in.Version)
		}
		number = n
	}
	f, err := c.flowBy(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, nil, err
	}
	v, err := c.findVersion(ctx, "path.version", f, number)
	return f, v, err
}

func (h *flowHandler) getVersion(ctx context.Context, in *versionInput) (*bodyResponse[wire.Version], error) {
	f, v, err := in.findVersion(ctx, h.catalog)
	if err != nil {
		return nil, err
	}
	answer := toVersion(f, v)
	answer.Definition = definitionJSON(v.Definition)
	answer.Inputs, err = h.catalog.inputsOf(ctx, v)
	return &bodyResponse[wire.Version]{answer}, err
}

// findVersion finds a flow's version by its number; 0 is the newest published one.
func (c *flowCatalog) findVersion(ctx context.Context, where string, f *persistence.Flow, number int) (*persistence.Version, error) {
	v, err := c.store.FindVersion(ctx, f.ID, number)
	if !api.Missing(err) {
		return v, err
	}
	hint := "/v1/flows/" + nameOf(f) + "/versions lists what there is"
	if number == 0 {
		return nil, newNotFoundError(where, hint, "flow %s has no published version", nameOf(f))
	}
	return nil, newNotFoundError(where, hint, "flow %s has no version %d", nameOf(f), number)
}

// nameOf returns the name by which a flow is addressed.
func nameOf(f *persistence.Flow) string { return orElse(f.Slug, f.ID) }

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

func toFlow(f *persistence.Flow) wire.Flow {
	return wire.Flow{Slug: f.Slug, ID: f.ID, Name: f.Name, Description: f.Description, CreatedAt: wire.Millis(f.CreatedAt), Tried: f.Tried}
}

func toVersion(f *persistence.Flow, v *persistence.Version) wire.Version {
	return wire.Version{ID: v.ID, Flow: nameOf(f), Number: v.Number, Status: v.Status, Hash: v.Hash, CreatedAt: wire.Millis(v.CreatedAt)}
}
