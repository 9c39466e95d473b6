package tasks

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

type forkInput struct {
	catalog.TaskPath
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"Alternative to idempotency_key."`
	Body           wire.ForkRequest
}

// forkTask starts a task that reuses the history of another task as far as possible. A dry run only
// reports how far.
func (h *StartHandler) forkTask(ctx context.Context, in *forkInput) (*route.StatusResponse[wire.ForkResult], error) {
	if err := CheckStore(h.Engine, in.Body.DryRun); err != nil {
		return nil, err
	}
	row, err := h.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	v, err := h.forkVersion(ctx, row, in.Body.Version, in.Body.Latest)
	if err != nil {
		return nil, err
	}
	if in.Body.AtSeq > 0 && in.Body.From != "" {
		return nil, route.NewInvalidError("body.at_seq", "send one of them",
			"a fork continues after a row of the history or from a node, not both")
	}
	params, err := ReadParams(&wire.StartRequest{Params: in.Body.Params})
	if err != nil {
		return nil, err
	}
	plan, err := h.Reader.Fork(ctx, in.Task, v.ID, persistence.ForkAt{Node: in.Body.From, Row: in.Body.AtSeq})
	if err != nil {
		return nil, forkProblem(in, err)
	}
	if err := plan.ChangeResults(in.Body.Results, h.Limits.OrDefault()); err != nil {
		return nil, route.LocateError("body.results", err)
	}
	slug, start := cmp.Or(row.FlowSlug, row.FlowID), plan.Start(v.ID, params, in.Body.Shared)
	of, err := h.Reader.Plan(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	if err := start.Fork.Fit(of, h.Limits.OrDefault()); err != nil {
		return nil, route.LocateError("body.shared", err)
	}
	if _, err := start.Fit(of, h.Limits.OrDefault()); err != nil {
		return nil, ToStartProblem(err, "body.params", slug)
	}
	forked := wire.ForkResult{From: in.Task, Version: v.Number, KeptSteps: forkSteps(plan.Keeps),
		RerunSteps: forkSteps(plan.Again), KeptCount: len(plan.Keeps), RerunCount: len(plan.Again)}
	if in.Body.DryRun {
		if forked.Preview, err = h.simulateStart(ctx, in.Task, start); err != nil {
			return nil, ToStartProblem(err, "body.params", slug)
		}
		return &route.StatusResponse[wire.ForkResult]{Status: http.StatusOK, Body: forked}, nil
	}
	started, err := h.Engine.StartTask(ctx, engine.NewTask{VersionID: v.ID, Newest: in.Body.Latest,
		Params: params, Shared: in.Body.Shared, Results: in.Body.Results, Labels: schedule.Apart(row.Labels),
		Key: cmp.Or(in.Body.IdempotencyKey, in.IdempotencyKey), Fork: in.Task,
		ForkNode: in.Body.From, ForkRow: in.Body.AtSeq})
	if err != nil {
		return nil, ToStartProblem(err, "body.params", slug)
	}
	forked.ID, forked.Created = started.Task, started.Created
	return &route.StatusResponse[wire.ForkResult]{Status: route.StatusOf(started.Created), Body: forked}, nil
}

// simulateStart predicts the course of a task with this start. task is the task to fork; "" means a
// new task.
func (h *StartHandler) simulateStart(ctx context.Context, task string, start flow.Start) (*wire.Preview, error) {
	told, err := h.Reader.Foresee(ctx, task, start, flow.Env{Now: time.Now().UnixMilli(), Limits: h.Limits.OrDefault()})
	if err != nil {
		return nil, err
	}
	f := &wire.Preview{Steps: []wire.PreviewStep{}, State: string(told.Status), Truncated: told.More}
	for _, st := range told.Steps {
		f.Steps = append(f.Steps, wire.PreviewStep{Scope: st.Scope, Node: st.Node, Visit: st.Visit,
			Outcome: string(st.How), Service: st.Service, Units: st.Calls, Next: st.Next,
			Output: st.Output.Begin, OutputBytes: st.Output.Bytes})
	}
	return f, nil
}

// CheckStart returns an error if a task cannot start, by the same checks as its owner.
func (h *StartHandler) CheckStart(ctx context.Context, start flow.Start) error {
	plan, err := h.Reader.Plan(ctx, start.Version)
	if err == nil {
		_, err = start.Fit(plan, h.Limits.OrDefault())
	}
	return err
}

// forkVersion returns the version for the new task.
func (h *StartHandler) forkVersion(ctx context.Context, row *persistence.TaskRow, number int, newest bool) (*persistence.Version, error) {
	if newest && number > 0 {
		return nil, route.NewInvalidError("body.latest", "send one of them", "a task runs version %d or the latest one, not both", number)
	}
	f, err := h.Catalog.FindFlow(ctx, "path.task", row.FlowID)
	if err != nil {
		return nil, err
	}
	// by id, because clients of PocketFlow may give several versions the same number
	if !newest && number == 0 {
		if v, err := h.Store.Version(ctx, row.VersionID); !api.Missing(err) {
			return v, err
		}
		number = row.VersionNumber
	}
	return h.Catalog.FindVersion(ctx, "body.version", f, number)
}

func forkProblem(in *forkInput, err error) error {
	switch {
	case flow.ErrorKindOf(err) == flow.Invalid && in.Body.From == "":
		return route.LocateError("body.at_seq", err)
	case flow.ErrorKindOf(err) == flow.Invalid:
		return route.LocateError("body.from", err)
	case api.Missing(err):
		return catalog.LocateTaskError(in.Task, err)
	}
	return route.LocateError("path.task", err)
}

// listedSteps bounds the number of steps in an answer.
const listedSteps = 1000

func forkSteps(steps []flow.ForkStep) []wire.ForkStep {
	list := []wire.ForkStep{}
	for _, st := range steps[:min(len(steps), listedSteps)] {
		list = append(list, wire.ForkStep{Scope: st.Scope, Node: st.Node, Visit: st.Visit,
			Reason: string(st.Why), Output: st.Output.Begin, OutputBytes: st.Output.Bytes})
	}
	return list
}
