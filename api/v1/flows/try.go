package flows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/tasks"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// labelTry and tried are the label of trial tasks.
const (
	labelTry = "troupe"
	tried    = "try"
)

func (h *Handler) addTryRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "try-definition", Method: http.MethodPost, Path: "/v1/try", Tag: "flows", Created: true,
		Summary: "Try a definition",
		Text: "Starts a task of a definition without publishing it. The definition is validated as " +
			"for publishing, and stored only for this task: no list of flows or versions contains " +
			"it, and its schedule is not set. The task has the label troupe:try. One day later " +
			"both are deleted, whatever the state of the task. With an idempotency key the " +
			"request can be sent again."}, h.tryFlow)
}

type tryInput struct {
	Strictness
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"Alternative to idempotency_key."`
	Body           wire.TrialRequest
}

func (h *Handler) tryFlow(ctx context.Context, in *tryInput) (*route.StatusResponse[wire.TrialResult], error) {
	n, err := tryTask(in)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckStore(h.Engine); err != nil {
		return nil, err
	}
	p := h.toPublication(&sentDefinition{slug: in.Body.Slug, text: definitionText(in.Body.Definition), strict: in.Strict || in.Body.Strict})
	p.Now = h.Engine.Now().UnixMilli()
	v, warnings, err := persistence.Try(ctx, h.Store, p, n.Key)
	switch {
	case flow.ErrorKindOf(err) == flow.Conflict:
		return nil, tasks.ToStartProblem(err, "body.params", "")
	case err != nil:
		return nil, route.LocateError("body.definition", err)
	}
	n.VersionID = v.ID
	started, err := h.Engine.StartTask(ctx, n)
	if bad := new(flow.BadInputs); errors.As(err, &bad) {
		return nil, &route.LocatedError{Where: "body.params", Hint: "inputs of the definition lists its params", Err: err}
	}
	if err != nil {
		return nil, tasks.ToStartProblem(err, "body.params", v.FlowID)
	}
	return &route.StatusResponse[wire.TrialResult]{Status: route.StatusOf(started.Created),
		Body: wire.TrialResult{ID: started.Task, Created: started.Created, Flow: v.FlowID, Version: v.Number,
			Warnings: api.DefinitionProblems(warnings)}}, nil
}

// tryTask returns the start of a trial task, without its version.
func tryTask(in *tryInput) (n engine.NewTask, err error) {
	ask := &in.Body
	n = engine.NewTask{Key: cmp.Or(ask.IdempotencyKey, in.IdempotencyKey), Labels: map[string]string{labelTry: tried}}
	if in.IdempotencyKey != "" && in.IdempotencyKey != n.Key {
		return n, route.NewInvalidError("body.idempotency_key", "send one of them", "the body and the header Idempotency-Key are different")
	}
	if text, told := ask.Labels[labelTry]; told && text != tried {
		return n, route.NewInvalidError("body.labels", "leave it out", "the label %s is set by the server", labelTry)
	}
	maps.Copy(n.Labels, ask.Labels)
	if err := tasks.CheckLabels(n.Labels); err != nil {
		return n, err
	}
	if ask.Slug != "" {
		if err := persistence.CheckSlug(ask.Slug); err != nil {
			return n, route.LocateError("body.slug", err)
		}
	}
	n.Params, err = tasks.ReadParams(&wire.StartRequest{Params: ask.Params})
	return n, err
}

// definitionText returns the text of a definition, which was sent as an object or as a text with
// JSON or YAML.
func definitionText(sent json.RawMessage) []byte {
	var text string
	if json.Unmarshal(sent, &text) == nil {
		return []byte(text)
	}
	return sent
}
