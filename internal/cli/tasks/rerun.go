package tasks

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

var errDryWait = console.NewUsageError("--dry-run starts no task to wait for")

type taskRerunCmd struct {
	manyArg
	Version string `placeholder:"N|newest" help:"Version of the flow for the new task. Default: that of the old task."`
	ParamFlags
	DryRun bool `help:"Show what the new task would do without starting it. Steps with the same input show the old results."`
	Wait   bool `help:"Wait for the end. Exit with 1 if the task does not complete."`
}

func (c *taskRerunCmd) Run(ctx context.Context, a *console.App) error {
	picked, err := c.usesFilter()
	switch {
	case err != nil:
		return err
	case picked && (c.Wait || c.DryRun || c.hasParams()):
		return console.NewUsageError("--filter cannot be combined with params, " +
			"--dry-run or --wait: give task IDs")
	case c.Wait && c.DryRun:
		return errDryWait
	case picked:
		return c.bulkAnew(ctx, a, wire.BulkRequest{Action: "rerun"}, c.Version)
	}
	return c.eachID(ctx, func(server *client.Client, id string) error { return c.rerunTask(ctx, a, server, id) })
}

func (c *taskRerunCmd) rerunTask(ctx context.Context, a *console.App, server *client.Client, id string) (err error) {
	ask := wire.RerunRequest{DryRun: c.DryRun}
	if ask.Version, ask.Latest, err = versionFlag(c.Version); err != nil {
		return err
	}
	if ask.Params, err = c.paramsOfNewTask(ctx, a, server, id, ask.Version, ask.Latest); err != nil {
		return err
	}
	started, err := server.Rerun(ctx, id, ask)
	switch {
	case err != nil:
		return err
	case c.Wait:
		return WaitForTask(ctx, a, c.OutputFlag, server, started.ID)
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, started)
	case c.DryRun:
		fmt.Fprintf(a.Stdout, "A new task of version %d with the input of %s:\n", started.Version, console.SanitizeText(started.From))
		return showForesight(a, started.Preview)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s  rerun of %s with version %d\n",
		console.SanitizeText(started.ID), console.SanitizeText(started.From), started.Version)
	return err
}
