package v1

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// Tasks that a request makes a schedule start, outside its slots.

type triggerInput struct {
	SchedulePath
	IdempotencyKey string        `header:"Idempotency-Key" maxLength:"200" doc:"the same key for the same flow is the same task"`
	Body           *wire.Trigger `required:"false"`
}

func (h *scheduleHandler) triggerSchedule(ctx context.Context, in *triggerInput) (*startAnswer, error) {
	var asked wire.Trigger
	if in.Body != nil {
		asked = *in.Body
	}
	params, err := paramsOf(&wire.Start{Params: asked.Params})
	if err != nil {
		return nil, err
	}
	if err := engine.CheckStore(h.engine); err != nil {
		return nil, err
	}
	found, n, err := h.startOf(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if params != nil {
		n.Params = params
	}
	n.Key = orElse(asked.IdempotencyKey, in.IdempotencyKey)
	n.Labels = schedule.Labels(found.Name, schedule.ByHand, 0, found.Labels)
	started, err := h.engine.StartTask(ctx, n)
	if err != nil {
		return nil, startProblem(err, "body.params", found.FlowID)
	}
	return &startAnswer{statusOf(started.Created), wire.Started{ID: started.Task, Created: started.Created}}, nil
}

// startOf returns a start of the newest version of a schedule's flow.
func (h *scheduleHandler) startOf(ctx context.Context, name string) (*persistence.Schedule, engine.NewTask, error) {
	found, err := h.scheduleBy(ctx, name)
	if err != nil {
		return nil, engine.NewTask{}, err
	}
	v, err := h.store.FindVersion(ctx, found.FlowID, 0)
	if api.Missing(err) {
		err = newNotFoundError("path.schedule", "publish one", "the flow of schedule %s has no published version", name)
	}
	if err != nil {
		return nil, engine.NewTask{}, err
	}
	return found, engine.NewTask{VersionID: v.ID, Newest: true, Params: found.Params, Traced: engine.AsLink(engine.TracedOf(ctx))}, nil
}

type backfillInput struct {
	SchedulePath
	Body wire.Backfill
}

func (h *scheduleHandler) backfillSchedule(ctx context.Context, in *backfillInput) (*bodyResponse[wire.Backfilled], error) {
	if err := checkStore(h.engine, in.Body.DryRun); err != nil {
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
	done := wire.Backfilled{Items: []wire.BackfilledSlot{}}
	ctx, begins, cancel := h.starts.beginSpan(ctx)
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
	return &bodyResponse[wire.Backfilled]{done}, nil
}

// pastSlots returns the slots that a backfill selects.
func (h *scheduleHandler) pastSlots(found *persistence.Schedule, b *wire.Backfill) ([]int64, error) {
	rule, err := schedule.Read(found.Spec)
	if err != nil {
		return nil, scheduleProblem(err)
	}
	from, to := b.From.UnixMilli(), min(b.To.UnixMilli(), h.engine.Now().UnixMilli()+1)
	if !b.From.Before(b.To.Time) {
		return nil, newInvalidError("body.to", "send a time behind from", "the range ends before it begins")
	}
	slots, more := rule.Slots(max(from, 0), to, mostSlots)
	if more {
		return nil, &locatedError{where: "body.to", hint: "send a shorter range, and the next one then",
			err: flow.Errorf(flow.Limit, "the range has more than %d slots", mostSlots)}
	}
	return slots, nil
}

// backfillSlot starts the task of a slot; a dry run only reports it. A slot that has a task
// already, with any params, is no conflict.
func (h *scheduleHandler) backfillSlot(ctx context.Context, flowID string, slot int64,
	n engine.NewTask, dry bool) (item wire.BackfilledSlot, err error) {
	item.Slot = wire.Millis(slot)
	if item.Task, err = n.TaskID(flowID); err != nil {
		return item, err
	}
	if dry {
		_, err = h.store.Task(ctx, item.Task)
		item.Created = api.Missing(err)
		if item.Created {
			err = nil
		}
		return item, err
	}
	started, err := h.engine.StartTask(ctx, n)
	if flow.ErrorKindOf(err) == flow.Conflict {
		return item, nil
	}
	item.Created = started.Created
	return item, err
}
