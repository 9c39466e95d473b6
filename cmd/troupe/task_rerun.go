package main

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/api/wire"
)

type taskRerunCmd struct {
	remote
	Task    string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
	Version string `placeholder:"N|newest" help:"Version of the flow that the new task runs; without, that of the old one."`
	anewFlags
	Wait bool `help:"Wait for the end; exit with 1 if the task does not complete."`
}

func (c *taskRerunCmd) Run(ctx context.Context, a *app) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	id, err := taskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	var ask wire.Rerun
	if ask.Version, ask.Newest, err = versionFlag(c.Version); err != nil {
		return err
	}
	if ask.Params, err = c.params(ctx, server, id, ask.Version, ask.Newest); err != nil {
		return err
	}
	started, err := server.Rerun(ctx, id, ask)
	switch {
	case err != nil:
		return err
	case c.Wait:
		return c.waitFor(ctx, a, server, started.ID)
	case c.json():
		return printJSON(a.stdout, started)
	}
	_, err = fmt.Fprintf(a.stdout, "%s  does again what %s does, with version %d\n", clean(started.ID), clean(started.From), started.Version)
	return err
}
