package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type taskRetryCmd struct {
	tasksArg
	Node    string   `placeholder:"STEP" help:"Of a dag, go on with this failed step alone, and with what was skipped because of it."`
	Version string   `placeholder:"N|newest" help:"Go on in a new task that runs this version of the flow: steps whose nodes are the same keep their results."`
	From    string   `placeholder:"NODE" help:"Go on in a new task from this node, which is done again with all that follows."`
	Params  string   `placeholder:"JSON" help:"Params of the new task, a JSON object; without, those of the old one."`
	Param   []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"One of the params of the new task that is another one than the old one's, written as for task start. May be repeated."`
	DryRun  bool     `help:"Show what a new task would keep and do again, and start none."`
}

func (c *taskRetryCmd) Run(ctx context.Context, a *app) error {
	anew := c.Version != "" || c.From != "" || c.Params != "" || len(c.Param) > 0 || c.DryRun
	switch {
	case c.Node != "" && anew:
		return usagef("--node goes on in the task itself, and the other flags in a new one: give one of them")
	case c.Node != "":
		return c.each(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.RetryStep(ctx, id, c.Node) })
	case !anew:
		return c.each(ctx, a, func(s *client.Client, id string) (*wire.TaskSummary, error) { return s.Retry(ctx, id) })
	}
	return c.eachID(ctx, func(server *client.Client, id string) error {
		fork, err := c.fork(ctx, server, id)
		if err != nil {
			return err
		}
		forked, err := server.Fork(ctx, id, fork)
		if err != nil {
			return err
		}
		return c.showFork(a, forked)
	})
}

// fork is what is asked for a task.
func (c *taskRetryCmd) fork(ctx context.Context, server *client.Client, id string) (f wire.Fork, err error) {
	f.From, f.DryRun = c.From, c.DryRun
	switch c.Version {
	case "", "same":
	case "newest", "latest":
		f.Newest = true
	default:
		if f.Version, err = strconv.Atoi(c.Version); err != nil || f.Version < 1 {
			return f, usagef("--version %q is neither a number from 1 on nor newest", c.Version)
		}
	}
	f.Params, err = c.params(ctx, server, id, f)
	return f, err
}

// params of the new task: the old one's with what the flags say.
func (c *taskRetryCmd) params(ctx context.Context, server *client.Client, id string, f wire.Fork) (json.RawMessage, error) {
	text := json.RawMessage(c.Params)
	if len(c.Param) == 0 {
		return text, nil
	}
	task, err := server.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		text = task.Params
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, usagef("-p changes params that are a JSON object, and these are none: send all with --params")
	}
	single, err := pairs("-p", c.Param)
	if err != nil {
		return nil, err
	}
	in, err := declaredBy(ctx, server, task.Flow, versionOf(task, f))()
	if err != nil {
		return nil, err
	}
	for key, value := range single {
		name, v, err := param(in, key, value)
		if err != nil {
			return nil, err
		}
		object[name] = v
	}
	return json.Marshal(object)
}

// versionOf is the version that the new task runs; 0 = the newest one.
func versionOf(old *wire.Task, f wire.Fork) int {
	if f.Newest || f.Version > 0 {
		return f.Version
	}
	return old.Version
}

func (c *taskRetryCmd) showFork(a *app, f *wire.Forked) error {
	if c.json() {
		return printJSON(a.stdout, f)
	}
	if f.ID != "" {
		_, err := fmt.Fprintf(a.stdout, "%s  goes on from %s with version %d: %s kept, %s done again\n", clean(f.ID), clean(f.From), f.Version, steps(f.KeptSteps), steps(f.AgainSteps))
		return err
	}
	fmt.Fprintf(a.stdout, "A new task of version %d would go on from %s: %s kept, %s done again\n", f.Version, clean(f.From), steps(f.KeptSteps), steps(f.AgainSteps))
	var rows [][]string
	for _, s := range f.Keeps {
		rows = append(rows, []string{stepOf(&s), "kept", ""})
	}
	for _, s := range f.Again {
		rows = append(rows, []string{stepOf(&s), "again", whyAgain[s.Why]})
	}
	return printTable(a.stdout, []string{"STEP", "RESULT", "WHY"}, rows)
}

// whyAgain are reasons in words.
var whyAgain = map[string]string{
	"changed": "its node does something else in that version",
	"after":   "what it follows is done again, or leads elsewhere",
	"asked":   "--from names it",
	"undone":  "it was compensated",
	"failed":  "it failed",
	"unended": "it was under way when the task ended",
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

func steps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}
