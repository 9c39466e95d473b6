package client

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
)

// Ready returns nil if the server can work, and otherwise the reason.
func (c *Client) Ready(ctx context.Context) error { return c.probePath(ctx, "/readyz") }

// Alive returns nil if the server's process answers.
func (c *Client) Alive(ctx context.Context) error { return c.probePath(ctx, "/healthz") }

func (c *Client) probePath(ctx context.Context, path string) error {
	_, err := doCall[struct{ Status string }](ctx, c, apiCall{method: http.MethodGet, path: path})
	return err
}

// Settings returns the configuration of the answering member, without secrets.
func (c *Client) Settings(ctx context.Context) (*wire.Settings, error) {
	return getJSON[wire.Settings](ctx, c, "/v1/settings", nil)
}
