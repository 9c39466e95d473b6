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
	cfg, err := c.config(a)
	if err != nil {
		return err
	}
	c.tlsFlags.apply(&cfg)
	c.clusterFlags.apply(&cfg)
	m, err := startMember(ctx, cfg)
	if err != nil {
		return err
	}
	store := troupe.StoreName(cfg.Store)
	c.say(a, fmt.Sprintf("Troupe serves %s from %s; its pages are at %s", m.url, store, m.pages()), map[string]string{"serves": m.url, "store": store, "pages": m.pages()})
	return m.wait()
}
