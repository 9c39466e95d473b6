package v1

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// The label of tasks whose definitions are only tried.
const (
	labelTry = "troupe"
	tried    = "try"
)

func (h *flowHandler) addTryRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "try-definition", method: http.MethodPost, path: "/v1/try", tag: "flows", created: true,
		summary: "Start a task of a definition without publishing it",
		text: "The definition is checked as by publishing it, and kept for this task alone: no " +
			"list of flows or versions has it, and no schedule of it is set. " +
			"The task has the label troupe:try. A day later both are deleted, whatever the task " +
			"is doing. With an idempotency key the request may be sent again."}, h.tryFlow)
}

type tryInput struct {
	Strictness
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"another name of idempotency_key"`
	Body           wire.Try
}

func (h *flowHandler) tryFlow(ctx context.Context, in *tryInput) (*statusResponse[wire.Tried], error) {
	n, err := tryTask(in)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckStore(h.engine); err != nil {
		return nil, err
	}
	p := h.toPublication(&sentDefinition{slug: in.Body.Slug, text: definitionText(in.Body.Definition), strict: in.Strict || in.Body.Strict})
	p.Now = h.engine.Now().UnixMilli()
	v, warnings, err := persistence.Try(ctx, h.store, p, n.Key)
	switch {
	case flow.ErrorKindOf(err) == flow.Conflict:
		return nil, startProblem(err, "body.params", "")
	case err != nil:
		return nil, locateError("body.definition", err)
	}
	n.VersionID = v.ID
	started, err := h.engine.StartTask(ctx, n)
	if bad := new(flow.BadInputs); errors.As(err, &bad) {
		return nil, &locatedError{where: "body.params", hint: "the inputs of the definition say what it takes", err: err}
	}
	if err != nil {
		return nil, startProblem(err, "body.params", v.FlowID)
	}
	return &statusResponse[wire.Tried]{statusOf(started.Created),
		wire.Tried{ID: started.Task, Created: started.Created, Flow: v.FlowID, Version: v.Number,
			Warnings: api.DefinitionProblems(warnings)}}, nil
}

// tryTask returns the requested task without its version.
func tryTask(in *tryInput) (n engine.NewTask, err error) {
	ask := &in.Body
	n = engine.NewTask{Key: orElse(ask.IdempotencyKey, in.IdempotencyKey), Labels: map[string]string{labelTry: tried}}
	if in.IdempotencyKey != "" && in.IdempotencyKey != n.Key {
		return n, newInvalidError("body.idempotency_key", "send one of them", "the body and the header Idempotency-Key are different")
	}
	if text, told := ask.Labels[labelTry]; told && text != tried {
		return n, newInvalidError("body.labels", "leave it out", "the label %s is set by the server", labelTry)
	}
	maps.Copy(n.Labels, ask.Labels)
	if err := CheckLabels(n.Labels); err != nil {
		return n, err
	}
	if ask.Slug != "" {
		if err := persistence.CheckSlug(ask.Slug); err != nil {
			return n, locateError("body.slug", err)
		}
	}
	n.Params, err = paramsOf(&wire.Start{Params: ask.Params})
	return n, err
}

// definitionText returns the text of a definition that was sent as an object, or as a text that
// holds JSON or YAML.
func definitionText(sent json.RawMessage) []byte {
	var text string
	if json.Unmarshal(sent, &text) == nil {
		return []byte(text)
	}
	return sent
}
