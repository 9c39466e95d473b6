package main

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
	cfg, err := c.config(a.stderr)
	if err != nil {
		return err
	}
	c.tlsFlags.apply(&cfg)
	c.clusterFlags.apply(&cfg)
	m, err := startMember(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "Troupe serves %s from %s\n", m.url, troupe.StoreName(cfg.Store))
	return m.wait()
}
