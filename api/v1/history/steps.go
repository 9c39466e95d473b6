package history

import (
	"context"
	"net/http"
	"slices"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

func (h *Handler) addStepRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-steps", Method: http.MethodGet, Path: "/v1/tasks/{task}/steps", Tag: "tasks",
		Summary: "List a task's steps",
		Text: "In dag mode: every step, in the order of the definition. In graph mode: every visit, " +
			"in the order of its start. Set scope to list the steps inside a subflow, or inside a " +
			"branch with a flow of its own."}, h.listSteps)
	route.Register(rt, route.Operation{ID: "list-units", Method: http.MethodGet, Path: "/v1/tasks/{task}/units", Tag: "tasks",
		Summary: "List a step's units",
		Text:    "With their inputs and outputs, also after the step has ended."}, h.listUnits)
	route.Register(rt, route.Operation{ID: "list-unit-states", Method: http.MethodGet, Path: "/v1/tasks/{task}/units/states", Tag: "tasks",
		Summary: "List the states of all units of a step",
		Text:    "In order of index, as runs of consecutive units with the same state."}, h.unitStates)
}

type stepsInput struct {
	catalog.TaskPath
	Scope string   `query:"scope" maxLength:"20000" doc:"Scope: inner_scope of the step that contains it; absent = the task's root."`
	Step  string   `query:"step" maxLength:"1000" doc:"Slug of the step."`
	State []string `query:"state,explode" enum:"created,started,completed,failed,skipped" doc:"States; entries match any of them."`
	render.Values
	route.Paging
}

func (h *Handler) listSteps(ctx context.Context, in *stepsInput) (*route.Response[wire.Page[wire.Step]], error) {
	after, err := in.ParseHistoryCursor()
	if err != nil {
		return nil, err
	}
	q := flow.StepQuery{Scope: in.Scope, Node: in.Step, After: after, Most: in.Limit, Bytes: pageBytes}
	for _, state := range in.State {
		q.States = append(q.States, flow.StepStatus(state))
	}
	steps, err := h.Reader.Steps(ctx, in.Task, q)
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil, route.NewNotFoundError("query.scope", "send inner_scope of a step that has started", "%s", err.Error())
	}
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	page := wire.Page[wire.Step]{Items: make([]wire.Step, 0, len(steps.Steps))}
	for i := range steps.Steps {
		page.Items = append(page.Items, render.ToStep(in.Task, &steps.Steps[i]))
	}
	if err := h.Positions.AddToSteps(ctx, in.Task, page.Items); err != nil {
		return nil, err
	}
	in.CutSteps(h.Payloads, page.Items)
	if steps.More {
		page.Next = route.HistoryCursor(steps.Next)
	}
	return &route.Response[wire.Page[wire.Step]]{Body: page}, nil
}

// VisitOf identifies a visit of a step in a query.
type VisitOf struct {
	catalog.TaskPath
	Step  string `query:"step" required:"true" minLength:"1" maxLength:"1000" doc:"Slug of the step."`
	Scope string `query:"scope" maxLength:"20000" doc:"Path of the scope of the step; absent = the task's root."`
	Visit int    `query:"visit" minimum:"0" doc:"Number of the visit; 0 = the newest one."`
}

// unitsOf returns the units of a visit.
func (h *Handler) unitsOf(ctx context.Context, in *VisitOf) (*flow.UnitList, error) {
	list, err := h.Reader.Units(ctx, in.Task, flow.Address{Scope: in.Scope, Node: in.Step, Visit: in.Visit})
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil, route.NewNotFoundError("query.step", "/v1/tasks/"+in.Task+"/steps lists its steps", "%s", err.Error())
	}
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	return list, nil
}

func (h *Handler) unitStates(ctx context.Context, in *VisitOf) (*route.Response[wire.UnitStates], error) {
	list, err := h.unitsOf(ctx, in)
	if err != nil {
		return nil, err
	}
	answer := wire.UnitStates{Total: list.Len(), Runs: []wire.UnitRun{}}
	for _, run := range list.States() {
		answer.Runs = append(answer.Runs, wire.UnitRun{Count: run.Count, State: run.Status.String()})
	}
	return &route.Response[wire.UnitStates]{Body: answer}, nil
}

type unitsInput struct {
	VisitOf
	From  int      `query:"from" minimum:"0" doc:"Index of the first unit."`
	State []string `query:"state,explode" enum:"pending,dispatched,running,completed,failed,canceled" doc:"States; entries match any of them."`
	render.Values
	route.Paging
}

func (h *Handler) listUnits(ctx context.Context, in *unitsInput) (*route.Response[wire.Page[wire.Unit]], error) {
	at, _, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	list, err := h.unitsOf(ctx, &in.VisitOf)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Unit]{Items: []wire.Unit{}}
	for i, size := max(int(at.At), in.From), 0; i < list.Len(); i++ {
		u := list.At(i)
		if len(in.State) > 0 && !slices.Contains(in.State, u.Status.String()) {
			continue
		}
		if len(page.Items) == in.Limit || size > pageBytes {
			page.Next = route.Cursor{At: int64(i)}.String()
			break
		}
		unit := render.ToUnit(&u)
		in.CutValues(h.Payloads, &unit.Input, &unit.Output, &unit.Details)
		page.Items = append(page.Items, unit)
		size += len(unit.Input) + len(unit.Output) + len(unit.Details)
	}
	return &route.Response[wire.Page[wire.Unit]]{Body: page}, nil
}
