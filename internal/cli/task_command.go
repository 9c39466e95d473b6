package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type tasksArg struct {
	remoteFlags
	Tasks []string `arg:"" optional:"" name:"task" complete:"task" help:"Ids of the tasks, or what they begin with."`
}

type taskCancelCmd struct {
	manyArg
	Gently bool `xor:"how" help:"Let what has begun go on, and cancel anything else at once."`
	Force  bool `xor:"how" help:"Also end compensations, when a task is at them."`
}

func (c *taskCancelCmd) Run(ctx context.Context, a *app) error {
	how := wire.Cancel{Gently: c.Gently, Force: c.Force}
	switch picked, err := c.usesFilter(); {
	case err != nil:
		return err
	case picked:
		return c.runBulk(ctx, a, wire.Bulk{Action: "cancel", Cancel: how})
	}
	return c.forEachTask(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.CancelHow(ctx, id, how) })
}

// heldArg selects one step of tasks instead of the whole tasks.
type heldArg struct {
	manyArg
	Node string `placeholder:"STEP" help:"Only this step of a dag, which has yet to begin; of one in a scope inside the whole, as in review#1/sign."`
}

func (c *heldArg) stepName() wire.StepName { return (&stepArg{Step: c.Node}).stepName() }

// sendCommand sends a command to one step of each task, to whole tasks, or to all tasks that
// --filter selects.
func (c *heldArg) sendCommand(ctx context.Context, a *app, action string, step,
	task func(*client.Client, string) (*wire.TaskSummary, error)) error {
	switch picked, err := c.usesFilter(); {
	case err != nil:
		return err
	case picked && c.Node != "":
		return newUsageError("--node is a step of tasks that are named by their ids")
	case picked:
		return c.runBulk(ctx, a, wire.Bulk{Action: action})
	case c.Node != "":
		return c.forEachTask(ctx, a, step)
	}
	return c.forEachTask(ctx, a, task)
}

type taskPauseCmd struct{ heldArg }

func (c *taskPauseCmd) Run(ctx context.Context, a *app) error {
	return c.sendCommand(ctx, a, "pause",
		func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.HoldStep(ctx, id, c.stepName()) },
		func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Pause(ctx, id) })
}

type taskResumeCmd struct{ heldArg }

func (c *taskResumeCmd) Run(ctx context.Context, a *app) error {
	return c.sendCommand(ctx, a, "resume",
		func(s *client.Client, id string) (*wire.TaskSummary, error) {
			return s.ReleaseStep(ctx, id, c.stepName())
		},
		func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Resume(ctx, id) })
}

// forEachTask sends a command to every task and prints the resulting states.
func (c *tasksArg) forEachTask(ctx context.Context, a *app, command func(*client.Client, string) (*wire.TaskSummary, error)) error {
	return c.eachID(ctx, func(server *client.Client, id string) error {
		task, err := command(server, id)
		if err != nil {
			return err
		}
		return c.showSummary(a, task)
	})
}

// eachID calls do for every task, until an error occurs.
func (c *tasksArg) eachID(ctx context.Context, do func(server *client.Client, id string) error) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	for _, typed := range c.Tasks {
		id, err := taskID(ctx, server, typed)
		if err != nil {
			return err
		}
		if err := do(server, id); err != nil {
			return err
		}
	}
	return nil
}

func (r *remoteFlags) showSummary(a *app, t *wire.TaskSummary) error {
	if r.isJSON() {
		return printLine(a.stdout, t)
	}
	fmt.Fprintf(a.stdout, "%s  %s\n", sanitizeText(t.ID), sanitizeText(stateOf(t)))
	if t.Warning != "" {
		fmt.Fprintf(a.stderr, "%s: warning: %s\n", a.name, sanitizeText(t.Warning))
	}
	return nil
}

type taskSignalCmd struct {
	remoteFlags
	senderFlag
	Task  string  `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
	Key   string  `arg:"" help:"Key of the shared state."`
	Value *string `arg:"" optional:"" help:"JSON, or else text; null when absent."`
}

// senderFlag holds the sender of signals and commands.
type senderFlag struct {
	By string `env:"TROUPE_BY" placeholder:"NAME" help:"Who sends it, for the task's history; by default the user of this computer."`
}

func (f *senderFlag) senderName() string {
	if f.By == "" {
		if me, err := user.Current(); err == nil { // on an error there is no name
			return me.Username
		}
	}
	return f.By
}

func (c *taskSignalCmd) Run(ctx context.Context, a *app) error {
	c.by = c.senderName()
	server, err := c.newClient()
	if err != nil {
		return err
	}
	value := json.RawMessage("null")
	if c.Value != nil {
		value = jsonOrText(*c.Value)
	}
	id, err := taskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	task, err := server.Signal(ctx, id, c.Key, value)
	if err != nil {
		return err
	}
	return c.showSummary(a, task)
}
