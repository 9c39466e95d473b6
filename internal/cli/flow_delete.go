package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
)

type flowDeleteCmd struct {
	remote
	Flows []string `arg:"" name:"flow" complete:"flow" help:"Slugs or ids of the flows."`
	Yes   bool     `short:"y" aliases:"force" help:"Do not ask, and delete their tasks, too."`
}

// Help says what goes.
func (flowDeleteCmd) Help() string {
	return `A flow goes with all its versions and tasks: those that have not ended are canceled by force first, and nothing is compensated.
It asks before, unless --yes says that it is meant.`
}

func (c *flowDeleteCmd) Run(ctx context.Context, a *app) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	answers := bufio.NewReader(a.stdin)
	for _, typed := range c.Flows {
		flow, err := flowNamed(ctx, server, typed)
		if err != nil {
			return err
		}
		if err := c.delete(ctx, a, server, flow, answers); err != nil {
			return err
		}
	}
	return nil
}

func (c *flowDeleteCmd) delete(ctx context.Context, a *app, server *client.Client, flow string, answers *bufio.Reader) error {
	if !c.Yes {
		sure, err := c.confirm(ctx, a, server, flow, answers)
		if err != nil || !sure {
			return err
		}
	}
	deleted, err := server.DeleteFlow(ctx, flow, true)
	switch {
	case err != nil:
		return err
	case c.json():
		return printLine(a.stdout, deleted)
	}
	fmt.Fprintf(a.stdout, "%s is deleted, with %s\n", clean(deleted.Flow), counted(deleted.Tasks, "task"))
	return nil
}

// confirm asks whoever sits there.
func (c *flowDeleteCmd) confirm(ctx context.Context, a *app, server *client.Client, flow string, answers *bufio.Reader) (bool, error) {
	f, err := server.Flow(ctx, flow)
	if err != nil {
		return false, err
	}
	name := clean(orElse(f.Slug, f.ID))
	fmt.Fprintf(a.stderr, "Delete the flow %s with all its versions and tasks, also those that run? Type its name to confirm: ", name)
	answer, err := answers.ReadString('\n')
	if strings.TrimSpace(answer) == name {
		return true, nil
	}
	if err != nil { // nobody sits there
		fmt.Fprintln(a.stderr)
		return false, usagef("%s was not deleted: nobody confirmed it; --yes deletes without asking", name)
	}
	return false, errors.New(name + " was not deleted: that is not its name")
}
