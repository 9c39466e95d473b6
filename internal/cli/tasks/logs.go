package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type taskLogsCmd struct {
	console.RemoteFlags
	Task    string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	Follow  bool   `short:"f" help:"Follow new lines until the task ends."`
	Node    string `placeholder:"NODE" help:"Filter by node; in an inner scope with its path."`
	Unit    *int   `placeholder:"N" help:"Filter by unit, counted from 0."`
	Attempt int    `placeholder:"N" help:"Filter by attempt, counted from 1."`
	Stream  string `enum:",log,stdout,stderr" default:"" help:"Filter by stream: log, stdout or stderr."`
	Times   bool   `help:"Print the time of each line."`
}

// Help describes the output.
func (taskLogsCmd) Help() string {
	return "Each line starts with its node, visit, unit and attempt. " +
		"--output json prints one JSON object per line."
}

func (c *taskLogsCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if c.Task, err = console.FindTaskID(ctx, server, c.Task); err != nil {
		return err
	}
	q := client.LogQuery{Node: c.Node, Unit: c.Unit, Attempt: c.Attempt, Stream: c.Stream}
	if err := c.printStored(ctx, a, server, &q); err != nil || !c.Follow {
		return err
	}
	return c.followLogs(ctx, a, server, q)
}

// printStored prints the stored lines, and moves the query behind them.
func (c *taskLogsCmd) printStored(ctx context.Context, a *console.App, server *client.Client, q *client.LogQuery) error {
	for {
		page, err := server.Logs(ctx, c.Task, *q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := c.printEntry(a, &page.Items[i]); err != nil {
				return err
			}
			q.After = page.Items[i].ID
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// followLogs prints new lines until the task has ended.
func (c *taskLogsCmd) followLogs(ctx context.Context, a *console.App, server *client.Client, q client.LogQuery) error {
	for line, err := range server.FollowLogs(ctx, c.Task, q) {
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("interrupted; continue with troupe task logs --follow %s", c.Task)
		}
		if err != nil {
			return err
		}
		if err := c.printEntry(a, &line); err != nil {
			return err
		}
	}
	return nil
}

// printEntry prints a line.
func (c *taskLogsCmd) printEntry(a *console.App, l *wire.LogEntry) error {
	if c.IsJSON() {
		return console.PrintLine(a.Stdout, l)
	}
	if l.Omitted != nil {
		fmt.Fprintf(a.Stdout, "%s | … %d characters (%d lines) were dropped\n",
			console.SanitizeText(console.FormatPlace(&l.Place)), l.Omitted.Characters, l.Omitted.Lines)
	}
	var b strings.Builder
	if c.Times {
		b.WriteString(l.At.Format("15:04:05.000") + " ")
	}
	b.WriteString(console.SanitizeText(console.FormatPlace(&l.Place)))
	mark := " | "
	if l.Stream == "stderr" {
		mark = " ! "
	}
	_, err := fmt.Fprintf(a.Stdout, "%s%s%s\n", b.String(), mark, console.SanitizeText(l.Text))
	return err
}
