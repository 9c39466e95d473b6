package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/troupe-engine/troupe/api/wire"
)

// Me returns the identity and the role of the caller.
func (c *Client) Me(ctx context.Context) (*wire.Identity, error) {
	return getJSON[wire.Identity](ctx, c, "/v1/me", nil)
}

// Tokens lists the tokens of the store, in order of name.
func (c *Client) Tokens(ctx context.Context) (*wire.Page[wire.Token], error) {
	return getJSON[wire.Page[wire.Token]](ctx, c, "/v1/tokens", nil)
}

// CreateToken creates a token. It is never retried, because the token's text is returned only once.
func (c *Client) CreateToken(ctx context.Context, t wire.TokenRequest) (*wire.CreatedToken, error) {
	body, err := encodeBody(t)
	if err != nil {
		return nil, err
	}
	return doCall[wire.CreatedToken](ctx, c, apiCall{method: http.MethodPost, path: "/v1/tokens", body: body, kind: "application/json"})
}

// DeleteToken deletes a token by its id or name, and returns its last state.
func (c *Client) DeleteToken(ctx context.Context, token string) (*wire.Token, error) {
	return doCall[wire.Token](ctx, c, apiCall{method: http.MethodDelete, path: "/v1/tokens/" + url.PathEscape(token)})
}
