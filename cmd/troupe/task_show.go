package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
