package tasks

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type taskRetryCmd struct {
	manyArg
	Node string `placeholder:"STEP" help:"Retry only this failed step of a dag, and the steps skipped because of it."`
	forkFlags
}

func (c *taskRetryCmd) Run(ctx context.Context, a *console.App) error {
	anew := c.Version != "" || c.From != "" || c.hasParams() || len(c.Set) > 0 || c.DryRun
	picked, err := c.usesFilter()
	switch {
	case err != nil:
		return err
	case picked && (c.hasParams() || len(c.Set) > 0 || c.DryRun || c.Node != ""):
		return console.NewUsageError("--filter can be combined only with --version and --from: " +
			"give task IDs for other flags")
	case picked && anew:
		return c.bulkAnew(ctx, a, wire.BulkRequest{Action: "fork", From: c.From}, c.Version)
	case picked:
		return c.runBulk(ctx, a, wire.BulkRequest{Action: "retry"})
	case c.Node != "" && anew:
		return console.NewUsageError("--node retries in the same task and cannot be combined with flags that create a new one")
	case c.Node != "":
		return c.forEachTask(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.RetryStep(ctx, id, c.Node) })
	case !anew:
		return c.forEachTask(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Retry(ctx, id) })
	}
	return c.eachID(ctx, func(server *client.Client, id string) error {
		forked, err := c.forkTask(ctx, a, server, id, 0)
		if err != nil {
			return err
		}
		return showFork(a, c.OutputFlag, forked)
	})
}

// versionFlag parses the version for a new task; 0 means the newest version, or the version of the
// old task.
func versionFlag(text string) (number int, newest bool, err error) {
	switch text {
	case "", "same":
		return 0, false, nil
	case "newest", "latest":
		return 0, true, nil
	}
	if number, err = strconv.Atoi(text); err != nil || number < 1 {
		return 0, false, console.NewUsageError("--version %q: use a number from 1, or newest", text)
	}
	return number, false, nil
}

// paramsOfNewTask returns the params of a new task: the params of the old task, changed by the
// flags; nil means unchanged params.
func (f *ParamFlags) paramsOfNewTask(ctx context.Context, a *console.App, server *client.Client, id string,
	version int, newest bool) (json.RawMessage, error) {
	if len(f.Param) == 0 {
		return f.ReadFile(a)
	}
	task, err := server.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	old := task.Params
	if len(old) == 0 {
		old = json.RawMessage("null") // the task was started with an input that is no object
	}
	return f.BuildParams(a, old, NewInputsLookup(ctx, server, task.Flow, versionOf(task, version, newest)))
}

// versionOf returns the version for the new task; 0 means the newest version.
func versionOf(old *wire.Task, version int, newest bool) int {
	if newest || version > 0 {
		return version
	}
	return old.Version
}
