// Package tasks has the commands that work on tasks and their approvals, and the progress of a task
// as it is shown.
package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// Command holds the commands for tasks.
type Command struct {
	Start    taskStartCmd    `cmd:"" help:"Start a task of a flow."`
	List     taskListCmd     `cmd:"" help:"List tasks, newest first."`
	Show     taskShowCmd     `cmd:"" help:"Show a task and what it waits for."`
	Watch    taskWatchCmd    `cmd:"" help:"Watch a task until it ends."`
	Cancel   taskCancelCmd   `cmd:"" help:"Cancel tasks and their jobs."`
	Pause    taskPauseCmd    `cmd:"" help:"Pause tasks: no new attempts start."`
	Resume   taskResumeCmd   `cmd:"" help:"Resume paused tasks."`
	Retry    taskRetryCmd    `cmd:"" help:"Continue failed tasks where they failed."`
	Fork     taskForkCmd     `cmd:"" help:"Start a new task from any point of a task's history, or from a node."`
	Rerun    taskRerunCmd    `cmd:"" help:"Start a new task with the same input."`
	Compare  taskCompareCmd  `cmd:"" help:"Compare two tasks node by node."`
	Append   taskAppendCmd   `cmd:"" help:"Append units to a fan-out step."`
	Complete taskCompleteCmd `cmd:"" help:"Complete or fail a unit with route: direct."`
	Signal   taskSignalCmd   `cmd:"" help:"Send a signal: set a key of a task's shared state."`
	History  taskHistoryCmd  `cmd:"" help:"Show a task's events, attempts or logs."`
	Logs     taskLogsCmd     `cmd:"" help:"Show the logs of a task's attempts."`
	Stream   taskStreamCmd   `cmd:"" help:"Show the values that a task's steps write to a stream."`
}

type taskStartCmd struct {
	console.RemoteFlags
	InputFlags
	Flow      string `arg:"" complete:"flow" help:"Flow slug or ID."`
	Version   int    `help:"Version number; 0 = newest."`
	Key       string `help:"Idempotency key: the same key and flow give the same task."`
	Each      string `placeholder:"FILE" help:"Start a task for each JSON value in this file, such as one object of params per line; - is stdin. With --key KEY, the tasks have the keys KEY:1, KEY:2, …, so the command can be repeated safely."`
	DryRun    bool   `help:"Show what the task would do without starting it."`
	Wait      bool   `xor:"wait" help:"Wait for the end. Exit with 1 if the task does not complete."`
	WaitUntil string `xor:"wait" placeholder:"NODE" help:"Wait for the end of this step instead, and print its output. NODE#2 is its second visit; in a function it is the name of a step. Exit with 1 if the step does not complete."`
}

func (c *taskStartCmd) Run(ctx context.Context, a *console.App) error {
	if err := c.checkFlags(); err != nil {
		return err
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if c.Flow, err = console.FindFlow(ctx, server, c.Flow); err != nil {
		return err
	}
	if c.Each != "" {
		return c.startEach(ctx, a, server)
	}
	start, err := c.BuildStart(a, c.Flow, NewInputsLookup(ctx, server, c.Flow, c.Version))
	if err != nil {
		return err
	}
	start.Version, start.IdempotencyKey, start.DryRun = c.Version, c.Key, c.DryRun
	if c.WaitUntil != "" {
		// The server checks the node before it starts the task. It answers at once, so that an
		// interrupted command knows the task.
		start.WaitUntil, start.WaitMS = c.WaitUntil, 1
	}
	started, err := server.Start(ctx, start)
	switch {
	case err != nil:
		return AddInputHint(c.Flow, err)
	case c.Wait:
		return WaitForTask(ctx, a, c.OutputFlag, server, started.ID)
	case c.WaitUntil != "":
		return waitForStep(ctx, a, c.OutputFlag, server, started.ID, c.WaitUntil)
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, started)
	case c.DryRun:
		return showForesight(a, started.Preview)
	}
	fmt.Fprintln(a.Stdout, console.SanitizeText(started.ID))
	return nil
}

