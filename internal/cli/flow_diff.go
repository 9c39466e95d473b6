package cli

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/api/wire"
)

type flowDiffCmd struct {
	remoteFlags
	Flow string `arg:"" complete:"flow" help:"Slug or id of the flow."`
	From int    `arg:"" optional:"" help:"Number of a version; absent = the one before the other."`
	To   int    `arg:"" optional:"" help:"Number of a version; absent = the newest."`
}

func (c *flowDiffCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	if c.Flow, err = flowNamed(ctx, server, c.Flow); err != nil {
		return err
	}
	diff, err := server.Diff(ctx, c.Flow, c.From, c.To)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, diff)
	}
	more := ""
	if !diff.UnderWay.Exact {
		more = "+"
	}
	fmt.Fprintf(a.stdout, "%s  v%d -> v%d  %d%s tasks go on with v%d\n", sanitizeText(diff.Flow),
		diff.From, diff.To, diff.UnderWay.Count, more, min(diff.From, diff.To))
	if len(diff.Changes) == 0 {
		_, err = fmt.Fprintln(a.stdout, "They are the same, however they are written.")
		return err
	}
	t := table{header: []string{"CHANGE", "WHERE", "FIELD", "OLD", "NEW"}}
	for i := range diff.Changes {
		x := &diff.Changes[i]
		t.rows = append(t.rows, []string{x.What + " " + x.How, formatPlace(x), x.Field, truncateText(x.Old, 60), truncateText(x.New, 60)})
	}
	return t.writeRows(a.stdout)
}

// formatPlace returns the node of a change with the path of the nodes that contain it.
func formatPlace(x *wire.FlowChange) string {
	if x.Scope == "" || x.Node == "" {
		return orElse(x.Node, x.Scope)
	}
	return x.Scope + "/" + x.Node
}
