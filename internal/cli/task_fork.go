package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// forkFlags defines how a new task continues from another one.
type forkFlags struct {
	Version string `placeholder:"N|newest" help:"Go on in a new task that runs this version of the flow: steps whose nodes are the same keep their results."`
	From    string `placeholder:"NODE" help:"Go on in a new task from this node, which is done again with all that follows."`
	anewFlags
	Set    []string `sep:"none" placeholder:"shared.KEY=JSON" help:"Go on with this value in shared, in place of that of the other task; a text need not be quoted. May be repeated."`
	DryRun bool     `help:"Show what a new task would keep and do again, and start none."`
}

// forkTask forks a task after a row of its history; 0 = at its end.
func (c *forkFlags) forkTask(ctx context.Context, server *client.Client, id string, row int64) (_ *wire.Forked, err error) {
	f := wire.Fork{From: c.From, At: row, DryRun: c.DryRun}
	if f.Version, f.Newest, err = versionFlag(c.Version); err != nil {
		return nil, err
	}
	if f.Params, err = c.mergedParams(ctx, server, id, f.Version, f.Newest); err != nil {
		return nil, err
	}
	if f.Shared, err = sharedOf(c.Set); err != nil {
		return nil, err
	}
	return server.Fork(ctx, id, f)
}

// sharedOf parses values of shared.
func sharedOf(set []string) (map[string]json.RawMessage, error) {
	shared := map[string]json.RawMessage{}
	for _, text := range set {
		name, value, ok := strings.Cut(text, "=")
		key, named := strings.CutPrefix(name, "shared.")
		if !ok || !named || key == "" {
			return nil, newUsageError("--set %q: write shared.KEY=JSON, such as shared.customer='{\"id\": 7}'", text)
		}
		if shared[key] = json.RawMessage(value); !json.Valid(shared[key]) {
			shared[key], _ = json.Marshal(value) // a string can always be marshaled
		}
	}
	return shared, nil
}

type taskForkCmd struct {
	remoteFlags
	Task string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
	At   int64  `placeholder:"SEQ" help:"Go on from what the task was when this was stored: a seq of its history. The task need not have ended."`
	forkFlags
}

func (c *taskForkCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.At < 0:
		return newUsageError("--at %d is no seq of a history, which are counted from 1: troupe task history %s tells them", c.At, c.Task)
	case c.At > 0 && c.From != "":
		return newUsageError("--at goes on behind a row of the history, and --from from a node: give one of them")
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	id, err := taskID(ctx, server, c.Task)
	if err != nil {
		return err
	}
	forked, err := c.forkTask(ctx, server, id, c.At)
	if err != nil {
		return err
	}
	return c.showFork(a, forked)
}

func (o outputFlag) showFork(a *app, f *wire.Forked) error {
	if o.isJSON() {
		return printJSON(a.stdout, f)
	}
	if f.ID != "" {
		_, err := fmt.Fprintf(a.stdout,
			"%s  goes on from %s with version %d: %s kept, %s done again\n", sanitizeText(f.ID),
			sanitizeText(f.From), f.Version, formatSteps(f.KeptSteps), formatSteps(f.AgainSteps))
		return err
	}
	fmt.Fprintf(a.stdout, "A new task of version %d would go on from %s: %s kept, %s done again\n",
		f.Version, sanitizeText(f.From), formatSteps(f.KeptSteps), formatSteps(f.AgainSteps))
	var rows [][]string
	for _, s := range f.Keeps {
		rows = append(rows, []string{stepOf(&s), "kept", "", s.Output})
	}
	for _, s := range f.Again {
		rows = append(rows, []string{stepOf(&s), "again", rerunReasons[s.Why], ""})
	}
	if err := printTable(a.stdout, []string{"STEP", "RESULT", "WHY", "OUTPUT"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "\nIt would do this:")
	return showForesight(a, f.Foresight)
}

// showForesight prints the predicted course of a task.
func showForesight(a *app, f *wire.Foresight) error {
	var rows [][]string
	for _, s := range f.Steps {
		who := s.Service
		if s.Calls > 1 {
			who += fmt.Sprintf(" ×%d", s.Calls)
		}
		rows = append(rows, []string{stepOf(&wire.ForkStep{Scope: s.Scope, Node: s.Node, Visit: s.Visit}), s.How, who, s.Next, s.Output})
	}
	if err := printTable(a.stdout, []string{"STEP", "HOW", "WHO", "NEXT", "OUTPUT"}, rows); err != nil {
		return err
	}
	end := "what comes then depends on what is called or waited for"
	switch {
	case f.State != "":
		end = "it would be " + f.State
	case f.More:
		end = "and so on"
	}
	_, err := fmt.Fprintln(a.stdout, end)
	return err
}

// rerunReasons holds the texts of reasons.
var rerunReasons = map[string]string{
	"changed": "its node does something else in that version",
	"after":   "what it follows is done again, or leads elsewhere",
	"asked":   "--from names it",
	"undone":  "it was compensated",
	"failed":  "it failed",
	"unended": "it was under way then",
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
