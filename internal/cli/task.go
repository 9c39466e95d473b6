package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/duration"
)

type taskCmd struct {
	Start    taskStartCmd    `cmd:"" help:"Start a task of a flow."`
	List     taskListCmd     `cmd:"" help:"List tasks, newest first."`
	Show     taskShowCmd     `cmd:"" help:"Show a task, and why it is waiting."`
	Watch    taskWatchCmd    `cmd:"" help:"Follow a task until it has ended."`
	Cancel   taskCancelCmd   `cmd:"" help:"End tasks; what they are doing is withdrawn."`
	Pause    taskPauseCmd    `cmd:"" help:"Let nothing new of tasks start."`
	Resume   taskResumeCmd   `cmd:"" help:"Let paused tasks go on."`
	Retry    taskRetryCmd    `cmd:"" help:"Let failed tasks go on where they failed, also those that were paused then."`
	Fork     taskForkCmd     `cmd:"" help:"Go on from any moment of a task, or from a node, in a new one."`
	Rerun    taskRerunCmd    `cmd:"" help:"Do again from the beginning what a task does, in a new one."`
	Compare  taskCompareCmd  `cmd:"" help:"Show what two tasks did, node by node."`
	Append   taskAppendCmd   `cmd:"" help:"Append units to a fan-out."`
	Complete taskCompleteCmd `cmd:"" help:"Complete or fail a unit that nobody carries out (route direct)."`
	Signal   taskSignalCmd   `cmd:"" help:"Set a key of a task's shared state and wake whoever waits for it."`
	History  taskHistoryCmd  `cmd:"" help:"Show a task's events, its runs, or what they printed."`
	Logs     taskLogsCmd     `cmd:"" help:"Show what a task's attempts print, while they do with --follow."`
}

type taskStartCmd struct {
	remoteFlags
	inputFlags
	Flow    string `arg:"" complete:"flow" help:"Slug or id of the flow."`
	Version int    `help:"Number of the version; 0 = the newest."`
	Key     string `help:"Idempotency key: the same key for the same flow is the same task."`
	Each    string `placeholder:"FILE" help:"Start a task for each JSON value in this file, such as an object of params in each line; - is stdin. With --key each has that and its number as its key, KEY:1 the first one, so that the same command again starts only those that are not there yet."`
	DryRun  bool   `help:"Show what the task would do, and start none."`
	Wait    bool   `help:"Wait for the end; exit with 1 if the task does not complete."`
}

func (c *taskStartCmd) Run(ctx context.Context, a *app) error {
	if c.Wait && c.DryRun {
		return errDryWait
	}
	if c.Each != "" && (c.Wait || c.DryRun || c.hasInput()) {
		return newUsageError("with --each the values in the file are what tasks are started " +
			"with, and none of them is waited for or a dry run")
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	if c.Flow, err = flowNamed(ctx, server, c.Flow); err != nil {
		return err
	}
	if c.Each != "" {
		return c.startEach(ctx, a, server)
	}
	start, err := c.buildStart(a, c.Flow, declaredBy(ctx, server, c.Flow, c.Version))
	if err != nil {
		return err
	}
	start.Version, start.IdempotencyKey, start.DryRun = c.Version, c.Key, c.DryRun
	started, err := server.Start(ctx, start)
	switch {
	case err != nil:
		return inputHint(c.Flow, err)
	case c.Wait:
		return c.waitFor(ctx, a, server, started.ID)
	case c.isJSON():
		return printJSON(a.stdout, started)
	case c.DryRun:
		return showForesight(a, started.Foresight)
	}
	fmt.Fprintln(a.stdout, sanitizeText(started.ID))
	return nil
}

// waitFor waits until a task has ended and prints it.
func (c *remoteFlags) waitFor(ctx context.Context, a *app, server *client.Client, id string) error {
	task, err := server.Wait(ctx, id)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("not waited for to its end; it goes on: troupe task watch %s", id)
	}
	if err != nil {
		return fmt.Errorf("%w\nThe task goes on without us: troupe task watch %s", err, id)
	}
	if c.isJSON() {
		err = printJSON(a.stdout, task)
	} else {
		err = printEnded(a, task)
	}
	if err == nil && task.State != "completed" {
		return errFailed
	}
	return err
}

func printEnded(a *app, t *wire.Task) error {
	return printFields(a.stdout, "Task", t.ID, "State", stateOf(&t.TaskSummary), "Steps",
		fmt.Sprint(t.Steps), "Time", formatElapsed(t.CreatedAt, t.EndedAt),
		"Error", t.Error, "Result", string(t.Result))
}

type taskListCmd struct {
	remoteFlags
	pagingFlags
	Flow   string   `complete:"flow" help:"Only those of this flow."`
	State  []string `complete:"state" help:"Only those in this state: pending, running, completed, failed, canceling, canceled, or paused. May be repeated."`
	Label  []string `sep:"none" placeholder:"NAME=TEXT" help:"Only those with this label. May be repeated."`
	Waits  []string `help:"Only those that wait for this: approval, event, timer, or manual (somebody who completes a unit). May be repeated."`
	Queued string   `complete:"service" placeholder:"SERVICE" help:"Only those with jobs in the queue of this service."`
	Since  string   `placeholder:"WHEN" help:"Only those started since: 90m, 36h, 30d, 2026-01-31 or a time as in RFC 3339."`
}

func (c *taskListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	filter, err := c.buildQuery(ctx, server)
	if err != nil {
		return err
	}
	tasks, err := readPage(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.TaskSummary], error) {
		filter.Paging = p
		return server.Tasks(ctx, filter)
	})
	if err != nil {
		return err
	}
	t := table{header: []string{"TASK", "FLOW", "STATE", "STEPS", "NODE", "STARTED", "TIME",
		"ERROR"}, spare: []string{"STEPS", "NODE", "TIME", "STARTED"}}
	return printPage(a, c.outputFlag, tasks, t, func(t *wire.TaskSummary) []string {
		return []string{t.ID, t.Flow, stateOf(t), fmt.Sprint(t.Steps), t.Node,
			formatTime(t.CreatedAt), formatElapsed(t.CreatedAt, t.EndedAt), truncateText(t.Error, 60)}
	})
}

func (c *taskListCmd) buildQuery(ctx context.Context, server *client.Client) (q client.TaskQuery, err error) {
	q.States, q.Waits, q.Queued = c.State, c.Waits, c.Queued
	if q.Labels, err = parsePairs("--label", c.Label); err != nil {
		return q, err
	}
	if q.CreatedFrom, err = parseSince("--since", c.Since, time.Now()); err != nil {
		return q, err
	}
	q.Flow, err = flowNamed(ctx, server, c.Flow)
	return q, err
}

// parseSince parses a time, or a duration before now; "" gives the zero time.
func parseSince(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := duration.Parse(text); err == nil {
		return now.Add(-d), nil
	}
	if t, ok := parseTime(text); ok {
		return t, nil
	}
	return time.Time{}, newUsageError("%s %q is neither a duration such as 90m nor a time such as 2026-01-31", flag, text)
}

// stateOf returns a task's state, with additions that the word does not imply.
func stateOf(t *wire.TaskSummary) string {
	state := t.State + formatFollowed(t.Followed)
	if t.Paused {
		return state + " (paused)"
	}
	return state
}

// formatFollowed returns a note about failed steps after which a task went on.
func formatFollowed(errors int) string {
	if errors == 0 {
		return ""
	}
	return ", " + formatCount(errors, "error") + " followed"
}
