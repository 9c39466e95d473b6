package client

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
)

// Ready asks whether the server can do its work; what keeps it from that is the error.
func (c *Client) Ready(ctx context.Context) error { return c.probePath(ctx, "/readyz") }

// Alive asks whether the server's process answers.
func (c *Client) Alive(ctx context.Context) error { return c.probePath(ctx, "/healthz") }

func (c *Client) probePath(ctx context.Context, path string) error {
	_, err := doCall[struct{ Status string }](ctx, c, apiCall{method: http.MethodGet, path: path})
	return err
}

// Settings are what the member that answers was configured with, without secrets.
func (c *Client) Settings(ctx context.Context) (*wire.Settings, error) {
	return getJSON[wire.Settings](ctx, c, "/v1/settings", nil)
}
