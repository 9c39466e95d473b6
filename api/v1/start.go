package v1

import (
	"bytes"
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
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

type startInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"the same key for the same flow is the same task"`
	Body           wire.Start
}

type startAnswer = statusResponse[wire.Started]

// startHandler serves starts of tasks: single ones, many at once, forks and reruns.
type startHandler struct {
	router  *apiRouter
	catalog *flowCatalog
	finder  *taskFinder

	store    api.Store
	reader   api.Reader
	engine   engine.Engine
	limits   flow.Limits
	logger   *slog.Logger
	beginFor time.Duration
}

func (h *startHandler) startTask(ctx context.Context, in *startInput) (*startAnswer, error) {
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
			return nil, startProblem(err, where, in.Body.Flow)
		}
		return &startAnswer{http.StatusOK, wire.Started{Foresight: told}}, nil
	}
	task, err := h.engine.StartTask(ctx, n)
	if err != nil {
		return nil, startProblem(err, where, in.Body.Flow)
	}
	started := wire.Started{ID: task.Task, Created: task.Created}
	if in.Body.WaitMS > 0 {
		if started.Task, err = h.waitedFor(ctx, task.Task, in.Body.WaitMS); err != nil {
			return nil, err
		}
	}
	return &startAnswer{statusOf(task.Created), started}, nil
}

// waitedFor waits up to ms for the end of a task, and reads it.
func (h *startHandler) waitedFor(ctx context.Context, task string, ms int64) (*wire.Task, error) {
	if err := h.waitFor(ctx, task, ms); err != nil {
		return nil, err
	}
	view, err := h.reader.View(ctx, task)
	if err != nil {
		return nil, err
	}
	shown := toTask(view)
	return &shown, nil
}

// startProblem returns the answer if a task could not be started. where is the part of the request
// that holds its params.
func startProblem(err error, where, slug string) error {
	var bad *flow.BadInputs
	switch kind := flow.ErrorKindOf(err); {
	case errors.As(err, &bad):
		return &locatedError{where: where, hint: "GET /v1/flows/" + slug + " tells what the flow takes", err: err}
	case kind == flow.Conflict:
		return &locatedError{where: "body.idempotency_key", hint: "use another key, or send the same request", err: err}
	case kind == flow.Invalid:
		name := strings.TrimPrefix(where, "body.")
		return &locatedError{where: where, hint: fmt.Sprintf(
			`send what the flow takes, such as %q: ["a", "b"] or %q: {"order": 7}`, name, name), err: err}
	case kind == flow.Limit:
		return locateError(where, err)
	}
	return err
}

func (h *startHandler) newTask(ctx context.Context, in *startInput) (engine.NewTask, error) {
	n := engine.NewTask{Labels: in.Body.Labels, Key: orElse(in.Body.IdempotencyKey, in.IdempotencyKey)}
	if in.IdempotencyKey != "" && in.IdempotencyKey != n.Key {
		return n, newInvalidError("body.idempotency_key", "send one of them", "the body and the header Idempotency-Key are different")
	}
	if in.Body.DryRun && in.Body.WaitMS > 0 {
		return n, newInvalidError("body.wait_ms", "send one of them", "a dry run starts no task to wait for")
	}
	if flow.IsText(n.Key) && !flow.IsName(n.Key) {
		return n, newInvalidError("body.idempotency_key", "send the whole text as UTF-8",
			"the idempotency key %.80q %s", n.Key, flow.NoName)
	}
	if err := CheckLabels(n.Labels); err != nil {
		return n, err
	}
	var err error
	if n.Params, err = paramsOf(&in.Body); err != nil {
		return n, err
	}
	if err := checkStore(h.engine, in.Body.DryRun); err != nil {
		return n, err
	}
	f, err := h.catalog.flowBy(ctx, "body.flow", in.Body.Flow)
	if err != nil {
		return n, err
	}
	v, err := h.catalog.findVersion(ctx, "body.version", f, in.Body.Version)
	if err != nil {
		return n, err
	}
	n.VersionID, n.Newest = v.ID, in.Body.Version == 0
	return n, nil
}

// checkStore returns an error for a start, except a dry run, if the store is known to be
// unavailable.
func checkStore(e engine.Engine, dry bool) error {
	if dry {
		return nil
	}
	return engine.CheckStore(e)
}

// paramsOf returns the params of a start, from either field. White space is removed, so that it
// does not make an equal request a different one.
func paramsOf(start *wire.Start) (json.RawMessage, error) {
	v, input := bytes.TrimSpace(start.Params), bytes.TrimSpace(start.Input)
	name := "params"
	switch {
	case len(input) > 0 && len(v) > 0:
		return nil, newInvalidError("body.input", "send one of them", "input is another name of params")
	case len(input) > 0:
		name, v = "input", input
	}
	if len(v) == 0 || string(v) == "null" {
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return nil, newInvalidError("body."+name, "send an object such as {\"order\": 7}", "%s: no valid JSON: %v", name, err)
	}
	return b.Bytes(), nil
}

// maxLabel bounds the name and the value of a label.
const maxLabel = 256

// CheckLabels rejects labels that no filter could name, or no database store.
func CheckLabels(labels map[string]string) error {
	for name, text := range labels {
		switch {
		case name == "" || strings.Contains(name, ":"):
			return newInvalidError("body.labels",
				"choose a name without colons, because filters are written name:text",
				"%.80q is no name for a label", name)
		case len(name) > maxLabel || len(text) > maxLabel:
			return newInvalidError("body.labels",
				"labels are marks to find a task by: put data into params",
				"label %.80q is longer than %d bytes", name, maxLabel)
		case !isPrintable(name) || !isPrintable(text):
			return newInvalidError("body.labels", "use printable text", "label %.80q holds control characters", name)
		case !flow.IsName(name) || !flow.IsName(text):
			return newInvalidError("body.labels", "send the whole text as UTF-8", "label %.80q: %.80q %s", name, text, flow.NoName)
		}
	}
	return nil
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
