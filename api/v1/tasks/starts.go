package tasks

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// startsAtOnce is the number of tasks of one request that start at the same time and share commits.
const startsAtOnce = 128

type startsInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"190" doc:"Idempotency key for starts without one of their own; each gets its index appended, starting with KEY:0."`
	Body           wire.BatchStartRequest
}

func (h *StartHandler) startTasks(ctx context.Context, in *startsInput) (*route.Response[wire.BatchStartResults], error) {
	starts := in.Body.Starts
	answer := wire.BatchStartResults{Items: make([]wire.BatchStartResult, len(starts))}
	ctx, begins, cancel := h.BeginSpan(ctx)
	defer cancel()
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(starts), startsAtOnce) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(starts); i = int(next.Add(1)) - 1 {
				if !begins() {
					answer.Items[i] = h.refuseStart(ctx, i, errNoTimeToStart)
					continue
				}
				answer.Items[i] = h.startOne(ctx, in.IdempotencyKey, i, &starts[i])
			}
		})
	}
	all.Wait()
	return &route.Response[wire.BatchStartResults]{Body: answer}, nil
}

// errNoTimeToStart is the answer to a start that was not tried for lack of time.
var errNoTimeToStart = flow.Errorf(flow.Busy, "the task was not started, because earlier tasks of the request took too long: send it again")

// BeginSpan bounds a request that starts many tasks, so that the caller gets all answers before its
// own timeout. begins reports whether another task may start: within BeginFor, and while the caller
// waits. The context ends another BeginFor later, so that started tasks can finish.
func (h *StartHandler) BeginSpan(ctx context.Context) (_ context.Context, begins func() bool, cancel context.CancelFunc) {
	ctx, cancel = context.WithTimeout(ctx, 2*h.BeginFor)
	until := time.Now().Add(h.BeginFor)
	return ctx, func() bool { return ctx.Err() == nil && time.Now().Before(until) }, cancel
}

// startOne carries out one start of a batch.
func (h *StartHandler) startOne(ctx context.Context, key string, place int, start *wire.StartRequest) wire.BatchStartResult {
	if start.IdempotencyKey == "" && key != "" {
		start.IdempotencyKey = key + ":" + strconv.Itoa(place)
	}
	started, err := h.startAlone(ctx, start)
	if err != nil {
		return h.refuseStart(ctx, place, err)
	}
	return wire.BatchStartResult{ID: started.Body.ID, Created: started.Body.Created}
}

// refuseStart returns the answer to a refused start of a batch.
func (h *StartHandler) refuseStart(ctx context.Context, place int, err error) wire.BatchStartResult {
	p := h.Router.ToProblem(ctx, err)
	if what, ok := strings.CutPrefix(p.Field, "body"); ok {
		p.Field = fmt.Sprintf("body.starts[%d]%s", place, what)
		p.AddExplanation()
	}
	return wire.BatchStartResult{Problem: &p.Problem}
}

func (h *StartHandler) startAlone(ctx context.Context, start *wire.StartRequest) (*StartAnswer, error) {
	switch {
	case start.DryRun:
		return nil, route.NewInvalidError("body.dry_run", "send it alone to POST /v1/tasks",
			"a request with several starts cannot be a dry run")
	case start.WaitMS > 0 || start.WaitUntil != "":
		return nil, route.NewInvalidError("body.wait_ms",
			"send it alone to POST /v1/tasks, or read the task later", "a request with several starts cannot wait for the tasks")
	}
	return h.startTask(ctx, &startInput{Body: *start})
}
