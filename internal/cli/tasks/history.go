package tasks

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type taskHistoryCmd struct {
	console.RemoteFlags
	Task string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	Runs bool   `xor:"what" help:"Show attempts and ended steps instead of events."`
	Logs bool   `xor:"what" help:"Show logs of attempts instead of events."`
}

func (c *taskHistoryCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	c.Task, err = console.FindTaskID(ctx, server, c.Task)
	switch {
	case err != nil:
		return err
	case c.Runs:
		return c.printRuns(ctx, a, server)
	case c.Logs:
		return c.printLogs(ctx, a, server)
	}
	return c.printEvents(ctx, a, server)
}

func (c *taskHistoryCmd) printEvents(ctx context.Context, a *console.App, server *client.Client) error {
	events, err := console.ReadAll(0, func(p client.Paging) (*wire.Page[wire.Event], error) {
		return server.Events(ctx, c.Task, p.Cursor, p.Limit)
	})
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, events)
	}
	var rows [][]string
	for _, e := range events {
		rows = append(rows, []string{e.ID, console.FormatPreciseTime(e.At), e.Type, console.FormatPlace(&e.Place), eventText(&e)})
	}
	return console.PrintTable(a.Stdout, []string{"ID", "TIME", "EVENT", "STEP", "DETAILS"}, rows)
}

func eventText(e *wire.Event) string {
	var parts []string
	for _, part := range []string{e.State, console.AddPrefix("reason ", e.Reason),
		console.AddPrefix("action ", e.Action), console.AddPrefix("next ", e.Next), console.AddPrefix("key ", e.Key),
		console.AddPrefix("by ", e.SentBy),
		console.AddPrefix("worker ", e.Worker), console.AddPrefix("output ", string(e.Output)), console.AddPrefix("error ", e.Error)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return console.TruncateText(strings.Join(parts, ", "), 120)
}

func (c *taskHistoryCmd) printRuns(ctx context.Context, a *console.App, server *client.Client) error {
	runs, err := console.ReadAll(0, func(p client.Paging) (*wire.Page[wire.Run], error) { return server.Runs(ctx, c.Task, p) })
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, runs)
	}
	var rows [][]string
	for _, r := range runs {
		rows = append(rows, []string{fmt.Sprintf("%s#%d", nodeID{r.Scope, r.Node}, r.Visit),
			cmp.Or(r.Branch, fmt.Sprint(r.Unit)), fmt.Sprint(r.Attempt),
			r.State, cmp.Or(r.Reason, r.Action), r.Worker, console.FormatPreciseTime(r.StartedAt),
			console.FormatElapsed(r.StartedAt, r.EndedAt), console.TruncateText(cmp.Or(r.Error, string(r.Output)), 60)})
	}
	return console.PrintTable(a.Stdout, []string{"NODE", "UNIT", "ATTEMPT", "STATE", "ACTION OR REASON",
		"WORKER", "STARTED", "DURATION", "OUTPUT OR ERROR"}, rows)
}

// attemptLog is the output of one attempt.
type attemptLog struct {
	wire.Place
	Job     string `json:"job"`
	Content string `json:"content"`
}

func (c *taskHistoryCmd) printLogs(ctx context.Context, a *console.App, server *client.Client) error {
	runs, err := console.ReadAll(0, func(p client.Paging) (*wire.Page[wire.Run], error) { return server.Runs(ctx, c.Task, p) })
	if err != nil {
		return err
	}
	logs := []attemptLog{}
	for _, r := range runs {
		if !r.Log && r.State != "running" {
			continue
		}
		content, err := server.Log(ctx, r.Job)
		if client.KindOf(err) == "not_found" && !r.Log {
			continue // the attempt has printed nothing yet
		}
		if err != nil {
			return err
		}
		logs = append(logs, attemptLog{r.Place, r.Job, content})
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, logs)
	}
	for _, l := range logs {
		fmt.Fprintf(a.Stdout, "%s:\n", console.SanitizeText(console.FormatPlace(&l.Place)))
		for line := range strings.Lines(l.Content) {
			fmt.Fprintf(a.Stdout, "  %s\n", console.SanitizeText(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}
