package v1

import (
	"context"
	"net/http"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func (s *service) stepRoutes() {
	serve(s, operation{id: "list-steps", method: http.MethodGet, path: "/v1/tasks/{task}/steps", tag: "tasks",
		summary: "List a task's steps",
		text:    "In dag mode every step, in the order of the definition; in graph mode every visit, in order of its beginning. Those inside a subflow or branch with a flow of its own are listed with scope=."}, s.steps)
	serve(s, operation{id: "list-units", method: http.MethodGet, path: "/v1/tasks/{task}/units", tag: "tasks",
		summary: "List a step's units", text: "With their inputs and outputs, also when the step is over."}, s.units)
}

type stepsInput struct {
	TaskPath
	Scope string   `query:"scope" maxLength:"4000" doc:"below of the step it is inside; absent = the task's root"`
	Step  string   `query:"step" maxLength:"1000" doc:"only the step with this slug"`
	State []string `query:"state,explode" enum:"created,started,completed,failed,skipped" doc:"only those in one of these states"`
	Paging
}

func (s *service) steps(ctx context.Context, in *stepsInput) (*body[wire.Page[wire.Step]], error) {
	at, _, err := in.position()
	if err != nil {
		return nil, err
	}
	list, err := s.stepList(ctx, in.Task, in.Scope)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Step]{Items: []wire.Step{}}
	for i, size := max(int(at.at), 0), 0; i < list.Len(); i++ {
		v := list.At(i)
		if in.Step != "" && v.Node.Key != in.Step || len(in.State) > 0 && !slices.Contains(in.State, string(v.Status)) {
			continue
		}
		if len(page.Items) == in.Limit || size > pageBytes {
			page.Next = cursor{at: int64(i)}.String()
			break
		}
		page.Items = append(page.Items, toStep(in.Task, &v))
		size += len(v.Output)
	}
	return &body[wire.Page[wire.Step]]{page}, nil
}

// stepList reads the journal only when the state does not tell.
func (s *service) stepList(ctx context.Context, task, scope string) (*flow.StepList, error) {
	view, err := s.Reader.View(ctx, task)
	if err != nil {
		return nil, noTask(task, err)
	}
	list, ok := flow.StepsInState(view.State, scope)
	if !ok {
		err := s.Reader.Replay(ctx, task, func(plan *flow.Plan) persistence.Replayer {
			list = flow.NewStepList(task, plan, scope)
			return list
		})
		if err != nil {
			return nil, noTask(task, err)
		}
	}
	if !list.Known {
		return nil, missing("query.scope", "send below of a step that has begun", "the task has no scope %.200q", scope)
	}
	return list, nil
}

type unitsInput struct {
	TaskPath
	Step  string   `query:"step" required:"true" minLength:"1" maxLength:"1000" doc:"slug of the step"`
	Scope string   `query:"scope" maxLength:"4000" doc:"the scope it is in; absent = the task's root"`
	Visit int      `query:"visit" minimum:"0" doc:"which visit of it; 0 = the newest one"`
	State []string `query:"state,explode" enum:"pending,dispatched,running,completed,failed,canceled" doc:"only those in one of these states"`
	Paging
}

func (s *service) units(ctx context.Context, in *unitsInput) (*body[wire.Page[wire.Unit]], error) {
	at, _, err := in.position()
	if err != nil {
		return nil, err
	}
	list, err := s.unitList(ctx, in)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Unit]{Items: []wire.Unit{}}
	for i, size := max(int(at.at), 0), 0; i < list.Len(); i++ {
		u := list.At(i)
		if len(in.State) > 0 && !slices.Contains(in.State, u.Status.String()) {
			continue
		}
		if len(page.Items) == in.Limit || size > pageBytes {
			page.Next = cursor{at: int64(i)}.String()
			break
		}
		page.Items = append(page.Items, toUnit(&u))
		size += len(u.Input) + len(u.Output)
	}
	return &body[wire.Page[wire.Unit]]{page}, nil
}

func (s *service) unitList(ctx context.Context, in *unitsInput) (*flow.UnitList, error) {
	view, err := s.Reader.View(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	at := flow.Address{Scope: in.Scope, Node: in.Step, Visit: in.Visit}
	if list, ok := flow.UnitsInState(view.State, at); ok {
		return list, nil
	}
	var list *flow.UnitList
	err = s.Reader.Replay(ctx, in.Task, func(plan *flow.Plan) persistence.Replayer {
		list = flow.NewUnitList(in.Task, plan, at)
		return list
	})
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	if list.Step == nil && !known(list.State, at) {
		return nil, missing("query.step", "/v1/tasks/"+in.Task+"/steps lists its steps", "the task has no step %.200q", in.Step)
	}
	return list, nil
}

// known says whether a step is one of the task, though it may have no units yet.
func known(s *flow.State, at flow.Address) bool {
	sc := s.Scope(at.Scope)
	return sc != nil && sc.Graph.Nodes[at.Node] != nil
}
