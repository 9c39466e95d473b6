package v1

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const viewPath = "/v1/views/{view}"

// maxViews bounds the number of views, because people cannot find their way among more.
const maxViews = 200

func (h *accountHandler) addViewRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-views", method: http.MethodGet, path: "/v1/views", tag: "tasks",
		summary: "List the lists of tasks that people have given names, in order of name"}, h.listViews)
	registerOperation(rt, apiOperation{id: "set-view", method: http.MethodPut, path: viewPath, tag: "tasks",
		summary: "Give a list of tasks a name", text: "In place of the one that has that name, if there is one."}, h.setView)
	registerOperation(rt, apiOperation{id: "delete-view", method: http.MethodDelete, path: viewPath, tag: "tasks",
		summary: "Delete a list of tasks with a name, and tell what it was"}, h.deleteView)
}

// ViewPath identifies a view.
type ViewPath struct {
	View string `path:"view" minLength:"1" maxLength:"80" doc:"name of the view"`
}

func (h *accountHandler) listViews(ctx context.Context, _ *struct{}) (*bodyResponse[wire.Page[wire.View]], error) {
	views, err := h.store.ListViews(ctx)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.View]{Items: make([]wire.View, len(views))}
	for i := range views {
		page.Items[i] = toView(&views[i])
	}
	return &bodyResponse[wire.Page[wire.View]]{page}, nil
}

func toView(v *persistence.SavedView) wire.View {
	return wire.View{Name: v.Name, Query: v.Query, UpdatedAt: wire.Millis(v.UpdatedAt), UpdatedBy: v.UpdatedBy}
}

type setViewInput struct {
	ViewPath
	Body wire.SetView
}

func (h *accountHandler) setView(ctx context.Context, in *setViewInput) (*bodyResponse[wire.View], error) {
	if err := flow.CheckNames("name", in.View); err != nil {
		return nil, locateError("path.view", err)
	}
	if strings.TrimSpace(in.View) != in.View {
		return nil, newInvalidError("path.view", "leave out the spaces around it", "a name of a view begins and ends with no space")
	}
	if _, err := url.ParseQuery(in.Body.Query); err != nil {
		return nil, newInvalidError("body.query",
			"send what stands behind the ? of the page of tasks", "%.80q is no query: %v", in.Body.Query, err)
	}
	if err := h.checkViewLimit(ctx, in.View); err != nil {
		return nil, err
	}
	v := persistence.SavedView{Name: in.View, Query: in.Body.Query, UpdatedAt: h.engine.Now().UnixMilli(), UpdatedBy: api.Who(ctx).Name}
	if err := h.store.SetView(ctx, v); err != nil {
		return nil, err
	}
	return &bodyResponse[wire.View]{toView(&v)}, nil
}

func (h *accountHandler) checkViewLimit(ctx context.Context, name string) error {
	views, err := h.store.ListViews(ctx)
	if err == nil && len(views) >= maxViews && viewBy(views, name) == nil {
		return &locatedError{where: "path.view", hint: "delete those that nobody needs",
			err: flow.Errorf(flow.Limit, "there are %d views already", maxViews)}
	}
	return err
}

func viewBy(views []persistence.SavedView, name string) *persistence.SavedView {
	for i := range views {
		if views[i].Name == name {
			return &views[i]
		}
	}
	return nil
}

func (h *accountHandler) deleteView(ctx context.Context, in *struct{ ViewPath }) (*bodyResponse[wire.View], error) {
	views, err := h.store.ListViews(ctx)
	if err != nil {
		return nil, err
	}
	v := viewBy(views, in.View)
	if v == nil {
		return nil, newNotFoundError("path.view", "GET /v1/views lists them", "there is no view %.80q", in.View)
	}
	if err := h.store.DeleteView(ctx, v.Name); err != nil && !api.Missing(err) {
		return nil, err
	}
	return &bodyResponse[wire.View]{toView(v)}, nil
}
