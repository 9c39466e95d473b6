package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

type taskCompareCmd struct {
	remoteFlags
	A         string `arg:"" complete:"task" help:"Id of a task, or what it begins with."`
	B         string `arg:"" complete:"task" help:"Id of another one."`
	Different bool   `help:"Only what is not the same."`
}

func (c *taskCompareCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	var ids [2]string
	for i, typed := range []string{c.A, c.B} {
		if ids[i], err = taskID(ctx, server, typed); err != nil {
			return err
		}
	}
	told, err := server.Compare(ctx, ids[0], ids[1])
	switch {
	case err != nil:
		return err
	case c.isJSON():
		return printJSON(a.stdout, told)
	}
	return c.printComparison(a, told)
}

func (c *taskCompareCmd) printComparison(a *app, told *wire.Comparison) error {
	for i, t := range []*wire.TaskSummary{&told.A, &told.B} {
		fmt.Fprintf(a.stdout, "%c  %s  %s v%d  %s  %s\n", 'A'+i, sanitizeText(t.ID),
			sanitizeText(t.Flow), t.Version, sanitizeText(stateOf(t)), formatElapsed(t.CreatedAt, t.EndedAt))
	}
	fmt.Fprintf(a.stdout, "%d the same, %d different, %d only in A, %d only in B\n", told.Same, told.Different, told.OnlyA, told.OnlyB)
	t := table{header: []string{"STEP", "A", "B", "TIME A", "TIME B", "DIFFERS"}, spare: []string{"TIME A", "TIME B"}}
	for i := range told.Visits {
		p := &told.Visits[i]
		if both := p.A != nil && p.B != nil; c.Different && both && len(p.Differs) == 0 {
			continue
		}
		t.rows = append(t.rows, []string{stepOf(&wire.ForkStep{Scope: p.Scope, Node: p.Node,
			Visit: p.Visit}), visitText(p.A), visitText(p.B), visitTime(p.A), visitTime(p.B), differsText(p)})
	}
	if told.Cut {
		fmt.Fprintln(a.stderr, "There is more: only the first visits of each task are compared.")
	}
	if len(t.rows) == 0 {
		return nil
	}
	return t.writeRows(a.stdout)
}

func visitText(v *wire.VisitTold) string {
	switch {
	case v == nil:
		return "-"
	case v.Attempts > 1:
		return fmt.Sprintf("%s, %d attempts", v.State, v.Attempts)
	}
	return v.State
}

func visitTime(v *wire.VisitTold) string {
	if v == nil || v.DurationMS == 0 {
		return ""
	}
	return formatDuration(time.Duration(v.DurationMS) * time.Millisecond)
}

// differsText describes a difference, with the outputs if they differ.
func differsText(p *wire.VisitPair) string {
	switch {
	case p.B == nil:
		return "only in A"
	case p.A == nil:
		return "only in B"
	}
	text := strings.Join(p.Differs, ", ")
	if strings.HasSuffix(text, "output") {
		text += fmt.Sprintf(": %s / %s", truncateText(p.A.Output, 30), truncateText(p.B.Output, 30))
	}
	return text
}
