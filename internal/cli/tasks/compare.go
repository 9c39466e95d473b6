package tasks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type taskCompareCmd struct {
	console.RemoteFlags
	Task      string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	Other     string `arg:"" complete:"task" help:"ID or unique prefix of the other task."`
	Different bool   `help:"Show only differences."`
}

func (c *taskCompareCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	var ids [2]string
	for i, typed := range []string{c.Task, c.Other} {
		if ids[i], err = console.FindTaskID(ctx, server, typed); err != nil {
			return err
		}
	}
	told, err := server.Compare(ctx, ids[0], ids[1])
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, told)
	}
	return c.printComparison(a, told)
}

func (c *taskCompareCmd) printComparison(a *console.App, told *wire.Comparison) error {
	for i, t := range []*wire.TaskSummary{&told.Task, &told.Other} {
		fmt.Fprintf(a.Stdout, "%c  %s  %s v%d  %s  %s\n", 'A'+i, console.SanitizeText(t.ID),
			console.SanitizeText(t.Flow), t.Version, console.SanitizeText(console.FormatState(t)),
			console.FormatElapsed(t.CreatedAt, t.EndedAt))
	}
	fmt.Fprintf(a.Stdout, "%d equal, %d different, %d only in A, %d only in B\n", told.Same, told.Different,
		told.OnlyInTask, told.OnlyInOther)
	t := console.Table{Header: []string{"STEP", "A", "B", "DURATION A", "DURATION B", "DIFFERENCE"},
		Spare: []string{"DURATION A", "DURATION B"}}
	for i := range told.Visits {
		p := &told.Visits[i]
		if both := p.Task != nil && p.Other != nil; c.Different && both && len(p.Differences) == 0 {
			continue
		}
		t.Rows = append(t.Rows, []string{stepOf(&wire.ForkStep{Scope: p.Scope, Node: p.Node,
			Visit: p.Visit}), visitText(p.Task), visitText(p.Other), visitTime(p.Task), visitTime(p.Other), differsText(p)})
	}
	if told.Truncated {
		fmt.Fprintln(a.Stderr, "Only the first visits of each task are compared.")
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t.WriteRows(a.Stdout)
}

func visitText(v *wire.VisitSummary) string {
	switch {
	case v == nil:
		return "-"
	case v.Attempts > 1:
		return fmt.Sprintf("%s, %d attempts", v.State, v.Attempts)
	}
	return v.State
}

func visitTime(v *wire.VisitSummary) string {
	if v == nil || v.DurationMS == 0 {
		return ""
	}
	return console.FormatDuration(time.Duration(v.DurationMS) * time.Millisecond)
}

// differsText describes the difference of two visits, with the outputs if they differ.
func differsText(p *wire.VisitComparison) string {
	switch {
	case p.Other == nil:
		return "only in A"
	case p.Task == nil:
		return "only in B"
	}
	text := strings.Join(p.Differences, ", ")
	if strings.HasSuffix(text, "output") {
		text += fmt.Sprintf(": %s / %s", console.TruncateText(p.Task.Output, 30), console.TruncateText(p.Other.Output, 30))
	}
	return text
}
