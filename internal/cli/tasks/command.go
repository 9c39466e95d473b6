package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type tasksArg struct {
	console.RemoteFlags
	Tasks []string `arg:"" optional:"" name:"task" complete:"task" help:"Task IDs or unique prefixes."`
}

type taskCancelCmd struct {
	manyArg
	Graceful bool `xor:"how" help:"Let running attempts finish, and cancel everything else."`
	Force    bool `xor:"how" help:"Also stop running compensations."`
}

func (c *taskCancelCmd) Run(ctx context.Context, a *console.App) error {
	how := wire.CancelRequest{Graceful: c.Graceful, Force: c.Force}
	switch picked, err := c.usesFilter(); {
	case err != nil:
		return err
	case picked:
		return c.runBulk(ctx, a, wire.BulkRequest{Action: "cancel", CancelRequest: how})
	}
	return c.forEachTask(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.CancelHow(ctx, id, how) })
}

// heldArg selects one step of tasks instead of the whole tasks.
type heldArg struct {
	manyArg
	Node string `placeholder:"STEP" help:"Only this step of a dag that has not started; in an inner scope with its path, such as review#1/sign."`
}

func (c *heldArg) stepName() wire.StepName { return (&stepArg{Step: c.Node}).stepName() }

// sendCommand sends a command to one step of each task, to whole tasks, or to all tasks that
// --filter selects.
func (c *heldArg) sendCommand(ctx context.Context, a *console.App, action string, step,
	task func(*client.Client, string) (*wire.TaskSummary, error)) error {
	switch picked, err := c.usesFilter(); {
	case err != nil:
		return err
	case picked && c.Node != "":
		return console.NewUsageError("--node needs task IDs, not --filter")
	case picked:
		return c.runBulk(ctx, a, wire.BulkRequest{Action: action})
	case c.Node != "":
		return c.forEachTask(ctx, a, step)
	}
	return c.forEachTask(ctx, a, task)
}

type taskPauseCmd struct{ heldArg }

func (c *taskPauseCmd) Run(ctx context.Context, a *console.App) error {
	return c.sendCommand(ctx, a, "pause",
		func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.HoldStep(ctx, id, c.stepName()) },
		func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Pause(ctx, id) })
}

type taskResumeCmd struct{ heldArg }

func (c *taskResumeCmd) Run(ctx context.Context, a *console.App) error {
	return c.sendCommand(ctx, a, "resume",
		func(s *client.Client, id string) (*wire.TaskSummary, error) {
			return s.ReleaseStep(ctx, id, c.stepName())
		},
		func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Resume(ctx, id) })
}

// forEachTask sends a command to every task and prints the resulting states.
func (c *tasksArg) forEachTask(ctx context.Context, a *console.App, command func(*client.Client, string) (*wire.TaskSummary, error)) error {
	return c.eachID(ctx, func(server *client.Client, id string) error {
		task, err := command(server, id)
		if err != nil {
			return err
		}
		return showSummary(a, c.OutputFlag, task)
	})
}

// eachID calls do for every task, and returns the first error.
func (c *tasksArg) eachID(ctx context.Context, do func(server *client.Client, id string) error) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	for _, typed := range c.Tasks {
		id, err := console.FindTaskID(ctx, server, typed)
		if err != nil {
			return err
		}
		if err := do(server, id); err != nil {
			return err
		}
	}
	return nil
}

func showSummary(a *console.App, out console.OutputFlag, t *wire.TaskSummary) error {
	if out.IsJSON() {
		return console.PrintLine(a.Stdout, t)
	}
	fmt.Fprintf(a.Stdout, "%s  %s\n", console.SanitizeText(t.ID), console.SanitizeText(console.FormatState(t)))
	if t.Warning != "" {
		fmt.Fprintf(a.Stderr, "%s: warning: %s\n", a.Name, console.SanitizeText(t.Warning))
	}
	return nil
}

type taskSignalCmd struct {
	console.RemoteFlags
	senderFlag
	Task  string  `arg:"" complete:"task" help:"Task ID or unique prefix."`
	Key   string  `arg:"" help:"Key of the shared state."`
	Value *string `arg:"" optional:"" help:"Value: JSON, or else a string (null)."`
}

// senderFlag holds the sender of signals and commands.
type senderFlag struct {
	By string `env:"TROUPE_BY" placeholder:"NAME" help:"Sender, stored in the task's history. Default: the current user."`
}

func (f *senderFlag) senderName() string {
	if f.By == "" {
		if me, err := user.Current(); err == nil { // without a user name, the sender is empty
			return me.Username
		}
	}
	return f.By
}

func (c *taskSignalCmd) Run(ctx context.Context, a *console.App) error {
	c.Sender = c.senderName()
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	value := json.RawMessage("null")
	if c.Value != nil {
		value = jsonOrText(*c.Value)
	}
	id, err := console.FindTaskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	task, err := server.Signal(ctx, id, c.Key, value)
	if err != nil {
		return err
	}
	return showSummary(a, c.OutputFlag, task)
}
