package account

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const viewPath = "/v1/views/{view}"

// maxViews bounds the number of views, so that people can find their way among them.
const maxViews = 200

func (h *Handler) addViewRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-views", Method: http.MethodGet, Path: "/v1/views", Tag: "tasks",
		Summary: "List views",
		Text:    "In order of name."}, h.listViews)
	route.Register(rt, route.Operation{ID: "set-view", Method: http.MethodPut, Path: viewPath, Tag: "tasks",
		Summary: "Create or replace a view",
		Text:    "Stores a list of tasks under a name."}, h.setView)
	route.Register(rt, route.Operation{ID: "delete-view", Method: http.MethodDelete, Path: viewPath, Tag: "tasks",
		Summary: "Delete a view",
		Text:    "Returns the deleted view."}, h.deleteView)
}

// ViewPath identifies a view.
type ViewPath struct {
	View string `path:"view" minLength:"1" maxLength:"80" doc:"Name of the view."`
}

func (h *Handler) listViews(ctx context.Context, _ *struct{}) (*route.Response[wire.Page[wire.View]], error) {
	views, err := h.Store.ListViews(ctx)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.View]{Items: make([]wire.View, len(views))}
	for i := range views {
		page.Items[i] = toView(&views[i])
	}
	return &route.Response[wire.Page[wire.View]]{Body: page}, nil
}

func toView(v *persistence.SavedView) wire.View {
	return wire.View{Name: v.Name, Query: v.Query, UpdatedAt: wire.Millis(v.UpdatedAt), UpdatedBy: v.UpdatedBy}
}

type setViewInput struct {
	ViewPath
	Body wire.ViewSettings
}

func (h *Handler) setView(ctx context.Context, in *setViewInput) (*route.Response[wire.View], error) {
	if err := flow.CheckNames("name", in.View); err != nil {
		return nil, route.LocateError("path.view", err)
	}
	if strings.TrimSpace(in.View) != in.View {
		return nil, route.NewInvalidError("path.view", "remove the spaces around it", "the name of a view starts or ends with a space")
	}
	if _, err := url.ParseQuery(in.Body.Query); err != nil {
		return nil, route.NewInvalidError("body.query",
			"send the part after the ? in the URL of the Tasks page", "%.80q is not a query: %v", in.Body.Query, err)
	}
	if err := h.checkViewLimit(ctx, in.View); err != nil {
		return nil, err
	}
	v := persistence.SavedView{Name: in.View, Query: in.Body.Query, UpdatedAt: h.Engine.Now().UnixMilli(), UpdatedBy: api.Who(ctx).Name}
	if err := h.Store.SetView(ctx, v); err != nil {
		return nil, err
	}
	return &route.Response[wire.View]{Body: toView(&v)}, nil
}

func (h *Handler) checkViewLimit(ctx context.Context, name string) error {
	views, err := h.Store.ListViews(ctx)
	if err == nil && len(views) >= maxViews && viewBy(views, name) == nil {
		return &route.LocatedError{Where: "path.view", Hint: "delete unused views",
			Err: flow.Errorf(flow.Limit, "there are %d views already", maxViews)}
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

func (h *Handler) deleteView(ctx context.Context, in *struct{ ViewPath }) (*route.Response[wire.View], error) {
	views, err := h.Store.ListViews(ctx)
	if err != nil {
		return nil, err
	}
	v := viewBy(views, in.View)
	if v == nil {
		return nil, route.NewNotFoundError("path.view", "GET /v1/views lists them", "there is no view %.80q", in.View)
	}
	if err := h.Store.DeleteView(ctx, v.Name); err != nil && !api.Missing(err) {
		return nil, err
	}
	return &route.Response[wire.View]{Body: toView(v)}, nil
}
