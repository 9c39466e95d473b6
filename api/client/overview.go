package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Overview returns a summary of the whole engine.
func (c *Client) Overview(ctx context.Context) (*wire.Overview, error) {
	return getJSON[wire.Overview](ctx, c, "/v1/overview", nil)
}

// StatsOf selects statistics. The zero value selects the last 24 hours of all flows and versions.
type StatsOf struct {
	Window   string    // 1h, 24h or 7d until now; alternative to From
	From, To time.Time // time range; a zero To means now
	Version  int       // number of the only version; for FlowStats

	Flow, Scope, Node string // the only flow, or a node of the flow; for StatsSeries
	// 1m, 5m, 15m, 1h, 6h or 24h; "" depends on the time range; for StatsSeries
	Step string
}

func (o StatsOf) queryValues() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"window": o.Window, "flow": o.Flow, "scope": o.Scope, "node": o.Node, "step": o.Step} {
		setNonEmpty(q, name, value)
	}
	for name, at := range map[string]time.Time{"from": o.From, "to": o.To} {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if o.Version > 0 {
		q.Set("version", strconv.Itoa(o.Version))
	}
	return q
}

// FlowStats returns statistics of the tasks and nodes of a flow.
func (c *Client) FlowStats(ctx context.Context, flow string, of StatsOf) (*wire.FlowStats, error) {
	return getJSON[wire.FlowStats](ctx, c, "/v1/flows/"+url.PathEscape(flow)+"/stats", of.queryValues())
}

// StatsSeries returns statistics of tasks, or of a node, over time.
func (c *Client) StatsSeries(ctx context.Context, of StatsOf) (*wire.StatsSeries, error) {
	return getJSON[wire.StatsSeries](ctx, c, "/v1/stats", of.queryValues())
}
