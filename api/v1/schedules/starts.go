package schedules

import (
	"cmp"
	"context"
	"errors"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/tasks"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// This file has the requests that start tasks of a schedule outside its slots.

type triggerInput struct {
	SchedulePath
	IdempotencyKey string               `header:"Idempotency-Key" maxLength:"200" doc:"Idempotency key: requests with the same key and flow are the same task."`
	Body           *wire.TriggerRequest `required:"false"`
}

func (h *Handler) triggerSchedule(ctx context.Context, in *triggerInput) (*tasks.StartAnswer, error) {
	var asked wire.TriggerRequest
	if in.Body != nil {
		asked = *in.Body
	}
	params, err := tasks.ReadParams(&wire.StartRequest{Params: asked.Params})
	if err != nil {
		return nil, err
	}
	if err := engine.CheckStore(h.Engine); err != nil {
		return nil, err
	}
	found, n, err := h.startOf(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if params != nil {
		n.Params = params
	}
	n.Key = cmp.Or(asked.IdempotencyKey, in.IdempotencyKey)
	n.Labels = schedule.Labels(found.Name, schedule.ByHand, 0, found.Labels)
	started, err := h.Engine.StartTask(ctx, n)
	if err != nil {
		return nil, tasks.ToStartProblem(err, "body.params", found.FlowID)
	}
	return &tasks.StartAnswer{Status: route.StatusOf(started.Created),
		Body: wire.StartResult{ID: started.Task, Created: started.Created}}, nil
}

// startOf returns a start for the newest version of a schedule's flow.
func (h *Handler) startOf(ctx context.Context, name string) (*persistence.Schedule, engine.NewTask, error) {
	found, err := h.scheduleBy(ctx, name)
	if err != nil {
		return nil, engine.NewTask{}, err
	}
	v, err := h.Store.FindVersion(ctx, found.FlowID, 0)
	if api.Missing(err) {
		err = route.NewNotFoundError("path.schedule", "publish one", "the flow of schedule %s has no published version", name)
	}
	if err != nil {
		return nil, engine.NewTask{}, err
	}
	return found, engine.NewTask{VersionID: v.ID, Newest: true, Params: found.Params, Traced: engine.AsLink(engine.TracedOf(ctx))}, nil
}

type backfillInput struct {
	SchedulePath
	Body wire.BackfillRequest
}

func (h *Handler) backfillSchedule(ctx context.Context, in *backfillInput) (*route.Response[wire.BackfillResult], error) {
	if err := tasks.CheckStore(h.Engine, in.Body.DryRun); err != nil {
		return nil, err
	}
	found, n, err := h.startOf(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	slots, err := h.pastSlots(found, &in.Body)
	if err != nil {
		return nil, err
	}
	done := wire.BackfillResult{Items: []wire.BackfilledSlot{}}
	ctx, begins, cancel := h.Starts.BeginSpan(ctx)
	defer cancel()
	for i, slot := range slots {
		n.Key, n.Labels = schedule.Key(found.ID, slot), schedule.Labels(found.Name, schedule.ByBackfill, slot, found.Labels)
		err := error(context.DeadlineExceeded)
		var item wire.BackfilledSlot
		if begins() {
			item, err = h.backfillSlot(ctx, found.FlowID, slot, n, in.Body.DryRun)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = flow.Errorf(flow.Busy, "%d of %d slots have their tasks, and there was no "+
				"time left for the others: send the same request again, which goes on with them", i,
				len(slots))
		}
		if err != nil {
			return nil, err
		}
		if item.Created {
			done.Created++
		}
		done.Items = append(done.Items, item)
	}
	return &route.Response[wire.BackfillResult]{Body: done}, nil
}

// pastSlots returns the slots that a backfill selects.
func (h *Handler) pastSlots(found *persistence.Schedule, b *wire.BackfillRequest) ([]int64, error) {
	rule, err := schedule.Read(found.Spec)
	if err != nil {
		return nil, scheduleProblem(err)
	}
	from, to := b.From.UnixMilli(), min(b.To.UnixMilli(), h.Engine.Now().UnixMilli()+1)
	if !b.From.Before(b.To.Time) {
		return nil, route.NewInvalidError("body.to", "send a time after from", "the range ends before it starts")
	}
	slots, more := rule.Slots(max(from, 0), to, mostSlots)
	if more {
		return nil, &route.LocatedError{Where: "body.to", Hint: "send a shorter range, then the next one",
			Err: flow.Errorf(flow.Limit, "the range has more than %d slots", mostSlots)}
	}
	return slots, nil
}

// backfillSlot starts the task of a slot, unless dry is true. A slot that already has a task is no
// conflict, even with other params.
func (h *Handler) backfillSlot(ctx context.Context, flowID string, slot int64,
	n engine.NewTask, dry bool) (item wire.BackfilledSlot, err error) {
	item.Slot = wire.Millis(slot)
	if item.Task, err = n.TaskID(flowID); err != nil {
		return item, err
	}
	if dry {
		_, err = h.Store.Task(ctx, item.Task)
		item.Created = api.Missing(err)
		if item.Created {
			err = nil
		}
		return item, err
	}
	started, err := h.Engine.StartTask(ctx, n)
	if flow.ErrorKindOf(err) == flow.Conflict {
		return item, nil
	}
	item.Created = started.Created
	return item, err
}
