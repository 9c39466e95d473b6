package flows

import (
	"cmp"
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type flowDiffCmd struct {
	console.RemoteFlags
	Flow string `arg:"" complete:"flow" help:"Flow slug or ID."`
	From int    `arg:"" optional:"" help:"Version number. Default: the one before <to>."`
	To   int    `arg:"" optional:"" help:"Version number. Default: the newest."`
}

func (c *flowDiffCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if c.Flow, err = console.FindFlow(ctx, server, c.Flow); err != nil {
		return err
	}
	diff, err := server.Diff(ctx, c.Flow, c.From, c.To)
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, diff)
	}
	more := ""
	if !diff.RunningTasks.Exact {
		more = "+"
	}
	fmt.Fprintf(a.Stdout, "%s  v%d -> v%d  %d%s tasks still use v%d\n", console.SanitizeText(diff.Flow),
		diff.From, diff.To, diff.RunningTasks.Count, more, min(diff.From, diff.To))
	if len(diff.Changes) == 0 {
		_, err = fmt.Fprintln(a.Stdout, "No differences.")
		return err
	}
	t := console.Table{Header: []string{"CHANGE", "NODE", "FIELD", "OLD", "NEW"}}
	for i := range diff.Changes {
		x := &diff.Changes[i]
		t.Rows = append(t.Rows, []string{x.Kind + " " + x.Change, formatPlace(x), x.Field,
			console.TruncateText(x.Old, 60), console.TruncateText(x.New, 60)})
	}
	return t.WriteRows(a.Stdout)
}

// formatPlace returns the node of a change with the path of the nodes that contain it.
func formatPlace(x *wire.FlowChange) string {
	if x.Scope == "" || x.Node == "" {
		return cmp.Or(x.Node, x.Scope)
	}
	return x.Scope + "/" + x.Node
}
