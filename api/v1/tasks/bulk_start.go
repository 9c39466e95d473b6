package tasks

import (
	"context"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// startsAnew reports whether an action starts a new task for each selected one.
func startsAnew(b *wire.BulkRequest) bool { return b.Action == "rerun" || b.Action == "fork" }

// startAnew starts a new task for each of ids. The idempotency key is derived from the request and
// the old task, so a repeated request starts no second task. Tasks beyond the time limit are
// refused as busy; repeating the request continues with them.
func (h *StartHandler) startAnew(ctx context.Context, ids []string, b *wire.BulkRequest, request string, done *wire.BulkResult) error {
	ctx, begins, cancel := h.BeginSpan(ctx)
	defer cancel()
	done.Tasks = len(ids)
	for _, id := range ids {
		made, created, err := "", false, error(flow.Errorf(flow.Busy, "there was no time left for this task: send the same request again"))
		if begins() {
			made, created, err = h.startFor(ctx, id, b, request+":"+id)
		}
		switch {
		case err != nil:
			addRefusal(done, id, catalog.LocateTaskError(id, err))
			continue
		case created:
			done.Changed++
		default:
			done.Unchanged++
		}
		done.Started = append(done.Started, wire.BulkStartedTask{Task: id, ID: made})
	}
	return nil
}

func (h *StartHandler) startFor(ctx context.Context, id string, b *wire.BulkRequest, key string) (made string, created bool, err error) {
	of := catalog.TaskPath{Task: id}
	if b.Action == "fork" {
		forked, err := h.forkTask(ctx, &forkInput{TaskPath: of,
			Body: wire.ForkRequest{From: b.From, Version: b.Version, Latest: b.Latest, IdempotencyKey: key}})
		if err != nil {
			return "", false, err
		}
		return forked.Body.ID, forked.Body.Created, nil
	}
	reran, err := h.rerunTask(ctx, &rerunInput{TaskPath: of, Body: &wire.RerunRequest{Version: b.Version,
		Latest: b.Latest, IdempotencyKey: key}})
	if err != nil {
		return "", false, err
	}
	return reran.Body.ID, reran.Body.Created, nil
}
