package tasks

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// waitForStep waits until a step of a task has ended and prints it.
func waitForStep(ctx context.Context, a *console.App, out console.OutputFlag, server *client.Client, id, node string) error {
	step, err := server.WaitForStep(ctx, id, node)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("interrupted; the task continues: troupe task watch %s --wait-until '%s'", id, node)
	case err != nil:
		return fmt.Errorf("%w\nThe task: troupe task show %s", err, id)
	case out.IsJSON():
		err = console.PrintJSON(a.Stdout, struct {
			Task string `json:"task"`
			*wire.Step
		}{id, step})
	default:
		err = printEndedStep(a, id, step)
	}
	if err == nil && step.State != "completed" {
		return console.ErrFailed
	}
	return err
}

func printEndedStep(a *console.App, task string, s *wire.Step) error {
	return console.PrintFields(a.Stdout, "Task", task, "Step", nodeID{s.Scope, s.Node}.String(), "Visit", fmt.Sprint(s.Visit),
		"State", s.State, "Action", s.Action, "Duration", console.FormatElapsed(s.EnteredAt, s.EndedAt),
		"Reason", s.Reason, "Error", s.Error, "Output", string(s.Output))
}
