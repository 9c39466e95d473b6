package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// onceFlags holds the flags for a definition of which one task is started and followed.
type onceFlags struct {
	remoteFlags
	inputFlags
	rootFlag
	strictFlag
	File    string        `arg:"" help:"Definition in YAML or JSON; - is stdin. It becomes the flow that is named like its file, unless --slug says another name."`
	Slug    string        `help:"What the flow is addressed by; by default its file's name without folder and ending, in small letters, with - for what is no letter, digit, dot, dash or underscore."`
	Timeout time.Duration `placeholder:"300s" help:"Follow it for so long at most. A task that has not ended by then goes on."`
}

type flowRunCmd struct{ onceFlags }

// Help describes the exit codes.
func (flowRunCmd) Help() string {
	return "Publishes the definition, starts a task of it and follows that to its end. Exits with 0 when the task has completed, " +
		"with 1 when it failed or was canceled, has not ended within --timeout, or the " +
		"definition is wrong. --output json prints the task as it has ended."
}

func (c *flowRunCmd) Run(ctx context.Context, a *app) error {
	return c.runOnce(ctx, a, func(server *client.Client, text []byte, start wire.Start) (*wire.Started, []wire.DefinitionProblem, error) {
		published, err := server.Publish(ctx, start.Flow, text, c.checkOptions()...)
		if err != nil {
			return nil, nil, subjectError{c.File, err}
		}
		start.Version = published.Version.Number
		started, err := server.Start(ctx, start)
		return started, published.Warnings, inputHint(start.Flow, err)
	})
}

// taskStarter starts a task of a definition, and returns the definition's warnings.
type taskStarter func(server *client.Client, text []byte, start wire.Start) (*wire.Started, []wire.DefinitionProblem, error)

// runOnce starts a task and follows it to its end.
func (c *onceFlags) runOnce(ctx context.Context, a *app, begin taskStarter) error {
	if problems := noFlow(c.File); problems != nil {
		printProblems(a.stderr, c.File, problems)
		return errFailed
	}
	r, err := c.readDefinition(a, c.File)
	if err != nil {
		return err
	}
	slug := orElse(c.Slug, r.flowSlug(c.File))
	switch {
	case r.text == nil:
		printProblems(a.stderr, c.File, r.problems)
		return errFailed
	case slug == "":
		return newUsageError("--slug is missing: stdin has no name")
	}
	if c.Timeout < 0 {
		return newUsageError("--timeout %s is not after now", c.Timeout)
	}
	start, err := c.buildStart(a, slug, declaredIn(r.text))
	if err != nil {
		return err
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	started, warnings, err := begin(server, r.text, start)
	if problems := problemsOf(err); problems != nil {
		printProblems(a.stderr, c.File, r.allProblems(problems))
		return errFailed
	}
	printProblems(a.stderr, c.File, r.allProblems(warnings))
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
	if err != nil && !errors.Is(err, errFailed) && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%s has not ended within %s; it goes on: troupe task watch %s", id, c.Timeout, id)
	}
	return err
}

func (c *onceFlags) followTask(ctx context.Context, a *app, server *client.Client, id string) error {
	if c.isJSON() {
		return c.waitFor(ctx, a, server, id)
	}
	w := newWatch(a, server, id, false)
	if err := w.followTask(ctx); err != nil {
		return err
	}
	task, err := server.Task(ctx, id)
	if err != nil {
		return err
	}
	if len(task.Result) > 0 {
		fmt.Fprintf(a.stdout, "Result: %s\n", sanitizeText(string(task.Result)))
	}
	return w.exitError()
}
