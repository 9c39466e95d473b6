package v1

import (
	"context"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

type forkInput struct {
	TaskPath
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"another name of idempotency_key"`
	Body           wire.Fork
}

// forkTask starts a task that reuses the history of another one as far as possible. In a dry run it
// only reports how far that is.
func (h *startHandler) forkTask(ctx context.Context, in *forkInput) (*statusResponse[wire.Forked], error) {
	if err := checkStore(h.engine, in.Body.DryRun); err != nil {
		return nil, err
	}
	row, err := h.store.Task(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	v, err := h.forkVersion(ctx, row, in.Body.Version, in.Body.Newest)
	if err != nil {
		return nil, err
	}
	if in.Body.At > 0 && in.Body.From != "" {
		return nil, newInvalidError("body.at", "send one of them", "a task goes on behind a row of the history or from a node, not both")
	}
	params, err := paramsOf(&wire.Start{Params: in.Body.Params})
	if err != nil {
		return nil, err
	}
	plan, err := h.reader.Fork(ctx, in.Task, v.ID, persistence.ForkAt{Node: in.Body.From, Row: in.Body.At})
	if err != nil {
		return nil, forkProblem(in, err)
	}
	slug, start := orElse(row.FlowSlug, row.FlowID), plan.Start(v.ID, params, in.Body.Shared)
	of, err := h.reader.Plan(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	if err := start.Fork.Fit(of, h.limits.OrDefault()); err != nil {
		return nil, locateError("body.shared", err)
	}
	if _, err := start.Fit(of, h.limits.OrDefault()); err != nil {
		return nil, startProblem(err, "body.params", slug)
	}
	forked := wire.Forked{From: in.Task, Version: v.Number, Keeps: forkSteps(plan.Keeps),
		Again: forkSteps(plan.Again), KeptSteps: len(plan.Keeps), AgainSteps: len(plan.Again)}
	if in.Body.DryRun {
		if forked.Foresight, err = h.simulateStart(ctx, in.Task, start); err != nil {
			return nil, startProblem(err, "body.params", slug)
		}
		return &statusResponse[wire.Forked]{http.StatusOK, forked}, nil
	}
	started, err := h.engine.StartTask(ctx, engine.NewTask{VersionID: v.ID, Newest: in.Body.Newest,
		Params: params, Shared: in.Body.Shared, Labels: schedule.Apart(row.Labels),
		Key: orElse(in.Body.IdempotencyKey, in.IdempotencyKey), Fork: in.Task,
		ForkNode: in.Body.From, ForkRow: in.Body.At})
	if err != nil {
		return nil, startProblem(err, "body.params", slug)
	}
	forked.ID, forked.Created = started.Task, started.Created
	return &statusResponse[wire.Forked]{statusOf(started.Created), forked}, nil
}

// simulateStart returns the predicted course of a task with this start, forked from task or, if
// that is "", new.
func (h *startHandler) simulateStart(ctx context.Context, task string, start flow.Start) (*wire.Foresight, error) {
	told, err := h.reader.Foresee(ctx, task, start, flow.Env{Now: time.Now().UnixMilli(), Limits: h.limits.OrDefault()})
	if err != nil {
		return nil, err
	}
	f := &wire.Foresight{Steps: []wire.ForeseenStep{}, State: string(told.Status), More: told.More}
	for _, st := range told.Steps {
		f.Steps = append(f.Steps, wire.ForeseenStep{Scope: st.Scope, Node: st.Node, Visit: st.Visit,
			How: string(st.How), Service: st.Service, Calls: st.Calls, Next: st.Next,
			Output: st.Output.Begin, OutputBytes: st.Output.Bytes})
	}
	return f, nil
}

// checkStart reports whether a task can start, by the same checks as the member that will own it.
func (h *startHandler) checkStart(ctx context.Context, start flow.Start) error {
	plan, err := h.reader.Plan(ctx, start.Version)
	if err == nil {
		_, err = start.Fit(plan, h.limits.OrDefault())
	}
	return err
}

// forkVersion returns the version that the new task runs.
func (h *startHandler) forkVersion(ctx context.Context, row *persistence.TaskRow, number int, newest bool) (*persistence.Version, error) {
	if newest && number > 0 {
		return nil, newInvalidError("body.newest", "send one of them", "a task runs version %d or the newest one, not both", number)
	}
	f, err := h.catalog.flowBy(ctx, "path.task", row.FlowID)
	if err != nil {
		return nil, err
	}
	// by its id: clients of PocketFlow may have given several versions the same number
	if !newest && number == 0 {
		if v, err := h.store.Version(ctx, row.VersionID); !api.Missing(err) {
			return v, err
		}
		number = row.VersionNumber
	}
	return h.catalog.findVersion(ctx, "body.version", f, number)
}

func forkProblem(in *forkInput, err error) error {
	switch {
	case flow.ErrorKindOf(err) == flow.Invalid && in.Body.From == "":
		return locateError("body.at", err)
	case flow.ErrorKindOf(err) == flow.Invalid:
		return locateError("body.from", err)
	case api.Missing(err):
		return noTask(in.Task, err)
	}
	return locateError("path.task", err)
}

// listedSteps bounds how many steps an answer names.
const listedSteps = 1000

func forkSteps(steps []flow.ForkStep) []wire.ForkStep {
	list := []wire.ForkStep{}
	for _, st := range steps[:min(len(steps), listedSteps)] {
		list = append(list, wire.ForkStep{Scope: st.Scope, Node: st.Node, Visit: st.Visit,
			Why: string(st.Why), Output: st.Output.Begin, OutputBytes: st.Output.Bytes})
	}
	return list
}
