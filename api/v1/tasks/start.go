package tasks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

type startInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"Idempotency key: requests with the same key and flow are the same task."`
	Body           wire.StartRequest
}

// StartAnswer is the answer to a start.
type StartAnswer = route.StatusResponse[wire.StartResult]

// StartHandler serves starts: single starts, batches, forks and reruns.
type StartHandler struct {
	Router  *route.Router
	Catalog *catalog.Flows
	Finder  *catalog.Tasks

	Store    api.Store
	Reader   api.Reader
	Engine   engine.Engine
	Limits   flow.Limits
	Logger   *slog.Logger
	BeginFor time.Duration
}

func (h *StartHandler) startTask(ctx context.Context, in *startInput) (*StartAnswer, error) {
	n, err := h.newTask(ctx, in)
	if err != nil {
		return nil, err
	}
	where := "body.params"
	if len(in.Body.Params) == 0 {
		where = "body.input"
	}
	if in.Body.DryRun {
		told, err := h.simulateStart(ctx, "", flow.Start{Version: n.VersionID, Params: n.Params})
		if err != nil {
			return nil, ToStartProblem(err, where, in.Body.Flow)
		}
		return &StartAnswer{Status: http.StatusOK, Body: wire.StartResult{Preview: told}}, nil
	}
	step, err := h.stepToAwait(ctx, &in.Body, n.VersionID)
	if err != nil {
		return nil, err
	}
	task, err := h.Engine.StartTask(ctx, n)
	if err != nil {
		return nil, ToStartProblem(err, where, in.Body.Flow)
	}
	started := wire.StartResult{ID: task.Task, Created: task.Created}
	switch {
	case in.Body.WaitMS == 0:
		return &StartAnswer{Status: route.StatusOf(task.Created), Body: started}, nil
	case step.node == "":
		err = h.waitFor(ctx, task.Task, in.Body.WaitMS)
	default:
		started.Step, err = h.awaitStep(ctx, task.Task, step, 0, in.Body.WaitMS)
	}
	if err == nil {
		started.Task, err = h.readTask(ctx, task.Task)
	}
	if err == nil && step.node != "" && started.Step == nil && !started.Task.EndedAt.IsZero() {
		started.Step, err = h.endedStep(ctx, task.Task, step) // it may have ended after the wait, with the task
	}
	if err != nil {
		return nil, err
	}
	return &StartAnswer{Status: route.StatusOf(task.Created), Body: started}, nil
}

// stepToAwait returns the step for which a start request waits; zero if there is none.
func (h *StartHandler) stepToAwait(ctx context.Context, start *wire.StartRequest, version string) (s awaitedStep, err error) {
	if start.WaitUntil == "" {
		return s, nil
	}
	if start.WaitMS == 0 {
		return s, route.NewInvalidError("body.wait_until", "send wait_ms, too", "without wait_ms the answer does not wait")
	}
	plan, err := h.Reader.Plan(ctx, version)
	if err != nil {
		return s, err
	}
	return parseAwaitedStep("body.wait_until", start.WaitUntil, plan)
}

// readTask reads a task and converts it to an answer.
func (h *StartHandler) readTask(ctx context.Context, task string) (*wire.Task, error) {
	view, err := h.Reader.View(ctx, task)
	if err != nil {
		return nil, err
	}
	shown := render.ToTask(view)
	return &shown, nil
}

// ToStartProblem converts the error of a start to an answer. where is the place of the params in
// the request.
func ToStartProblem(err error, where, slug string) error {
	var bad *flow.BadInputs
	switch kind := flow.ErrorKindOf(err); {
	case errors.As(err, &bad):
		return &route.LocatedError{Where: where, Hint: "GET /v1/flows/" + slug + " returns the inputs of the flow", Err: err}
	case kind == flow.Conflict:
		return &route.LocatedError{Where: "body.idempotency_key", Hint: "use another key, or send the same request", Err: err}
	case kind == flow.Invalid:
		name := strings.TrimPrefix(where, "body.")
		return &route.LocatedError{Where: where, Hint: fmt.Sprintf(
			`send the inputs of the flow, such as %q: ["a", "b"] or %q: {"order": 7}`, name, name), Err: err}
	case kind == flow.Limit:
		return route.LocateError(where, err)
	}
	return err
}

func (h *StartHandler) newTask(ctx context.Context, in *startInput) (engine.NewTask, error) {
	n := engine.NewTask{Labels: in.Body.Labels, Key: cmp.Or(in.Body.IdempotencyKey, in.IdempotencyKey)}
	if in.IdempotencyKey != "" && in.IdempotencyKey != n.Key {
		return n, route.NewInvalidError("body.idempotency_key", "send one of them", "the body and the header Idempotency-Key are different")
	}
	if in.Body.DryRun && (in.Body.WaitMS > 0 || in.Body.WaitUntil != "") {
		return n, route.NewInvalidError("body.wait_ms", "send one of them", "a dry run starts no task to wait for")
	}
	if flow.IsText(n.Key) && !flow.IsName(n.Key) {
		return n, route.NewInvalidError("body.idempotency_key", "send the whole text as UTF-8",
			"the idempotency key %.80q %s", n.Key, flow.NoName)
	}
	if err := CheckLabels(n.Labels); err != nil {
		return n, err
	}
	var err error
	if n.Params, err = ReadParams(&in.Body); err != nil {
		return n, err
	}
	if err := CheckStore(h.Engine, in.Body.DryRun); err != nil {
		return n, err
	}
	f, err := h.Catalog.FindFlow(ctx, "body.flow", in.Body.Flow)
	if err != nil {
		return n, err
	}
	v, err := h.Catalog.FindVersion(ctx, "body.version", f, in.Body.Version)
	if err != nil {
		return n, err
	}
	n.VersionID, n.Newest = v.ID, in.Body.Version == 0
	return n, nil
}

// CheckStore returns an error if the store is known to be unavailable, unless dry is true.
func CheckStore(e engine.Engine, dry bool) error {
	if dry {
		return nil
	}
	return engine.CheckStore(e)
}

// ReadParams returns the params of a start from either field. It removes surrounding white space,
// so that equal requests stay equal.
func ReadParams(start *wire.StartRequest) (json.RawMessage, error) {
	v, input := bytes.TrimSpace(start.Params), bytes.TrimSpace(start.Input)
	name := "params"
	switch {
	case len(input) > 0 && len(v) > 0:
		return nil, route.NewInvalidError("body.input", "send one of them", "input is another name of params")
	case len(input) > 0:
		name, v = "input", input
	}
	if len(v) == 0 || string(v) == "null" {
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return nil, route.NewInvalidError("body."+name, "send an object such as {\"order\": 7}", "%s is not valid JSON: %v", name, err)
	}
	return b.Bytes(), nil
}

// maxLabel bounds the bytes of a label's name and value.
const maxLabel = 256

// CheckLabels rejects labels that no filter can name or no database can store.
func CheckLabels(labels map[string]string) error {
	for name, text := range labels {
		switch {
		case name == "" || strings.Contains(name, ":"):
			return route.NewInvalidError("body.labels",
				"choose a name without colons, because filters are written name:text",
				"%.80q is not a valid name for a label", name)
		case len(name) > maxLabel || len(text) > maxLabel:
			return route.NewInvalidError("body.labels",
				"labels are only for finding tasks: put data into params",
				"label %.80q is longer than %d bytes", name, maxLabel)
		case !IsPrintable(name) || !IsPrintable(text):
			return route.NewInvalidError("body.labels", "use printable text", "label %.80q contains control characters", name)
		case !flow.IsName(name) || !flow.IsName(text):
			return route.NewInvalidError("body.labels", "send the whole text as UTF-8", "label %.80q: %.80q %s", name, text, flow.NoName)
		}
	}
	return nil
}

// IsPrintable reports whether a text is UTF-8 without control characters.
func IsPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
