package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/internal/flowfuncs"
)

// HandleFlow registers a function that is a flow; see package durable. Call it before Run. The
// worker must use Attach.
//
// Run publishes the flow under its name before the worker attaches. The flow declares the inputs of
// fn's type. A token with the role worker may not publish; in that case an author has to publish
// the flow.
//
// It panics, as a mistake of the program, if the name was registered before, or if JSON cannot
// represent the types of fn.
func HandleFlow[In, Out any](w *Worker, name string, fn durable.Func[In, Out]) {
	definition, err := flowfuncs.Definition[In, Out](name)
	if err != nil {
		panic(fmt.Sprintf("worker: the flow %q: %v", name, err))
	}
	if _, known := w.definitions[name]; known {
		panic(fmt.Sprintf("worker: the flow %q: there is a flow of that name already", name))
	}
	w.definitions[name] = definition
	w.flows.Register(name, func(c *conversation.Conversation) (json.RawMessage, error) { return durable.Invoke(c, name, fn) })
}

// publishFlows publishes the flows of the worker. It retries until the engine has answered or ctx
// ends. A worker whose token may not publish continues without publishing.
func (w *Worker) publishFlows(ctx context.Context, flows []string) error {
	for _, name := range flows {
		var pause backoff
		for {
			err := w.server.callEngine(ctx, http.MethodPut, "/flows/"+url.PathEscape(name), w.definitions[name], &struct{}{}, requestTime)
			if err == nil {
				break
			}
			switch status := statusOf(err); {
			case status == http.StatusForbidden:
				w.cfg.Logger.Warn("the token of this worker may not publish flows: an author has to publish this one",
					"flow", name, "definition", string(w.definitions[name]))
			case status == http.StatusUnauthorized:
				return w.server.deniedError(err)
			case isPermanent(err):
				return fmt.Errorf("worker: the flow %q cannot be published: %w", name, err)
			default:
				if pause.next == 0 {
					w.cfg.Logger.Warn("publishing a flow failed, retrying", "flow", name, "error", err)
				}
				if !pause.waitNext(ctx, err) {
					return nil
				}
				continue
			}
			break
		}
	}
	return nil
}
