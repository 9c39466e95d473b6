package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type taskHistoryCmd struct {
	remoteFlags
	Task string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
	Runs bool   `xor:"what" help:"Show attempts and ends of steps instead of events."`
	Logs bool   `xor:"what" help:"Show what attempts have printed instead of events."`
}

func (c *taskHistoryCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	c.Task, err = taskID(ctx, server, c.Task)
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

func (c *taskHistoryCmd) printEvents(ctx context.Context, a *app, server *client.Client) error {
	events, err := readAll(0, func(p client.Paging) (*wire.Page[wire.Event], error) {
		return server.Events(ctx, c.Task, p.Cursor, p.Limit)
	})
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, events)
	}
	var rows [][]string
	for _, e := range events {
		rows = append(rows, []string{e.ID, formatPreciseTime(e.At), e.Type, placeOf(&e.Place), eventText(&e)})
	}
	return printTable(a.stdout, []string{"ID", "TIME", "EVENT", "WHERE", "WHAT"}, rows)
}

// placeOf formats a place: node, visit, unit and attempt, without the parts that are redundant.
func placeOf(p *wire.Place) string {
	if p.Node == "" {
		return p.Scope
	}
	place := fmt.Sprintf("%s#%d", nodeID{p.Scope, p.Node}, p.Visit)
	if p.Attempt > 0 {
		place += fmt.Sprintf(" unit %d attempt %d", p.Unit, p.Attempt)
	}
	return place
}

func eventText(e *wire.Event) string {
	var parts []string
	for _, part := range []string{e.State, withPrefix("reason ", e.Reason),
		withPrefix("action ", e.Action), withPrefix("next ", e.Next), withPrefix("key ", e.Key),
		withPrefix("by ", e.By),
		withPrefix("worker ", e.Worker), withPrefix("output ", string(e.Output)), withPrefix("error ", e.Error)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return truncateText(strings.Join(parts, ", "), 120)
}

func (c *taskHistoryCmd) printRuns(ctx context.Context, a *app, server *client.Client) error {
	runs, err := readAll(0, func(p client.Paging) (*wire.Page[wire.Run], error) { return server.Runs(ctx, c.Task, p) })
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, runs)
	}
	var rows [][]string
	for _, r := range runs {
		rows = append(rows, []string{fmt.Sprintf("%s#%d", nodeID{r.Scope, r.Node}, r.Visit),
			orElse(r.Branch, fmt.Sprint(r.Unit)), fmt.Sprint(r.Attempt),
			r.State, orElse(r.Reason, r.Action), r.Worker, formatPreciseTime(r.StartedAt),
			formatElapsed(r.StartedAt, r.EndedAt), truncateText(orElse(r.Error, string(r.Output)), 60)})
	}
	return printTable(a.stdout, []string{"NODE", "UNIT", "ATTEMPT", "STATE", "ACTION OR REASON",
		"WORKER", "STARTED", "TIME", "OUTPUT OR ERROR"}, rows)
}

// attemptLog is the output of one attempt.
type attemptLog struct {
	wire.Place
	Job     string `json:"job"`
	Content string `json:"content"`
}

func (c *taskHistoryCmd) printLogs(ctx context.Context, a *app, server *client.Client) error {
	runs, err := readAll(0, func(p client.Paging) (*wire.Page[wire.Run], error) { return server.Runs(ctx, c.Task, p) })
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
			continue // it has printed nothing yet
		}
		if err != nil {
			return err
		}
		logs = append(logs, attemptLog{r.Place, r.Job, content})
	}
	if c.isJSON() {
		return printJSON(a.stdout, logs)
	}
	for _, l := range logs {
		fmt.Fprintf(a.stdout, "%s:\n", sanitizeText(placeOf(&l.Place)))
		for line := range strings.Lines(l.Content) {
			fmt.Fprintf(a.stdout, "  %s\n", sanitizeText(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}
