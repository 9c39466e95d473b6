package operate

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// StatsCommand prints a summary of the engine, or statistics of one flow.
type StatsCommand struct {
	console.RemoteFlags
	Flow    string `arg:"" optional:"" complete:"flow" help:"Flow slug or ID. Default: a summary of all tasks."`
	Window  string `enum:"1h,24h,7d" default:"24h" help:"Time window of a flow: 1h, 24h or 7d (${default})."`
	From    string `placeholder:"WHEN" help:"Start of the time range of a flow: an age such as 36h or 30d, or a time such as 2026-01-31 or RFC 3339."`
	To      string `placeholder:"WHEN" help:"End of the time range of a flow, written like --from."`
	Version int    `help:"Version number of a flow; 0 = all."`
}

// Run prints the statistics.
func (c *StatsCommand) Run(ctx context.Context, a *console.App) error {
	if c.Flow == "" && (c.From != "" || c.To != "" || c.Version != 0) {
		return console.NewUsageError("--from, --to and --version need a flow")
	}
	server, err := c.NewClient()
	switch {
	case err != nil:
		return err
	case c.Flow == "":
		return c.printOverview(ctx, a, server)
	}
	return c.printFlow(ctx, a, server)
}

func (c *StatsCommand) printFlow(ctx context.Context, a *console.App, server *client.Client) error {
	of := client.StatsOf{Window: c.Window, Version: c.Version}
	var err error
	if of.From, err = console.ParseSince("--from", c.From, time.Now()); err != nil {
		return err
	}
	if of.To, err = console.ParseSince("--to", c.To, time.Now()); err != nil {
		return err
	}
	st, err := server.FlowStats(ctx, c.Flow, of)
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, st)
	}
	t := st.Tasks
	fields := []string{"Flow", st.Flow, "From", console.FormatTime(st.Since), "To", console.FormatTime(st.Until)}
	for _, n := range []struct {
		name  string
		count int64
	}{{"Started", t.Started}, {"Completed", t.Completed}, {"Failed", t.Failed}, {"Canceled", t.Canceled}} {
		fields = append(fields, n.name, strconv.FormatInt(n.count, 10))
	}
	if t.Completed+t.Failed+t.Canceled > 0 {
		fields = append(fields, "Duration", fmt.Sprintf("p50 %s, p95 %s, p99 %s",
			formatMillis(t.Duration.P50), formatMillis(t.Duration.P95), formatMillis(t.Duration.P99)))
	}
	if err := console.PrintFields(a.Stdout, fields...); err != nil || len(st.Nodes) == 0 {
		return err
	}
	fmt.Fprintln(a.Stdout)
	return nodeTable(st.Nodes).WriteRows(a.Stdout)
}

func nodeTable(nodes []wire.NodeStats) console.Table {
	t := console.Table{Header: []string{"NODE", "COUNT", "FAILED", "RETRIED", "SKIPPED", "P50", "P95",
		"P99", "WAIT P95", "LAST FAILED TASK"}, Spare: []string{"LAST FAILED TASK", "SKIPPED", "P99"}}
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
		t.Rows = append(t.Rows, append(row, formatMillis(n.Duration.P50),
			formatMillis(n.Duration.P95), formatMillis(n.Duration.P99), wait, n.LastFailed))
	}
	return t
}

func (c *StatsCommand) printOverview(ctx context.Context, a *console.App, server *client.Client) error {
	o, err := server.Overview(ctx)
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, o)
	}
	var fields []string
	for _, n := range o.States {
		fields = append(fields, n.State, formatTally(n.TaskQuery))
	}
	for _, r := range o.Recent {
		fields = append(fields, "Last "+r.Window, fmt.Sprintf("%s started, %s completed, %s failed",
			formatTally(r.Started), formatTally(r.Completed), formatTally(r.Failed)))
	}
	fields = append(fields, "Workers", fmt.Sprintf("%d online, %d offline", o.Workers.Online, o.Workers.Offline))
	if err := console.PrintFields(a.Stdout, fields...); err != nil || len(o.RecentFailures.Groups) == 0 {
		return err
	}
	t := console.Table{Header: []string{"FLOW", "FAILED", "ERROR", "LAST FAILED", "TASK"}, Spare: []string{"LAST FAILED", "TASK"}}
	for _, g := range o.RecentFailures.Groups {
		t.Rows = append(t.Rows, []string{g.Flow, strconv.Itoa(g.Count), g.Error, console.FormatTime(g.FailedAt), g.LatestTask})
	}
	fmt.Fprintln(a.Stdout)
	return t.WriteRows(a.Stdout)
}

// formatTally formats a number of tasks; a + marks a number beyond the limit of counting.
func formatTally(n wire.TaskQuery) string {
	if !n.Exact {
		return strconv.Itoa(n.Count) + "+"
	}
	return strconv.Itoa(n.Count)
}

func formatMillis(ms int64) string {
	return console.FormatDuration(time.Duration(ms) * time.Millisecond)
}
