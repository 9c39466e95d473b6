package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *startHandler) addRerunRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "rerun-task", method: http.MethodPost,
		path: "/v1/tasks/{task}/rerun", tag: "tasks", created: true,
		summary: "Start a task that does again what another one does",
		text: "From the beginning, with its labels, its params or others, and its version or " +
			"another one. The other task stays as it is, and need not have ended; forked_from " +
			"names it. With an idempotency key the request may be sent again."}, h.rerunTask)
}

type rerunInput struct {
	TaskPath
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"another name of idempotency_key"`
	Body           *wire.Rerun
}

func (h *startHandler) rerunTask(ctx context.Context, in *rerunInput) (*statusResponse[wire.Reran], error) {
	var ask wire.Rerun
	if in.Body != nil {
		ask = *in.Body
	}
	if err := checkStore(h.engine, ask.DryRun); err != nil {
		return nil, err
	}
	row, err := h.store.Task(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	v, err := h.forkVersion(ctx, row, ask.Version, ask.Newest)
	if err != nil {
		return nil, err
	}
	params, err := paramsOf(&wire.Start{Params: ask.Params})
	if err != nil {
		return nil, err
	}
	if ask.DryRun {
		return h.rerunDry(ctx, in, row, v, params)
	}
	started, err := h.engine.StartTask(ctx, engine.NewTask{VersionID: v.ID, Newest: ask.Newest,
		Params: params, Labels: schedule.Apart(row.Labels),
		Key: orElse(ask.IdempotencyKey, in.IdempotencyKey), Fork: in.Task, Anew: true})
	if err != nil {
		return nil, startProblem(err, "body.params", orElse(row.FlowSlug, row.FlowID))
	}
	return &statusResponse[wire.Reran]{statusOf(started.Created),
		wire.Reran{ID: started.Task, Created: started.Created, From: in.Task, Version: v.Number}}, nil
}

// rerunDry predicts the course of the new task.
func (h *startHandler) rerunDry(ctx context.Context, in *rerunInput, row *persistence.TaskRow,
	v *persistence.Version, params []byte) (*statusResponse[wire.Reran], error) {
	if len(params) == 0 {
		params = row.Params
	}
	told, err := h.simulateStart(ctx, in.Task, flow.Start{Version: v.ID, Params: params})
	if err != nil {
		return nil, startProblem(err, "body.params", orElse(row.FlowSlug, row.FlowID))
	}
	return &statusResponse[wire.Reran]{http.StatusOK, wire.Reran{From: in.Task, Version: v.Number, Foresight: told}}, nil
}
