package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/troupe-engine/troupe/api/wire"
)

// Views lists the saved views of the task list, in order of name.
func (c *Client) Views(ctx context.Context) (*wire.Page[wire.View], error) {
	return getJSON[wire.Page[wire.View]](ctx, c, "/v1/views", nil)
}

// SetView saves a query of the tasks page under a name.
func (c *Client) SetView(ctx context.Context, name, query string) (*wire.View, error) {
	body, err := encodeBody(wire.ViewSettings{Query: query})
	if err != nil {
		return nil, err
	}
	return doCall[wire.View](ctx, c, apiCall{method: http.MethodPut, path: viewPath(name),
		body: body, kind: "application/json", repeatable: true})
}

// DeleteView deletes a view and returns its last state.
func (c *Client) DeleteView(ctx context.Context, name string) (*wire.View, error) {
	return doCall[wire.View](ctx, c, apiCall{method: http.MethodDelete, path: viewPath(name)})
}

func viewPath(name string) string { return "/v1/views/" + url.PathEscape(name) }
