package tasks

import (
	"cmp"
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *StartHandler) addRerunRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "rerun-task", Method: http.MethodPost,
		Path: "/v1/tasks/{task}/rerun", Tag: "tasks", Created: true,
		Summary: "Rerun a task",
		Text: "Starts a new task from the beginning, with the labels of the original task, with the " +
			"same or other params, and with the same or another version. The original task is " +
			"unchanged and need not have ended; forked_from names it. With an idempotency key the " +
			"request can be sent again."}, h.rerunTask)
}

type rerunInput struct {
	catalog.TaskPath
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"Alternative to idempotency_key."`
	Body           *wire.RerunRequest
}

func (h *StartHandler) rerunTask(ctx context.Context, in *rerunInput) (*route.StatusResponse[wire.RerunResult], error) {
	var ask wire.RerunRequest
	if in.Body != nil {
		ask = *in.Body
	}
	if err := CheckStore(h.Engine, ask.DryRun); err != nil {
		return nil, err
	}
	row, err := h.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	v, err := h.forkVersion(ctx, row, ask.Version, ask.Latest)
	if err != nil {
		return nil, err
	}
	params, err := ReadParams(&wire.StartRequest{Params: ask.Params})
	if err != nil {
		return nil, err
	}
	if ask.DryRun {
		return h.rerunDry(ctx, in, row, v, params)
	}
	started, err := h.Engine.StartTask(ctx, engine.NewTask{VersionID: v.ID, Newest: ask.Latest,
		Params: params, Labels: schedule.Apart(row.Labels),
		Key: cmp.Or(ask.IdempotencyKey, in.IdempotencyKey), Fork: in.Task, Anew: true})
	if err != nil {
		return nil, ToStartProblem(err, "body.params", cmp.Or(row.FlowSlug, row.FlowID))
	}
	return &route.StatusResponse[wire.RerunResult]{Status: route.StatusOf(started.Created),
		Body: wire.RerunResult{ID: started.Task, Created: started.Created, From: in.Task, Version: v.Number}}, nil
}

// rerunDry predicts the course of the new task.
func (h *StartHandler) rerunDry(ctx context.Context, in *rerunInput, row *persistence.TaskRow,
	v *persistence.Version, params []byte) (*route.StatusResponse[wire.RerunResult], error) {
	if len(params) == 0 {
		params = row.Params
	}
	told, err := h.simulateStart(ctx, in.Task, flow.Start{Version: v.ID, Params: params})
	if err != nil {
		return nil, ToStartProblem(err, "body.params", cmp.Or(row.FlowSlug, row.FlowID))
	}
	return &route.StatusResponse[wire.RerunResult]{Status: http.StatusOK,
		Body: wire.RerunResult{From: in.Task, Version: v.Number, Preview: told}}, nil
}
