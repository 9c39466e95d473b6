package v1

import (
	"context"
	"net/http"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

func (h *historyHandler) addStepRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-steps", method: http.MethodGet, path: "/v1/tasks/{task}/steps", tag: "tasks",
		summary: "List a task's steps",
		text: "In dag mode every step, in the order of the definition; in graph mode every " +
			"visit, in order of its beginning. Those inside a subflow or branch with a flow of " +
			"its own are listed with scope=."}, h.listSteps)
	registerOperation(rt, apiOperation{id: "list-units", method: http.MethodGet, path: "/v1/tasks/{task}/units", tag: "tasks",
		summary: "List a step's units", text: "With their inputs and outputs, also when the step is over."}, h.listUnits)
	registerOperation(rt, apiOperation{id: "list-unit-states", method: http.MethodGet, path: "/v1/tasks/{task}/units/states", tag: "tasks",
		summary: "See the states of all units of a step",
		text:    "At once, in order of index: so many in a row in the same state."}, h.unitStates)
}

type stepsInput struct {
	TaskPath
	Scope string   `query:"scope" maxLength:"20000" doc:"below of the step it is inside; absent = the task's root"`
	Step  string   `query:"step" maxLength:"1000" doc:"only the step with this slug"`
	State []string `query:"state,explode" enum:"created,started,completed,failed,skipped" doc:"only those in one of these states"`
	Values
	Paging
}

func (h *historyHandler) listSteps(ctx context.Context, in *stepsInput) (*bodyResponse[wire.Page[wire.Step]], error) {
	after, err := in.parseHistoryCursor()
	if err != nil {
		return nil, err
	}
	q := flow.StepQuery{Scope: in.Scope, Node: in.Step, After: after, Most: in.Limit, Bytes: pageBytes}
	for _, state := range in.State {
		q.States = append(q.States, flow.StepStatus(state))
	}
	steps, err := h.reader.Steps(ctx, in.Task, q)
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil, newNotFoundError("query.scope", "send below of a step that has begun", "%s", err.Error())
	}
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	page := wire.Page[wire.Step]{Items: make([]wire.Step, 0, len(steps.Steps))}
	for i := range steps.Steps {
		page.Items = append(page.Items, toStep(in.Task, &steps.Steps[i]))
	}
	if err := h.positions.stepsInLine(ctx, in.Task, page.Items); err != nil {
		return nil, err
	}
	in.cutSteps(h.payloads, page.Items)
	if steps.More {
		page.Next = historyCursor(steps.Next)
	}
	return &bodyResponse[wire.Page[wire.Step]]{page}, nil
}

// VisitOf identifies a visit of a step in a query.
type VisitOf struct {
	TaskPath
	Step  string `query:"step" required:"true" minLength:"1" maxLength:"1000" doc:"slug of the step"`
	Scope string `query:"scope" maxLength:"20000" doc:"the scope it is in; absent = the task's root"`
	Visit int    `query:"visit" minimum:"0" doc:"which visit of it; 0 = the newest one"`
}

// unitsOf returns the units of the visit.
func (h *historyHandler) unitsOf(ctx context.Context, in *VisitOf) (*flow.UnitList, error) {
	list, err := h.reader.Units(ctx, in.Task, flow.Address{Scope: in.Scope, Node: in.Step, Visit: in.Visit})
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil, newNotFoundError("query.step", "/v1/tasks/"+in.Task+"/steps lists its steps", "%s", err.Error())
	}
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	return list, nil
}

func (h *historyHandler) unitStates(ctx context.Context, in *VisitOf) (*bodyResponse[wire.UnitStates], error) {
	list, err := h.unitsOf(ctx, in)
	if err != nil {
		return nil, err
	}
	answer := wire.UnitStates{Total: list.Len(), Runs: []wire.UnitRun{}}
	for _, run := range list.States() {
		answer.Runs = append(answer.Runs, wire.UnitRun{Count: run.Count, State: run.Status.String()})
	}
	return &bodyResponse[wire.UnitStates]{answer}, nil
}

type unitsInput struct {
	VisitOf
	From  int      `query:"from" minimum:"0" doc:"index of the first unit that is meant"`
	State []string `query:"state,explode" enum:"pending,dispatched,running,completed,failed,canceled" doc:"only those in one of these states"`
	Values
	Paging
}

func (h *historyHandler) listUnits(ctx context.Context, in *unitsInput) (*bodyResponse[wire.Page[wire.Unit]], error) {
	at, _, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	list, err := h.unitsOf(ctx, &in.VisitOf)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Unit]{Items: []wire.Unit{}}
	for i, size := max(int(at.at), in.From), 0; i < list.Len(); i++ {
		u := list.At(i)
		if len(in.State) > 0 && !slices.Contains(in.State, u.Status.String()) {
			continue
		}
		if len(page.Items) == in.Limit || size > pageBytes {
			page.Next = listCursor{at: int64(i)}.String()
			break
		}
		unit := toUnit(&u)
		in.cutValues(h.payloads, &unit.Input, &unit.Output, &unit.Details)
		page.Items = append(page.Items, unit)
		size += len(unit.Input) + len(unit.Output) + len(unit.Details)
	}
	return &bodyResponse[wire.Page[wire.Unit]]{page}, nil
}
