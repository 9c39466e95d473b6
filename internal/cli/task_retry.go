package cli

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type taskRetryCmd struct {
	manyArg
	Node string `placeholder:"STEP" help:"Of a dag, go on with this failed step alone, and with what was skipped because of it."`
	forkFlags
}

// anewFlags holds the differences of a new task from the old one.
type anewFlags struct {
	Params string   `placeholder:"JSON" help:"Params of the new task, a JSON object; without, those of the old one."`
	Param  []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"One of the params of the new task that is another one than the old one's, written as for task start. May be repeated."`
}

func (c *taskRetryCmd) Run(ctx context.Context, a *app) error {
	anew := c.Version != "" || c.From != "" || c.Params != "" || len(c.Param) > 0 || len(c.Set) > 0 || c.DryRun
	picked, err := c.usesFilter()
	switch {
	case err != nil:
		return err
	case picked && (c.Params != "" || len(c.Param)+len(c.Set) > 0 || c.DryRun || c.Node != ""):
		return newUsageError("--filter has tasks go on where they failed, with --version or " +
			"--from in new ones: the other flags are for tasks that are named by their ids")
	case picked && anew:
		return c.bulkAnew(ctx, a, wire.Bulk{Action: "fork", From: c.From}, c.Version)
	case picked:
		return c.runBulk(ctx, a, wire.Bulk{Action: "retry"})
	case c.Node != "" && anew:
		return newUsageError("--node goes on in the task itself, and the other flags in a new one: give one of them")
	case c.Node != "":
		return c.forEachTask(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.RetryStep(ctx, id, c.Node) })
	case !anew:
		return c.forEachTask(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Retry(ctx, id) })
	}
	return c.eachID(ctx, func(server *client.Client, id string) error {
		forked, err := c.forkTask(ctx, server, id, 0)
		if err != nil {
			return err
		}
		return c.showFork(a, forked)
	})
}

// versionFlag returns the version that a new task runs; 0 = the newest one, or that of the old
// task.
func versionFlag(text string) (number int, newest bool, err error) {
	switch text {
	case "", "same":
		return 0, false, nil
	case "newest", "latest":
		return 0, true, nil
	}
	if number, err = strconv.Atoi(text); err != nil || number < 1 {
		return 0, false, newUsageError("--version %q is neither a number from 1 on nor newest", text)
	}
	return number, false, nil
}

// mergedParams returns the params of the new task: those of the old one, changed by the flags.
func (c *anewFlags) mergedParams(ctx context.Context, server *client.Client, id string, version int, newest bool) (json.RawMessage, error) {
	text := json.RawMessage(c.Params)
	if len(c.Param) == 0 {
		return text, nil
	}
	task, err := server.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		text = task.Params
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil { // null is no object
		return nil, newUsageError("-p changes params that are a JSON object, and these are none: send all with --params")
	}
	single, err := parsePairs("-p", c.Param)
	if err != nil {
		return nil, err
	}
	in, err := declaredBy(ctx, server, task.Flow, versionOf(task, version, newest))()
	if err != nil {
		return nil, err
	}
	for key, value := range single {
		name, v, err := parseParam(in, key, value)
		if err != nil {
			return nil, err
		}
		object[name] = v
	}
	return json.Marshal(object)
}

// versionOf returns the version that the new task runs; 0 = the newest one.
func versionOf(old *wire.Task, version int, newest bool) int {
	if newest || version > 0 {
		return version
	}
	return old.Version
}
