package functions

import (
	"context"
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/internal/flowfuncs"
	"github.com/troupe-engine/troupe/job"
)

// Replay calls a function with recorded steps, and stops it after them. Nothing is carried out or
// stored. differs is why the code does not match the steps, "" if it does. unasked are recorded
// steps that the function did not use.
func Replay(ctx context.Context, j job.Job, steps []flow.CodeStep, fn flowfuncs.Func) (differs string, unasked []string) {
	c := conversation.New(ctx, j, stepsOf(steps), replayHost{}, 0)
	c.Undo() // the function only repeats recorded steps, including undos
	c.ReplaceWork(func(*conversation.Step) conversation.Work {
		return func(context.Context) (json.RawMessage, error) { return nil, nil }
	}, func(time.Duration) {})
	o := c.Run(ctx, func() (json.RawMessage, error) { return fn(c) })
	return o.Held, o.Unasked
}

// replayHost stores nothing.
type replayHost struct{}

func (replayHost) Now() time.Time                 { return time.Now() }
func (replayHost) Listen(func(conversation.Step)) {}
func (replayHost) Record(context.Context, []*conversation.Step, []*conversation.Wait) error {
	return nil
}
