package tasks

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type taskStreamCmd struct {
	console.RemoteFlags
	Task   string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	Name   string `arg:"" optional:"" help:"Name of the stream; without it, list the streams of the task."`
	Follow bool   `short:"f" help:"Follow new values until the stream or the task ends."`
	From   int64  `placeholder:"N" help:"Offset of the first value, counted from 0."`
}

// Help describes the output.
func (taskStreamCmd) Help() string {
	return "Each value is one line: a text as it is, any other value as JSON. " +
		"--output json prints one JSON object per value, with its offset, step, attempt and try."
}

func (c *taskStreamCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if c.Task, err = console.FindTaskID(ctx, server, c.Task); err != nil {
		return err
	}
	switch {
	case c.Name == "":
		return c.listStreams(ctx, a, server)
	case c.Follow:
		return c.followStream(ctx, a, server)
	}
	return c.printValues(ctx, a, server)
}

// listStreams prints the streams of the task.
func (c *taskStreamCmd) listStreams(ctx context.Context, a *console.App, server *client.Client) error {
	list, err := server.Streams(ctx, c.Task)
	if err != nil {
		return err
	}
	for i := range list {
		if c.IsJSON() {
			err = console.PrintLine(a.Stdout, &list[i])
		} else {
			_, err = fmt.Fprintf(a.Stdout, "%s  %d values\n", console.SanitizeText(list[i].Name), list[i].Length)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printValues prints the stored values.
func (c *taskStreamCmd) printValues(ctx context.Context, a *console.App, server *client.Client) error {
	for from := c.From; ; {
		page, err := server.StreamPage(ctx, c.Task, c.Name, from, 0)
		if err != nil {
			return err
		}
		for i := range page.Values {
			if err := c.printValue(a, &page.Values[i]); err != nil {
				return err
			}
		}
		if len(page.Values) == 0 {
			return nil
		}
		from = page.Next
	}
}

// followStream prints values until the stream or the task has ended.
func (c *taskStreamCmd) followStream(ctx context.Context, a *console.App, server *client.Client) error {
	from := c.From
	for value, err := range server.FollowStream(ctx, c.Task, c.Name, c.From) {
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("interrupted; continue with troupe task stream --follow --from %d %s %s", from, c.Task, c.Name)
		}
		if err != nil {
			return err
		}
		if err := c.printValue(a, &value); err != nil {
			return err
		}
		from = value.Offset + 1
	}
	return nil
}

func (c *taskStreamCmd) printValue(a *console.App, v *wire.StreamValue) error {
	if c.IsJSON() {
		return console.PrintLine(a.Stdout, v)
	}
	text := string(v.Value)
	if said := ""; json.Unmarshal(v.Value, &said) == nil {
		text = said
	}
	_, err := fmt.Fprintln(a.Stdout, console.SanitizeText(text))
	return err
}
