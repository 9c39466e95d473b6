package cli

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

var errDryWait = newUsageError("--dry-run starts no task to wait for: give one of --dry-run and --wait")

type taskRerunCmd struct {
	manyArg
	Version string `placeholder:"N|newest" help:"Version of the flow that the new task runs; without, that of the old one."`
	anewFlags
	DryRun bool `help:"Show what a new task would do, where what the old one did counts with the same input, and start none."`
	Wait   bool `help:"Wait for the end; exit with 1 if the task does not complete."`
}

func (c *taskRerunCmd) Run(ctx context.Context, a *app) error {
	picked, err := c.usesFilter()
	switch {
	case err != nil:
		return err
	case picked && (c.Wait || c.DryRun || c.Params != "" || len(c.Param) > 0):
		return newUsageError("--filter has tasks done again as they were begun: params, " +
			"--dry-run and --wait are for tasks that are named by their ids")
	case c.Wait && c.DryRun:
		return errDryWait
	case picked:
		return c.bulkAnew(ctx, a, wire.Bulk{Action: "rerun"}, c.Version)
	}
	return c.eachID(ctx, func(server *client.Client, id string) error { return c.rerunTask(ctx, a, server, id) })
}

func (c *taskRerunCmd) rerunTask(ctx context.Context, a *app, server *client.Client, id string) (err error) {
	ask := wire.Rerun{DryRun: c.DryRun}
	if ask.Version, ask.Newest, err = versionFlag(c.Version); err != nil {
		return err
	}
	if ask.Params, err = c.mergedParams(ctx, server, id, ask.Version, ask.Newest); err != nil {
		return err
	}
	started, err := server.Rerun(ctx, id, ask)
	switch {
	case err != nil:
		return err
	case c.Wait:
		return c.waitFor(ctx, a, server, started.ID)
	case c.isJSON():
		return printJSON(a.stdout, started)
	case c.DryRun:
		fmt.Fprintf(a.stdout, "A new task of version %d that does again what %s does:\n", started.Version, sanitizeText(started.From))
		return showForesight(a, started.Foresight)
	}
	_, err = fmt.Fprintf(a.stdout, "%s  does again what %s does, with version %d\n",
		sanitizeText(started.ID), sanitizeText(started.From), started.Version)
	return err
}
