package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/troupe-engine/troupe/api/wire"
)

// Members tells who is a member of the cluster, and how they are.
func (c *Client) Members(ctx context.Context) (*wire.Cluster, error) {
	return getJSON[wire.Cluster](ctx, c, "/v1/cluster/members", nil)
}

// Shards tells who owns which shards, or that of one task, and which have moved.
func (c *Client) Shards(ctx context.Context, task string) (*wire.Shards, error) {
	q := url.Values{}
	setNonEmpty(q, "task", task)
	return getJSON[wire.Shards](ctx, c, "/v1/cluster/shards", q)
}

// Drain has a member, named by its name or incarnation, hand its tasks over and take none any more.
// It lives on.
func (c *Client) Drain(ctx context.Context, member string) (*wire.Member, error) {
	return c.setDrain(ctx, http.MethodPost, member)
}

// Undrain has a member take tasks again.
func (c *Client) Undrain(ctx context.Context, member string) (*wire.Member, error) {
	return c.setDrain(ctx, http.MethodDelete, member)
}

func (c *Client) setDrain(ctx context.Context, method, member string) (*wire.Member, error) {
	return doCall[wire.Member](ctx, c, apiCall{method: method, path: "/v1/cluster/members/" + url.PathEscape(member) + "/drain", repeatable: true})
}
