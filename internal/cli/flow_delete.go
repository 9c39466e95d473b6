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
	remoteFlags
	Flows []string `arg:"" name:"flow" complete:"flow" help:"Slugs or ids of the flows."`
	Yes   bool     `short:"y" aliases:"force" help:"Do not ask, and delete their tasks, too."`
}

// Help describes what is deleted.
func (flowDeleteCmd) Help() string {
	return `A flow goes with all its versions and tasks: those that have not ended are canceled by force first, and nothing is compensated.
It asks before, unless --yes says that it is meant.`
}

func (c *flowDeleteCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	answers := bufio.NewReader(a.stdin)
	for _, typed := range c.Flows {
		flow, err := flowNamed(ctx, server, typed)
		if err != nil {
			return err
		}
		if err := c.deleteFlow(ctx, a, server, flow, answers); err != nil {
			return err
		}
	}
	return nil
}

func (c *flowDeleteCmd) deleteFlow(ctx context.Context, a *app, server *client.Client, flow string, answers *bufio.Reader) error {
	if !c.Yes {
		sure, err := c.confirmDelete(ctx, a, server, flow, answers)
		if err != nil || !sure {
			return err
		}
	}
	deleted, err := server.DeleteFlow(ctx, flow, true)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printLine(a.stdout, deleted)
	}
	fmt.Fprintf(a.stdout, "%s is deleted, with %s\n", sanitizeText(deleted.Flow), formatCount(deleted.Tasks, "task"))
	return nil
}

// confirmDelete asks the user for confirmation.
func (c *flowDeleteCmd) confirmDelete(ctx context.Context, a *app, server *client.Client,
	flow string, answers *bufio.Reader) (bool, error) {
	f, err := server.Flow(ctx, flow)
	if err != nil {
		return false, err
	}
	name := sanitizeText(orElse(f.Slug, f.ID))
	fmt.Fprintf(a.stderr, "Delete the flow %s with all its versions and tasks, also those that run? Type its name to confirm: ", name)
	answer, err := answers.ReadString('\n')
	if strings.TrimSpace(answer) == name {
		return true, nil
	}
	if err != nil { // there is no user at a terminal
		fmt.Fprintln(a.stderr)
		return false, newUsageError("%s was not deleted: nobody confirmed it; --yes deletes without asking", name)
	}
	return false, errors.New(name + " was not deleted: that is not its name")
}
