package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type tasksArg struct {
	remote
	Tasks []string `arg:"" name:"task" help:"Ids of the tasks."`
}

type taskCancelCmd struct {
	tasksArg
	Gently bool `xor:"how" help:"Let what is in flight go on; nothing new starts."`
	Force  bool `xor:"how" help:"Also end compensations, when a task is at them."`
}

func (c *taskCancelCmd) Run(ctx context.Context, a *app) error {
	how := wire.Cancel{Gently: c.Gently, Force: c.Force}
	return c.each(a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.CancelHow(ctx, id, how) })
}

type taskRetryCmd struct{ tasksArg }

func (c *taskRetryCmd) Run(ctx context.Context, a *app) error {
	return c.each(a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Retry(ctx, id) })
}

type taskPauseCmd struct{ tasksArg }

func (c *taskPauseCmd) Run(ctx context.Context, a *app) error {
	return c.each(a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Pause(ctx, id) })
}

type taskResumeCmd struct{ tasksArg }

func (c *taskResumeCmd) Run(ctx context.Context, a *app) error {
	return c.each(a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Resume(ctx, id) })
}

// each gives a command to every task and shows what they are like then.
func (c *tasksArg) each(a *app, command func(*client.Client, string) (*wire.TaskSummary, error)) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	for _, id := range c.Tasks {
		task, err := command(server, id)
		if err != nil {
			return err
		}
		if err := c.showSummary(a, task); err != nil {
			return err
		}
	}
	return nil
}

func (r *remote) showSummary(a *app, t *wire.TaskSummary) error {
	if r.json() {
		return printLine(a.stdout, t)
	}
	fmt.Fprintf(a.stdout, "%s  %s\n", clean(t.ID), clean(stateOf(t)))
	return nil
}

type taskSignalCmd struct {
	remote
	Task  string `arg:"" help:"Id of the task."`
	Key   string `arg:"" help:"Key of the shared state."`
	Value string `arg:"" optional:"" help:"JSON, or else text; null when absent."`
}

func (c *taskSignalCmd) Run(ctx context.Context, a *app) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	value := json.RawMessage("null")
	if c.Value != "" {
		value = jsonOrText(c.Value)
	}
	task, err := server.Signal(ctx, c.Task, c.Key, value)
	if err != nil {
		return err
	}
	return c.showSummary(a, task)
}