// checkFlags rejects flags that exclude each other.
func (c *taskStartCmd) checkFlags() error {
	isWaiting := c.Wait || c.WaitUntil != ""
	switch {
	case isWaiting && c.DryRun:
		return errDryWait
	case c.Each != "" && (isWaiting || c.DryRun || c.hasInput()):
		return console.NewUsageError("--each takes the inputs from its file: " +
			"omit other inputs, --wait, --wait-until and --dry-run")
	}
	return nil
}

// WaitForTask waits until a task has ended and prints it.
func WaitForTask(ctx context.Context, a *console.App, out console.OutputFlag, server *client.Client, id string) error {
	task, err := server.Wait(ctx, id)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted; the task continues: troupe task watch %s", id)
	}
	if err != nil {
		return fmt.Errorf("%w\nThe task continues: troupe task watch %s", err, id)
	}
	if out.IsJSON() {
		err = console.PrintJSON(a.Stdout, task)
	} else {
		err = printEnded(a, task)
	}
	if err == nil && task.State != "completed" {
		return console.ErrFailed
	}
	return err
}

func printEnded(a *console.App, t *wire.Task) error {
	return console.PrintFields(a.Stdout, "Task", t.ID, "State", console.FormatState(&t.TaskSummary), "Steps",
		fmt.Sprint(t.Steps), "Duration", console.FormatElapsed(t.CreatedAt, t.EndedAt),
		"Error", t.Error, "Result", string(t.Result))
}

type taskListCmd struct {
	console.RemoteFlags
	console.PagingFlags
	Flow       string   `complete:"flow" help:"Filter by flow."`
	State      []string `complete:"state" help:"Filter by state: pending, running, completed, failed, canceling, canceled or paused. Repeatable."`
	Label      []string `sep:"none" placeholder:"NAME=TEXT" help:"Filter by label. Repeatable."`
	WaitingFor []string `help:"Filter by kind of wait: approval, signal, timer or manual (a unit with route: direct). Repeatable."`
	Queued     string   `complete:"service" placeholder:"SERVICE" help:"Filter by tasks with jobs in the queue of this service."`
	Since      string   `placeholder:"WHEN" help:"Filter by start time: an age such as 90m, 36h or 30d, or a time such as 2026-01-31 or RFC 3339."`
}

func (c *taskListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	filter, err := c.buildQuery(ctx, server)
	if err != nil {
		return err
	}
	tasks, err := console.ReadPage(c.PagingFlags, func(p client.Paging) (*wire.Page[wire.TaskSummary], error) {
		filter.Paging = p
		return server.Tasks(ctx, filter)
	})
	if err != nil {
		return err
	}
	t := console.Table{Header: []string{"TASK", "FLOW", "STATE", "STEPS", "NODE", "STARTED", "DURATION",
		"ERROR"}, Spare: []string{"STEPS", "NODE", "DURATION", "STARTED"}}
	return console.PrintPage(a, c.OutputFlag, tasks, t, func(t *wire.TaskSummary) []string {
		return []string{t.ID, t.Flow, console.FormatState(t), fmt.Sprint(t.Steps), t.Node,
			console.FormatTime(t.CreatedAt), console.FormatElapsed(t.CreatedAt, t.EndedAt), console.TruncateText(t.Error, 60)}
	})
}

func (c *taskListCmd) buildQuery(ctx context.Context, server *client.Client) (q client.TaskQuery, err error) {
	q.States, q.Waits, q.Queued = c.State, c.WaitingFor, c.Queued
	if q.Labels, err = parsePairs("--label", c.Label); err != nil {
		return q, err
	}
	if q.CreatedFrom, err = console.ParseSince("--since", c.Since, time.Now()); err != nil {
		return q, err
	}
	q.Flow, err = console.FindFlow(ctx, server, c.Flow)
	return q, err
}
