package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
)

// Overview tells at once how everything is.
func (c *Client) Overview(ctx context.Context) (*wire.Overview, error) {
	return get[wire.Overview](ctx, c, "/v1/overview", nil)
}

// FlowStats tells how the tasks of a flow go that ended in a window of 1h, 24h or 7d, "" = 24h; of one version, or of all for 0.
func (c *Client) FlowStats(ctx context.Context, flow, window string, version int) (*wire.FlowStats, error) {
	q := url.Values{}
	set(q, "window", window)
	if version > 0 {
		q.Set("version", strconv.Itoa(version))
	}
	return get[wire.FlowStats](ctx, c, "/v1/flows/"+url.PathEscape(flow)+"/stats", q)
}
