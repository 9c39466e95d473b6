package cli

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe"
)

type serveCmd struct {
	memberFlags
	tlsFlags
	clusterFlags
}

func (c *serveCmd) Run(ctx context.Context, a *app) error {
	cfg, err := c.buildConfig(a)
	if err != nil {
		return err
	}
	c.tlsFlags.setTLSConfig(&cfg)
	c.clusterFlags.setClusterConfig(&cfg)
	m, err := startMember(ctx, cfg)
	if err != nil {
		return err
	}
	store := troupe.StoreName(cfg.Store)
	c.printNotice(a, fmt.Sprintf("Troupe serves %s from %s; its pages are at %s", m.url, store,
		m.uiURL()), map[string]string{"serves": m.url, "store": store, "pages": m.uiURL()})
	return m.waitForEnd()
}
