package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// forkFlags defines how a new task continues from another one.
type forkFlags struct {
	Version string `placeholder:"N|newest" help:"Version of the flow for the new task. Steps with unchanged nodes keep their results."`
	From    string `placeholder:"NODE" help:"Node from which the new task starts. It runs again with everything after it."`
	ParamFlags
	Set    []string `sep:"none" placeholder:"shared.KEY=JSON" help:"Value of shared for the new task: JSON, or else a string. Repeatable."`
	Result []string `sep:"none" placeholder:"STEP=JSON" help:"Result of a recorded step of a function for the new task: JSON, or else a string. Repeatable."`
	DryRun bool     `help:"Show what the new task would keep and run again, without starting it."`
}

// forkTask forks a task after a row of its history; row 0 means at its end.
func (c *forkFlags) forkTask(ctx context.Context, a *console.App, server *client.Client, id string,
	row int64) (_ *wire.ForkResult, err error) {
	f := wire.ForkRequest{From: c.From, AtSeq: row, DryRun: c.DryRun}
	if f.Version, f.Latest, err = versionFlag(c.Version); err != nil {
		return nil, err
	}
	if f.Params, err = c.paramsOfNewTask(ctx, a, server, id, f.Version, f.Latest); err != nil {
		return nil, err
	}
	if f.Shared, err = sharedOf(c.Set); err != nil {
		return nil, err
	}
	if f.Results, err = resultsOf(c.Result); err != nil {
		return nil, err
	}
	return server.Fork(ctx, id, f)
}

// resultsOf parses results of steps.
func resultsOf(list []string) (map[string]json.RawMessage, error) {
	results := map[string]json.RawMessage{}
	for _, text := range list {
		step, value, ok := strings.Cut(text, "=")
		if !ok || step == "" {
			return nil, console.NewUsageError("--result %q: use STEP=JSON, such as charge='{\"id\": 7}'", text)
		}
		results[step] = jsonOr(value)
	}
	return results, nil
}

// jsonOr returns valid JSON unchanged, and any other text as a JSON string.
func jsonOr(text string) json.RawMessage {
	if raw := json.RawMessage(text); json.Valid(raw) {
		return raw
	}
	raw, _ := json.Marshal(text) // a string can always be marshaled
	return raw
}

// sharedOf parses values of shared.
func sharedOf(set []string) (map[string]json.RawMessage, error) {
	shared := map[string]json.RawMessage{}
	for _, text := range set {
		name, value, ok := strings.Cut(text, "=")
		key, named := strings.CutPrefix(name, "shared.")
		if !ok || !named || key == "" {
			return nil, console.NewUsageError("--set %q: use shared.KEY=JSON, such as shared.customer='{\"id\": 7}'", text)
		}
		shared[key] = jsonOr(value)
	}
	return shared, nil
}

type taskForkCmd struct {
	console.RemoteFlags
	Task string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	At   int64  `placeholder:"SEQ" help:"Point of the history to start from: the first number of an event ID, such as 2 of 2.1. The task may still run."`
	forkFlags
}

func (c *taskForkCmd) Run(ctx context.Context, a *console.App) error {
	switch {
	case c.At < 0:
		return console.NewUsageError("--at %d: use the first number of an event ID: troupe task history %s", c.At, c.Task)
	case c.At > 0 && c.From != "":
		return console.NewUsageError("give either --at or --from")
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	id, err := console.FindTaskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	forked, err := c.forkTask(ctx, a, server, id, c.At)
	if err != nil {
		return err
	}
	return showFork(a, c.OutputFlag, forked)
}

func showFork(a *console.App, out console.OutputFlag, f *wire.ForkResult) error {
	if out.IsJSON() {
		return console.PrintJSON(a.Stdout, f)
	}
	if f.ID != "" {
		_, err := fmt.Fprintf(a.Stdout,
			"%s  forked from %s with version %d: %s kept, %s run again\n", console.SanitizeText(f.ID),
			console.SanitizeText(f.From), f.Version, formatSteps(f.KeptCount), formatSteps(f.RerunCount))
		return err
	}
	fmt.Fprintf(a.Stdout, "A new task of version %d from %s: %s kept, %s run again\n",
		f.Version, console.SanitizeText(f.From), formatSteps(f.KeptCount), formatSteps(f.RerunCount))
	var rows [][]string
	for _, s := range f.KeptSteps {
		rows = append(rows, []string{stepOf(&s), "kept", "", s.Output})
	}
	for _, s := range f.RerunSteps {
		rows = append(rows, []string{stepOf(&s), "run again", rerunReasons[s.Reason], ""})
	}
	if err := console.PrintTable(a.Stdout, []string{"STEP", "ACTION", "REASON", "OUTPUT"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout, "\nNext steps:")
	return showForesight(a, f.Preview)
}

// showForesight prints the predicted course of a task.
func showForesight(a *console.App, f *wire.Preview) error {
	var rows [][]string
	for _, s := range f.Steps {
		who := s.Service
		if s.Units > 1 {
			who += fmt.Sprintf(" ×%d", s.Units)
		}
		rows = append(rows, []string{stepOf(&wire.ForkStep{Scope: s.Scope, Node: s.Node, Visit: s.Visit}),
			s.Outcome, who, s.Next, s.Output})
	}
	if err := console.PrintTable(a.Stdout, []string{"STEP", "METHOD", "RUNS ON", "NEXT", "OUTPUT"}, rows); err != nil {
		return err
	}
	end := "the rest depends on results of calls and waits"
	switch {
	case f.State != "":
		end = "final state: " + f.State
	case f.Truncated:
		end = "more steps follow"
	}
	_, err := fmt.Fprintln(a.Stdout, end)
	return err
}

// rerunReasons holds the printed text of each reason why a step runs again.
var rerunReasons = map[string]string{
	"changed":     "the node changed in that version",
	"downstream":  "an earlier step runs again or chose another edge",
	"requested":   "given by --from",
	"compensated": "compensated",
	"failed":      "failed",
	"unfinished":  "was running",
}

func stepOf(s *wire.ForkStep) string {
	name := s.Node
	if s.Scope != "" {
		name = s.Scope + "/" + name
	}
	if s.Visit > 1 {
		name += fmt.Sprintf(" (visit %d)", s.Visit)
	}
	return name
}

func formatSteps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}
