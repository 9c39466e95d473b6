package v1

import (
	"context"
	"errors"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/show"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *historyHandler) addCompareRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "compare-tasks", method: http.MethodGet, path: "/v1/tasks/{task}/compare/{other}", tag: "tasks",
		summary: "Compare two tasks node by node",
		text: "Such as one that failed and its fork, or a slow one and a quick one; they may " +
			"be of two versions, or of two flows. It costs what both histories do."}, h.compareTasks)
}

type compareInput struct {
	TaskPath
	Other string `path:"other" maxLength:"200" doc:"id of the task to compare it with"`
}

func (h *historyHandler) compareTasks(ctx context.Context, in *compareInput) (*bodyResponse[wire.Comparison], error) {
	a, one, err := h.readVisits(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	b, other, err := h.readVisits(ctx, in.Other)
	if err != nil {
		return nil, inPath(noTask(in.Other, err), "other")
	}
	told := wire.Comparison{A: toSummary(a), B: toSummary(b), Visits: []wire.VisitPair{}, First: -1, Cut: one.Cut || other.Cut}
	for _, p := range show.Compare(one.List, other.List) {
		if !p.Same() && told.First < 0 {
			told.First = len(told.Visits)
		}
		countPair(&told, &p)
		told.Visits = append(told.Visits, toPair(&p))
	}
	return &bodyResponse[wire.Comparison]{told}, nil
}

// readVisits reads a task and all its visits.
func (h *historyHandler) readVisits(ctx context.Context, task string) (*persistence.TaskRow, *flow.Visits, error) {
	row, err := h.store.Task(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	plan, err := h.reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, nil, err
	}
	v := flow.NewVisits(task, plan)
	return row, v, h.readJournal(ctx, task, v.Apply)
}

// inPath changes the parameter that an error about the task in a path refers to.
func inPath(err error, name string) error {
	var l *locatedError
	if errors.As(err, &l) {
		l.where = "path." + name
	}
	return err
}

func countPair(c *wire.Comparison, p *show.Pair) {
	switch {
	case p.Other == nil:
		c.OnlyA++
	case p.One == nil:
		c.OnlyB++
	case p.Same():
		c.Same++
	default:
		c.Different++
	}
}

func toPair(p *show.Pair) wire.VisitPair {
	at := p.One
	if at == nil {
		at = p.Other
	}
	pair := wire.VisitPair{Scope: at.Scope, Node: at.Node, Visit: at.Visit, A: toVisit(p.One), B: toVisit(p.Other), Differs: []string{}}
	for _, d := range p.Differs {
		pair.Differs = append(pair.Differs, string(d))
	}
	return pair
}

func toVisit(v *flow.Visit) *wire.VisitTold {
	if v == nil {
		return nil
	}
	told := &wire.VisitTold{State: string(v.Status), Action: v.Action, Reason: v.Reason,
		Error: v.Error, Attempts: v.Attempts, Units: v.Units,
		Output: v.Output.Begin, OutputBytes: v.Output.Bytes}
	if v.StartedAt > 0 && v.EndedAt > 0 {
		told.DurationMS = v.EndedAt - v.StartedAt
	}
	return told
}
