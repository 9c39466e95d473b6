package history

import (
	"context"
	"errors"
	"net/http"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *Handler) addCompareRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "compare-tasks", Method: http.MethodGet, Path: "/v1/tasks/{task}/compare/{other}", Tag: "tasks",
		Summary: "Compare two tasks node by node",
		Text: "For example a failed task and its fork, or a slow and a fast one. They may have " +
			"different versions or flows. The cost grows with both histories."}, h.compareTasks)
}

type compareInput struct {
	catalog.TaskPath
	Other string `path:"other" maxLength:"200" doc:"ID of the other task."`
}

func (h *Handler) compareTasks(ctx context.Context, in *compareInput) (*route.Response[wire.Comparison], error) {
	a, one, err := h.readVisits(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	b, other, err := h.readVisits(ctx, in.Other)
	if err != nil {
		return nil, inPath(catalog.LocateTaskError(in.Other, err), "other")
	}
	told := wire.Comparison{Task: render.ToSummary(a), Other: render.ToSummary(b),
		Visits: []wire.VisitComparison{}, FirstDifference: -1, Truncated: one.Cut || other.Cut}
	for _, p := range show.Compare(one.List, other.List) {
		if !p.Same() && told.FirstDifference < 0 {
			told.FirstDifference = len(told.Visits)
		}
		countPair(&told, &p)
		told.Visits = append(told.Visits, toPair(&p))
	}
	return &route.Response[wire.Comparison]{Body: told}, nil
}

// readVisits reads a task and all its visits.
func (h *Handler) readVisits(ctx context.Context, task string) (*persistence.TaskRow, *flow.Visits, error) {
	row, err := h.Store.Task(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	plan, err := h.Reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, nil, err
	}
	v := flow.NewVisits(task, plan)
	return row, v, h.readJournal(ctx, task, v.Apply)
}

// inPath changes the place of an error about a task to another path parameter.
func inPath(err error, name string) error {
	var l *route.LocatedError
	if errors.As(err, &l) {
		l.Where = "path." + name
	}
	return err
}

func countPair(c *wire.Comparison, p *show.Pair) {
	switch {
	case p.Other == nil:
		c.OnlyInTask++
	case p.One == nil:
		c.OnlyInOther++
	case p.Same():
		c.Same++
	default:
		c.Different++
	}
}

func toPair(p *show.Pair) wire.VisitComparison {
	at := p.One
	if at == nil {
		at = p.Other
	}
	pair := wire.VisitComparison{Scope: at.Scope, Node: at.Node, Visit: at.Visit, Task: toVisit(p.One),
		Other: toVisit(p.Other), Differences: []string{}}
	for _, d := range p.Differs {
		pair.Differences = append(pair.Differences, string(d))
	}
	return pair
}

func toVisit(v *flow.Visit) *wire.VisitSummary {
	if v == nil {
		return nil
	}
	told := &wire.VisitSummary{State: string(v.Status), Action: v.Action, Reason: v.Reason,
		Error: v.Error, Attempts: v.Attempts, Units: v.Units,
		Output: v.Output.Begin, OutputBytes: v.Output.Bytes}
	if v.StartedAt > 0 && v.EndedAt > 0 {
		told.DurationMS = v.EndedAt - v.StartedAt
	}
	return told
}
