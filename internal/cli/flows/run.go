package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/tasks"
)

// onceFlags holds the flags for a definition of which one task is started and followed.
type onceFlags struct {
	console.RemoteFlags
	tasks.InputFlags
	rootFlag
	StrictFlag
	File    string        `arg:"" help:"Definition in YAML or JSON; - is stdin. The file name gives the slug of the flow, unless --slug is set."`
	Slug    string        `help:"Flow slug. Default: the lowercase file name without its extension."`
	Timeout time.Duration `placeholder:"300s" help:"Maximum time to wait. The task continues after it."`
}

type flowRunCmd struct{ onceFlags }

// Help describes the exit codes.
func (flowRunCmd) Help() string {
	return "Exits with 0 if the task completed, and with 1 if it failed, was canceled, " +
		"exceeded --timeout, or the definition is invalid. " +
		"--output json prints the ended task."
}

func (c *flowRunCmd) Run(ctx context.Context, a *console.App) error {
	return c.runOnce(ctx, a, func(server *client.Client, text []byte,
		start wire.StartRequest) (*wire.StartResult, []wire.DefinitionProblem, error) {
		published, err := server.Publish(ctx, start.Flow, text, c.checkOptions()...)
		if err != nil {
			return nil, nil, console.SubjectError{Subject: c.File, Err: err}
		}
		start.Version = published.Version.Number
		started, err := server.Start(ctx, start)
		return started, published.Warnings, tasks.AddInputHint(start.Flow, err)
	})
}

// taskStarter starts a task of a definition, and returns the warnings about the definition.
type taskStarter func(server *client.Client, text []byte, start wire.StartRequest) (*wire.StartResult, []wire.DefinitionProblem, error)

// runOnce starts a task and follows it to its end.
func (c *onceFlags) runOnce(ctx context.Context, a *console.App, begin taskStarter) error {
	if problems := noFlow(c.File); problems != nil {
		printProblems(a.Stderr, c.File, problems)
		return console.ErrFailed
	}
	r, err := c.readDefinition(a, c.File)
	if err != nil {
		return err
	}
	slug := cmp.Or(c.Slug, r.flowSlug(c.File))
	switch {
	case r.text == nil:
		printProblems(a.Stderr, c.File, r.problems)
		return console.ErrFailed
	case c.refusalOf(r.problems) != nil:
		printProblems(a.Stderr, c.File, c.refusalOf(r.problems))
		return console.ErrFailed
	case slug == "":
		return console.NewUsageError("set --slug: a definition on stdin has no file name")
	}
	if c.Timeout < 0 {
		return console.NewUsageError("--timeout %s: use a positive duration", c.Timeout)
	}
	start, err := c.BuildStart(a, slug, tasks.NewDeclaredLookup(r.text))
	if err != nil {
		return err
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	started, warnings, err := begin(server, r.text, start)
	if problems := problemsOf(err); problems != nil {
		printProblems(a.Stderr, c.File, r.allProblems(problems))
		return console.ErrFailed
	}
	printProblems(a.Stderr, c.File, r.allProblems(warnings))
	if err != nil {
		return err
	}
	return c.followWithTimeout(ctx, started.ID, func(ctx context.Context) error { return c.followTask(ctx, a, server, started.ID) })
}

// followWithTimeout follows a task for at most --timeout.
func (c *onceFlags) followWithTimeout(ctx context.Context, id string, follow func(context.Context) error) error {
	if c.Timeout == 0 {
		return follow(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := follow(limited)
	if err != nil && !errors.Is(err, console.ErrFailed) && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%s has not ended within %s and continues: troupe task watch %s", id, c.Timeout, id)
	}
	return err
}

func (c *onceFlags) followTask(ctx context.Context, a *console.App, server *client.Client, id string) error {
	if c.IsJSON() {
		return tasks.WaitForTask(ctx, a, c.OutputFlag, server, id)
	}
	w := tasks.NewWatch(a, server, id, false)
	if err := w.FollowTask(ctx); err != nil {
		return err
	}
	task, err := server.Task(ctx, id)
	if err != nil {
		return err
	}
	if len(task.Result) > 0 {
		fmt.Fprintf(a.Stdout, "Result: %s\n", console.SanitizeText(string(task.Result)))
	}
	return w.ExitError()
}
