package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/troupe-engine/troupe/api/wire"
)

// Members lists the members of the cluster and their state.
func (c *Client) Members(ctx context.Context) (*wire.Cluster, error) {
	return getJSON[wire.Cluster](ctx, c, "/v1/cluster/members", nil)
}

// Shards returns the owners of all shards, or of one task's shard, and the recent moves.
func (c *Client) Shards(ctx context.Context, task string) (*wire.Shards, error) {
	q := url.Values{}
	setNonEmpty(q, "task", task)
	return getJSON[wire.Shards](ctx, c, "/v1/cluster/shards", q)
}

// Drain makes a member, given by name or incarnation, hand over its tasks and accept no others. The
// member keeps running.
func (c *Client) Drain(ctx context.Context, member string) (*wire.Member, error) {
	return c.setDrain(ctx, http.MethodPost, member)
}

// Undrain makes a member accept tasks again.
func (c *Client) Undrain(ctx context.Context, member string) (*wire.Member, error) {
	return c.setDrain(ctx, http.MethodDelete, member)
}

func (c *Client) setDrain(ctx context.Context, method, member string) (*wire.Member, error) {
	return doCall[wire.Member](ctx, c, apiCall{method: method,
		path: "/v1/cluster/members/" + url.PathEscape(member) + "/drain", repeatable: true})
}
