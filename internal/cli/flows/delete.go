package flows

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type flowDeleteCmd struct {
	console.RemoteFlags
	Flows []string `arg:"" name:"flow" complete:"flow" help:"Flow slugs or IDs."`
	Yes   bool     `short:"y" aliases:"force" help:"Delete without confirmation."`
}

// Help describes what flow delete removes.
func (flowDeleteCmd) Help() string {
	return `Deletes a flow with all versions and tasks. Running tasks are canceled by force, without compensation.
Asks for confirmation, unless --yes is set.`
}

func (c *flowDeleteCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	answers := bufio.NewReader(a.Stdin)
	for _, typed := range c.Flows {
		flow, err := console.FindFlow(ctx, server, typed)
		if err != nil {
			return err
		}
		if err := c.deleteFlow(ctx, a, server, flow, answers); err != nil {
			return err
		}
	}
	return nil
}

func (c *flowDeleteCmd) deleteFlow(ctx context.Context, a *console.App, server *client.Client, flow string, answers *bufio.Reader) error {
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
	case c.IsJSON():
		return console.PrintLine(a.Stdout, deleted)
	}
	fmt.Fprintf(a.Stdout, "%s deleted with %s\n", console.SanitizeText(deleted.Flow), console.FormatCount(deleted.Tasks, "task"))
	return nil
}

// confirmDelete asks the user for confirmation.
func (c *flowDeleteCmd) confirmDelete(ctx context.Context, a *console.App, server *client.Client,
	flow string, answers *bufio.Reader) (bool, error) {
	f, err := server.Flow(ctx, flow)
	if err != nil {
		return false, err
	}
	name := console.SanitizeText(cmp.Or(f.Slug, f.ID))
	fmt.Fprintf(a.Stderr, "Delete the flow %s with all versions and tasks, including running ones? Type its name to confirm: ", name)
	answer, err := answers.ReadString('\n')
	if strings.TrimSpace(answer) == name {
		return true, nil
	}
	if err != nil { // an error means that no user is at a terminal
		fmt.Fprintln(a.Stderr)
		return false, console.NewUsageError("%s was not deleted: confirm it, or set --yes", name)
	}
	return false, errors.New(name + " was not deleted: the name does not match")
}
