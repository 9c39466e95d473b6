package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type taskShowCmd struct {
	remote
	Task string `arg:"" help:"Id of the task."`
}

func (c *taskShowCmd) Run(ctx context.Context, a *app) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	task, err := server.Task(ctx, c.Task)
	if err != nil {
		return err
	}
	waiting, err := server.Waiting(ctx, c.Task)
	if err != nil {
		return err
	}
	if c.json() {
		return printJSON(a.stdout, struct {
			*wire.Task
			Waits []wire.Wait `json:"waits"`
		}{task, waiting.Waits})
	}
	return showTask(a, task, waiting.Waits)
}

func showTask(a *app, t *wire.Task, waits []wire.Wait) error {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		labels = append(labels, name+"="+t.Labels[name])
	}
	err := printFields(a.stdout, "Task", t.ID, "Flow", fmt.Sprintf("%s, version %d", t.Flow, t.Version), "State", stateOf(&t.TaskSummary),
		"Labels", strings.Join(labels, " "), "Node", t.Node, "Last action", t.LastAction, "Steps", fmt.Sprint(t.Steps),
		"Started", moment(t.CreatedAt), "Ended", moment(t.EndedAt), "Time", took(t.CreatedAt, t.EndedAt), "Error", t.Error,
		"Params", string(t.Params), "Shared", string(t.Shared), "Result", string(t.Result))
	if err != nil {
		return err
	}
	if err := showActive(a, t.Active); err != nil {
		return err
	}
	for _, w := range waits {
		fmt.Fprintf(a.stdout, "\nWaits: %s", clean(waitLine(&w)))
	}
	if len(waits) > 0 {
		fmt.Fprintln(a.stdout)
	}
	return nil
}

func showActive(a *app, steps []wire.Step) error {
	if len(steps) == 0 {
		return nil
	}
	var rows [][]string
	for _, s := range steps {
		row := []string{nodeID{s.Scope, s.Node}.String(), s.Kind, fmt.Sprint(s.Visit), "", "", "", "", moment(s.EnteredAt), moment(s.Due)}
		if u := s.Units; u.Total > 0 {
			row[3] = fmt.Sprintf("%d/%d", u.Done, u.Total)
			row[4], row[5], row[6] = fmt.Sprint(u.Failed), fmt.Sprint(u.InFlight), fmt.Sprint(u.Retrying)
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(a.stdout)
	return printTable(a.stdout, []string{"ACTIVE", "KIND", "VISIT", "DONE", "FAILED", "IN FLIGHT", "RETRYING", "SINCE", "UNTIL"}, rows)
}

func waitLine(w *wire.Wait) string {
	line := w.Text
	if w.Node != "" {
		line = nodeID{w.Scope, w.Node}.String() + ": " + line
	}
	return line + after(", until ", moment(w.Until))
}

type taskHistoryCmd struct {
	remote
	Task string `arg:"" help:"Id of the task."`
	Runs bool   `help:"Show attempts and ends of steps instead of events."`
}

func (c *taskHistoryCmd) Run(ctx context.Context, a *app) error {
	if c.Runs {
		return c.runs(ctx, a)
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	events, err := gather(0, func(p client.Paging) (*wire.Page[wire.Event], error) {
		return server.Events(ctx, c.Task, p.Cursor, p.Limit)
	})
	if err != nil {
		return err
	}
	if c.json() {
		return printJSON(a.stdout, events)
	}
	var rows [][]string
	for _, e := range events {
		rows = append(rows, []string{e.ID, e.At.Local().Format("15:04:05.000"), e.Type, placeOf(&e.Place), eventText(&e)})
	}
	return printTable(a.stdout, []string{"ID", "TIME", "EVENT", "WHERE", "WHAT"}, rows)
}

// placeOf names a place: node, visit, unit and attempt, as far as they say anything.
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
	for _, part := range []string{e.State, after("action ", e.Action), after("next ", e.Next), after("key ", e.Key),
		after("worker ", e.Worker), after("output ", string(e.Output)), after("error ", e.Error)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return short(strings.Join(parts, ", "), 120)
}

func (c *taskHistoryCmd) runs(ctx context.Context, a *app) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	runs, err := gather(0, func(p client.Paging) (*wire.Page[wire.Run], error) { return server.Runs(ctx, c.Task, p) })
	if err != nil {
		return err
	}
	if c.json() {
		return printJSON(a.stdout, runs)
	}
	var rows [][]string
	for _, r := range runs {
		rows = append(rows, []string{fmt.Sprintf("%s#%d", nodeID{r.Scope, r.Node}, r.Visit), orElse(r.Branch, fmt.Sprint(r.Unit)), fmt.Sprint(r.Attempt),
			r.State, r.Action, r.Worker, r.StartedAt.Local().Format("15:04:05.000"), took(r.StartedAt, r.EndedAt), short(orElse(r.Error, string(r.Output)), 60)})
	}
	return printTable(a.stdout, []string{"NODE", "UNIT", "ATTEMPT", "STATE", "ACTION", "WORKER", "STARTED", "TIME", "OUTPUT OR ERROR"}, rows)
}
