package v1

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/troupe-engine/troupe/api/wire"
)

// startsAtOnce is how many tasks of one request begin at the same time: those that do are stored together.
const startsAtOnce = 128

type startsInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"190" doc:"of the starts that have none of their own, each with its place behind it: KEY:0 is the first one's"`
	Body           wire.Starts
}

func (s *service) startTasks(ctx context.Context, in *startsInput) (*body[wire.StartedTasks], error) {
	starts := in.Body.Starts
	answer := wire.StartedTasks{Items: make([]wire.StartedTask, len(starts))}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(starts), startsAtOnce) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(starts); i = int(next.Add(1)) - 1 {
				answer.Items[i] = s.startOne(ctx, in.IdempotencyKey, i, &starts[i])
			}
		})
	}
	all.Wait()
	return &body[wire.StartedTasks]{answer}, nil
}

// startOne carries out one of several starts.
func (s *service) startOne(ctx context.Context, key string, place int, start *wire.Start) wire.StartedTask {
	if start.IdempotencyKey == "" && key != "" {
		start.IdempotencyKey = key + ":" + strconv.Itoa(place)
	}
	started, err := s.startAlone(ctx, start)
	if err != nil {
		p := s.problem(ctx, err)
		if what, ok := strings.CutPrefix(p.Where, "body"); ok {
			p.Where = fmt.Sprintf("body.starts[%d]%s", place, what)
			p.complete()
		}
		return wire.StartedTask{Problem: &p.Problem}
	}
	return wire.StartedTask{ID: started.Body.ID, Created: started.Body.Created}
}

func (s *service) startAlone(ctx context.Context, start *wire.Start) (*startAnswer, error) {
	switch {
	case start.DryRun:
		return nil, invalid("body.dry_run", "send it alone to POST /v1/tasks", "of several starts none is a dry run")
	case start.WaitMS > 0:
		return nil, invalid("body.wait_ms", "send it alone to POST /v1/tasks, or read the task later", "of several starts none is waited for")
	}
	return s.start(ctx, &startInput{Body: *start})
}
