// Package serve has the commands that run a member: serve, dev and demo. Their flags are the
// configuration of a member.
package serve

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// Command runs a member.
type Command struct {
	memberFlags
	console.TLSFlags
	clusterFlags
}

// Run runs the member until ctx ends.
func (c *Command) Run(ctx context.Context, a *console.App) error {
	cfg, err := c.buildConfig(a)
	if err != nil {
		return err
	}
	c.TLSFlags.SetTLSConfig(&cfg)
	c.clusterFlags.setClusterConfig(&cfg)
	m, err := startMember(ctx, cfg)
	if err != nil {
		return err
	}
	store := troupe.StoreName(cfg.Store)
	c.PrintNotice(a, fmt.Sprintf("Troupe serves %s from %s; pages: %s", m.url, store,
		m.uiURL()), map[string]string{"url": m.url, "store": store, "pages": m.uiURL()})
	return m.waitForEnd()
}
