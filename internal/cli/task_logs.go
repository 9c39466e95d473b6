package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type taskLogsCmd struct {
	remoteFlags
	Task    string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
	Follow  bool   `short:"f" help:"Go on with what is printed from now on, until the task has ended."`
	Node    string `placeholder:"NODE" help:"Only of this node; one of a flow inside has its path before it."`
	Unit    *int   `placeholder:"N" help:"Only of this unit, from 0."`
	Attempt int    `placeholder:"N" help:"Only of this attempt, from 1."`
	Stream  string `enum:",log,stdout,stderr" default:"" help:"Only what was printed there: log, stdout or stderr."`
	Times   bool   `help:"Say when each line was printed."`
}

// Help describes the output.
func (taskLogsCmd) Help() string {
	return "Each line begins with the node, visit, unit and attempt that it is of. --output " +
		"json prints the lines with all that is known of them, one a line."
}

func (c *taskLogsCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	if c.Task, err = taskID(ctx, server, c.Task); err != nil {
		return err
	}
	q := client.LogQuery{Node: c.Node, Unit: c.Unit, Attempt: c.Attempt, Stream: c.Stream}
	if err := c.printStored(ctx, a, server, &q); err != nil || !c.Follow {
		return err
	}
	return c.followLogs(ctx, a, server, q)
}

// printStored prints the stored lines, and moves the query behind them.
func (c *taskLogsCmd) printStored(ctx context.Context, a *app, server *client.Client, q *client.LogQuery) error {
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
func (c *taskLogsCmd) followLogs(ctx context.Context, a *app, server *client.Client, q client.LogQuery) error {
	for line, err := range server.FollowLogs(ctx, c.Task, q) {
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("not followed to its end; go on with troupe task logs --follow %s", c.Task)
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
func (c *taskLogsCmd) printEntry(a *app, l *wire.LogEntry) error {
	if c.isJSON() {
		return printLine(a.stdout, l)
	}
	if l.Missing != nil {
		fmt.Fprintf(a.stdout, "%s | … cut here: %d characters (%d lines) are not kept\n",
			sanitizeText(placeOf(&l.Place)), l.Missing.Chars, l.Missing.Lines)
	}
	var b strings.Builder
	if c.Times {
		b.WriteString(l.At.Format("15:04:05.000") + " ")
	}
	b.WriteString(sanitizeText(placeOf(&l.Place)))
	mark := " | "
	if l.Stream == "stderr" {
		mark = " ! "
	}
	_, err := fmt.Fprintf(a.stdout, "%s%s%s\n", b.String(), mark, sanitizeText(l.Text))
	return err
}
