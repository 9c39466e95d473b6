package v1

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// startsAtOnce is the number of tasks of one request that start at the same time. They share
// commits.
const startsAtOnce = 128

type startsInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"190" doc:"of the starts that have none of their own, each with its place behind it: KEY:0 is the first one's"`
	Body           wire.Starts
}

func (h *startHandler) startTasks(ctx context.Context, in *startsInput) (*bodyResponse[wire.StartedTasks], error) {
	starts := in.Body.Starts
	answer := wire.StartedTasks{Items: make([]wire.StartedTask, len(starts))}
	ctx, begins, cancel := h.beginSpan(ctx)
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
	return &bodyResponse[wire.StartedTasks]{answer}, nil
}

// errNoTimeToStart is the answer to a start that was not tried. The others in the same answer are
// done.
var errNoTimeToStart = flow.Errorf(flow.Busy, "it was not started, because those before it took too long: send it again")

// beginSpan bounds a request that starts many tasks, so that its caller gets all answers before its
// own timeout. begins reports whether another task may start: not after BeginFor, and not for a
// caller that is gone. The context gives started tasks another BeginFor to finish.
func (h *startHandler) beginSpan(ctx context.Context) (_ context.Context, begins func() bool, cancel context.CancelFunc) {
	ctx, cancel = context.WithTimeout(ctx, 2*h.beginFor)
	until := time.Now().Add(h.beginFor)
	return ctx, func() bool { return ctx.Err() == nil && time.Now().Before(until) }, cancel
}

// startOne carries out one of several starts.
func (h *startHandler) startOne(ctx context.Context, key string, place int, start *wire.Start) wire.StartedTask {
	if start.IdempotencyKey == "" && key != "" {
		start.IdempotencyKey = key + ":" + strconv.Itoa(place)
	}
	started, err := h.startAlone(ctx, start)
	if err != nil {
		return h.refuseStart(ctx, place, err)
	}
	return wire.StartedTask{ID: started.Body.ID, Created: started.Body.Created}
}

// refuseStart returns the answer to one of several starts that was refused.
func (h *startHandler) refuseStart(ctx context.Context, place int, err error) wire.StartedTask {
	p := h.router.toProblem(ctx, err)
	if what, ok := strings.CutPrefix(p.Where, "body"); ok {
		p.Where = fmt.Sprintf("body.starts[%d]%s", place, what)
		p.addExplanation()
	}
	return wire.StartedTask{Problem: &p.Problem}
}

func (h *startHandler) startAlone(ctx context.Context, start *wire.Start) (*startAnswer, error) {
	switch {
	case start.DryRun:
		return nil, newInvalidError("body.dry_run", "send it alone to POST /v1/tasks", "of several starts none is a dry run")
	case start.WaitMS > 0:
		return nil, newInvalidError("body.wait_ms",
			"send it alone to POST /v1/tasks, or read the task later", "of several starts none is waited for")
	}
	return h.startTask(ctx, &startInput{Body: *start})
}
