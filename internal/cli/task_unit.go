package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/troupe-engine/troupe/api/wire"
)

// stepArg identifies a step of a task.
type stepArg struct {
	remoteFlags
	Task  string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
	Step  string `arg:"" help:"Slug of the step, as task show lists it; of one in a scope inside also the whole, as in review#1/sign."`
	Scope string `help:"Scope of the step, when it is not in the task's root."`
}

// scoped matches a step with the scope in front of it, in the form in which progress and waits are
// printed.
var scoped = regexp.MustCompile(`^(.*#[0-9.]+|~[0-9]*)/([^#]+)$`)

func (s *stepArg) stepName() wire.StepName {
	if parts := scoped.FindStringSubmatch(s.Step); parts != nil && s.Scope == "" {
		return wire.StepName{Step: parts[2], Scope: parts[1]}
	}
	return wire.StepName{Step: s.Step, Scope: s.Scope}
}

type taskAppendCmd struct {
	stepArg
	Items []string `arg:"" optional:"" name:"item" help:"One for each new unit: JSON, or else text."`
	List  string   `placeholder:"JSON|@FILE" help:"A JSON list of items; @FILE reads it from a file, @- from stdin."`
}

func (c *taskAppendCmd) Run(ctx context.Context, a *app) error {
	var items []json.RawMessage
	if c.List != "" {
		list, err := a.readJSONValue("--list", c.List)
		if err != nil {
			return err
		}
		if json.Unmarshal(list, &items) != nil {
			return newUsageError("--list is no JSON list")
		}
	}
	for _, item := range c.Items {
		items = append(items, jsonOrText(item))
	}
	if len(items) == 0 {
		return newUsageError("say what to append: items, or --list")
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	id, err := taskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	added, err := server.Append(ctx, id, wire.Append{StepName: c.stepName(), Items: items})
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printLine(a.stdout, added)
	}
	for _, unit := range added.Units {
		fmt.Fprintf(a.stdout, "%s unit %d\n", sanitizeText(c.Step), unit)
	}
	return nil
}

type taskCompleteCmd struct {
	stepArg
	Output *string `arg:"" optional:"" help:"Its output: JSON, or else text; null when absent."`
	Unit   int     `help:"Index of the unit, from 0."`
	Error  *string `placeholder:"TEXT" help:"It has failed, and why."`
}

func (c *taskCompleteCmd) Run(ctx context.Context, a *app) error {
	u := wire.Complete{StepName: c.stepName(), Unit: c.Unit}
	switch {
	case c.Error != nil && c.Output != nil:
		return newUsageError("a unit ends with an output or with --error, not with both")
	case c.Error != nil && *c.Error == "":
		return newUsageError("--error is empty: say why the unit has failed")
	case c.Error != nil:
		u.Error = *c.Error
	case c.Output != nil:
		u.Output = jsonOrText(*c.Output)
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	id, err := taskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	done, err := server.Complete(ctx, id, u)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printLine(a.stdout, done)
	case !done.Changed:
		fmt.Fprintf(a.stdout, "%s unit %d had ended before\n", sanitizeText(c.Step), c.Unit)
	}
	return c.showSummary(a, &done.Task)
}
