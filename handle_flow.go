package troupe

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/internal/flowfuncs"
	"github.com/troupe-engine/troupe/persistence"
)

// HandleFlow registers a function of this program that is a flow, see package durable. It is
// published under its name, with the inputs that its type declares, when the member starts or is
// called the next time. Tasks of it are started like those of every other flow.
//
// Register the flows of a program before its member starts, because tasks that wait in the store go
// on at once. It panics, as an error of the program, if the name is already registered, or if JSON
// cannot represent the types of fn.
func HandleFlow[In, Out any](e *Engine, name string, fn durable.Func[In, Out]) {
	definition, err := flowfuncs.Definition[In, Out](name)
	if err != nil {
		panic(fmt.Sprintf("troupe: the flow %q: %v", name, err))
	}
	e.claimName(flow.FunctionService(name))
	e.flows.Register(name, func(c *conversation.Conversation) (json.RawMessage, error) { return durable.Invoke(c, name, fn) })
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unpublished = append(e.unpublished, unpublishedFlow{name, definition})
}

// unpublishedFlow is a flow that is a function and has not been published by this program yet.
type unpublishedFlow struct {
	name       string
	definition []byte
}

// publishFunctions publishes the registered flows that are functions. A version that the store has
// already stays as it is.
func publishFunctions(ctx context.Context, e *Engine) error {
	for ; len(e.unpublished) > 0; e.unpublished = e.unpublished[1:] {
		f := e.unpublished[0]
		p := persistence.Publication{Slug: f.name, Definition: f.definition, Now: time.Now().UnixMilli(),
			Limits: e.cfg.Limits}
		published, err := persistence.Publish(ctx, e.stores.Newest, p)
		if err != nil {
			return fmt.Errorf("the flow %q cannot be published: %w", f.name, toTypedError(err))
		}
		e.logWarnings(f.name, published.Version.Number, published.Warnings)
	}
	return nil
}
