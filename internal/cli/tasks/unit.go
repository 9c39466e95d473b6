package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// stepArg identifies a step of a task.
type stepArg struct {
	console.RemoteFlags
	Task  string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	Step  string `arg:"" help:"Step, as listed by task show; in an inner scope with its path, such as review#1/sign."`
	Scope string `help:"Scope of the step, if not the root of the task."`
}

// scoped matches a step preceded by its scope, as progress and waits are printed.
var scoped = regexp.MustCompile(`^(.*#[0-9.]+|~[0-9]*)/([^#]+)$`)

func (s *stepArg) stepName() wire.StepName {
	if parts := scoped.FindStringSubmatch(s.Step); parts != nil && s.Scope == "" {
		return wire.StepName{Step: parts[2], Scope: parts[1]}
	}
	return wire.StepName{Step: s.Step, Scope: s.Scope}
}

type taskAppendCmd struct {
	stepArg
	Items []string `arg:"" optional:"" name:"item" help:"Input of a new unit: JSON, or else a string."`
	List  string   `placeholder:"JSON|@FILE" help:"JSON list of items. @FILE reads a file, @- reads stdin."`
}

func (c *taskAppendCmd) Run(ctx context.Context, a *console.App) error {
	var items []json.RawMessage
	if c.List != "" {
		list, err := readJSONValue(a, "--list", c.List)
		if err != nil {
			return err
		}
		if json.Unmarshal(list, &items) != nil {
			return console.NewUsageError("--list must be a JSON list")
		}
	}
	for _, item := range c.Items {
		items = append(items, jsonOrText(item))
	}
	if len(items) == 0 {
		return console.NewUsageError("give items or --list")
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	id, err := console.FindTaskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	added, err := server.Append(ctx, id, wire.AppendUnits{StepName: c.stepName(), Items: items})
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintLine(a.Stdout, added)
	}
	for _, unit := range added.Units {
		fmt.Fprintf(a.Stdout, "%s unit %d\n", console.SanitizeText(c.Step), unit)
	}
	return nil
}

type taskCompleteCmd struct {
	stepArg
	Output *string `arg:"" optional:"" help:"Output of the unit: JSON, or else a string (null)."`
	Unit   int     `help:"Index of the unit, counted from 0."`
	Error  *string `placeholder:"TEXT" help:"Error message: the unit has failed."`
}

func (c *taskCompleteCmd) Run(ctx context.Context, a *console.App) error {
	u := wire.CompleteRequest{StepName: c.stepName(), Unit: c.Unit}
	switch {
	case c.Error != nil && c.Output != nil:
		return console.NewUsageError("give either an output or --error")
	case c.Error != nil && *c.Error == "":
		return console.NewUsageError("--error is empty: give an error message")
	case c.Error != nil:
		u.Error = *c.Error
	case c.Output != nil:
		u.Output = jsonOrText(*c.Output)
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	id, err := console.FindTaskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	done, err := server.Complete(ctx, id, u)
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintLine(a.Stdout, done)
	case !done.Changed:
		fmt.Fprintf(a.Stdout, "%s unit %d had already ended\n", console.SanitizeText(c.Step), c.Unit)
	}
	return showSummary(a, c.OutputFlag, &done.Task)
}
