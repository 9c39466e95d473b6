package troupe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// Replay reports whether the history of a task fits the code of a function.
type Replay struct {
	Steps   int      // number of recorded steps, since the function began anew if it did
	Differs string   // at which step the code asks for something else; "" if it fits
	Unasked []string // recorded steps that the code does not ask for; a task goes on despite them
}

// ReplayFunction repeats the recorded steps of a task with a function, and reports whether the task
// would go on with that code. Nothing is carried out or stored, so it is for tests and for checks
// before new code is deployed: replay the newest tasks of the flow.
func ReplayFunction[In, Out any](ctx context.Context, e *Engine, task string, fn durable.Func[In, Out]) (*Replay, error) {
	view, err := e.stores.Reader.View(ctx, task)
	if api.Missing(err) {
		return nil, newNotFoundError(err, "there is no task %.210q", task)
	}
	if err != nil {
		return nil, err
	}
	s := view.State
	call, is := s.ReplayedCall()
	if !is {
		return nil, fmt.Errorf("the task %s is none of a function: its flow has the mode %s", task, s.Plan.Root.Mode())
	}
	if call.Input, err = e.stores.Payloads.WholeFor(ctx, call.Input); err != nil {
		return nil, toTypedError(err)
	}
	for i := range call.Steps {
		if call.Steps[i].Output, err = e.stores.Payloads.WholeFor(ctx, call.Steps[i].Output); err != nil {
			return nil, toTypedError(err)
		}
	}
	j := job.WithKey(call.Key, job.Job{ID: call.Key, Task: task, Flow: view.FlowSlug, Params: call.Input, Log: io.Discard})
	r := &Replay{Steps: len(call.Steps)}
	r.Differs, r.Unasked = functions.Replay(ctx, j, call.Steps,
		func(c *conversation.Conversation) (json.RawMessage, error) {
			return durable.Invoke(c, view.FlowSlug, fn)
		})
	return r, nil
}
