package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// statsCmd prints a summary of the engine, or statistics of one flow.
type statsCmd struct {
	remoteFlags
	Flow    string `arg:"" optional:"" complete:"flow" help:"Slug or id of a flow: how its tasks go, node by node. Without one: tasks by state, and what fails."`
	Window  string `enum:"1h,24h,7d" default:"24h" help:"Of a flow: what happened in the last 1h, 24h or 7d (${default})."`
	From    string `placeholder:"WHEN" help:"Of a flow, in place of --window: what happened since 90m, 36h, 30d, 2026-01-31 or a time as in RFC 3339."`
	To      string `placeholder:"WHEN" help:"Of a flow: until when, likewise."`
	Version int    `help:"Of a flow: number of the only version that is meant; 0 = all."`
}

func (c *statsCmd) Run(ctx context.Context, a *app) error {
	if c.Flow == "" && (c.From != "" || c.To != "" || c.Version != 0) {
		return newUsageError("--from, --to and --version are for one flow: name it")
	}
	server, err := c.newClient()
	switch {
	case err != nil:
		return err
	case c.Flow == "":
		return c.printOverview(ctx, a, server)
	}
	return c.printFlow(ctx, a, server)
}

func (c *statsCmd) printFlow(ctx context.Context, a *app, server *client.Client) error {
	of := client.StatsOf{Window: c.Window, Version: c.Version}
	var err error
	if of.From, err = parseSince("--from", c.From, time.Now()); err != nil {
		return err
	}
	if of.To, err = parseSince("--to", c.To, time.Now()); err != nil {
		return err
	}
	st, err := server.FlowStats(ctx, c.Flow, of)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, st)
	}
	t := st.Tasks
	fields := []string{"Flow", st.Flow, "Since", formatTime(st.Since), "Until", formatTime(st.Until)}
	for _, n := range []struct {
		name  string
		count int64
	}{{"Started", t.Started}, {"Completed", t.Completed}, {"Failed", t.Failed}, {"Canceled", t.Canceled}} {
		fields = append(fields, n.name, strconv.FormatInt(n.count, 10))
	}
	if t.Completed+t.Failed+t.Canceled > 0 {
		fields = append(fields, "Took", fmt.Sprintf("half %s, 95%% %s, 99%% %s",
			formatMillis(t.Duration.P50), formatMillis(t.Duration.P95), formatMillis(t.Duration.P99)))
	}
	if err := printFields(a.stdout, fields...); err != nil || len(st.Nodes) == 0 {
		return err
	}
	fmt.Fprintln(a.stdout)
	return nodeTable(st.Nodes).writeRows(a.stdout)
}

func nodeTable(nodes []wire.NodeStats) table {
	t := table{header: []string{"NODE", "COUNT", "FAILED", "RETRIED", "SKIPPED", "P50", "P95",
		"P99", "WAIT P95", "LAST FAILED"}, spare: []string{"LAST FAILED", "SKIPPED", "P99"}}
	for _, n := range nodes {
		name, wait := n.Key, ""
		if n.Scope != "" {
			name = n.Scope + "/" + n.Key
		}
		if n.Wait != nil {
			wait = formatMillis(n.Wait.P95)
		}
		row := []string{name}
		for _, count := range []int64{n.Count, n.Failed, n.Retried, n.Skipped} {
			row = append(row, strconv.FormatInt(count, 10))
		}
		t.rows = append(t.rows, append(row, formatMillis(n.Duration.P50),
			formatMillis(n.Duration.P95), formatMillis(n.Duration.P99), wait, n.LastFailed))
	}
	return t
}

func (c *statsCmd) printOverview(ctx context.Context, a *app, server *client.Client) error {
	o, err := server.Overview(ctx)
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, o)
	}
	var fields []string
	for _, n := range o.States {
		fields = append(fields, n.State, formatTally(n.ListedTasks))
	}
	for _, r := range o.Recent {
		fields = append(fields, "last "+r.Window, fmt.Sprintf("%s started, %s completed, %s failed",
			formatTally(r.Started), formatTally(r.Completed), formatTally(r.Failed)))
	}
	fields = append(fields, "workers", fmt.Sprintf("%d online, %d offline", o.Workers.Online, o.Workers.Offline))
	if err := printFields(a.stdout, fields...); err != nil || len(o.Failing.Groups) == 0 {
		return err
	}
	t := table{header: []string{"FLOW", "FAILED", "ERROR", "LAST", "TASK"}, spare: []string{"LAST", "TASK"}}
	for _, g := range o.Failing.Groups {
		t.rows = append(t.rows, []string{g.Flow, strconv.Itoa(g.Count), g.Error, formatTime(g.At), g.Newest})
	}
	fmt.Fprintln(a.stdout)
	return t.writeRows(a.stdout)
}

// formatTally formats a number of tasks; a + marks a number beyond the limit of counting.
func formatTally(n wire.ListedTasks) string {
	if !n.Exact {
		return strconv.Itoa(n.Count) + "+"
	}
	return strconv.Itoa(n.Count)
}

func formatMillis(ms int64) string { return formatDuration(time.Duration(ms) * time.Millisecond) }
