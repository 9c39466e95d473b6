package history

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/payload"
)

func (h *Handler) addValueRoutes(rt *route.Router) {
	const path = "/v1/tasks/{task}/value"
	route.Register(rt, route.Operation{ID: "get-value", Method: http.MethodGet, Path: path, Tag: "tasks",
		Summary: "Get a value of a task",
		Text: "Byte for byte, or a part of it: a range of bytes, or the target of a JSON pointer. " +
			"Without step it is a value of the task, with step the output of a step, with unit a " +
			"value of a unit, with attempt one of an attempt."}, h.streamValue)
	rt.API.OpenAPI().Paths[path].Get.Responses["200"] = &huma.Response{Description: "OK; the value",
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{}}}}
}

type valueInput struct {
	catalog.TaskPath
	Of      string `query:"of" required:"true" enum:"params,shared,result,input,output,details" doc:"Kind of the value; input, output and details (of an error) belong to steps, units and attempts."`
	Key     string `query:"key" maxLength:"1000" doc:"For shared: only the value of this key."`
	Step    string `query:"step" maxLength:"1000" doc:"Slug of the step."`
	Scope   string `query:"scope" maxLength:"20000" doc:"Path of the scope of the step; absent = the task's root."`
	Visit   int    `query:"visit" minimum:"0" doc:"Number of the visit; 0 = the newest one."`
	Unit    int    `query:"unit" minimum:"-1" default:"-1" doc:"Index of the unit; -1 = the step itself, which has only an output."`
	Attempt int    `query:"attempt" minimum:"0" doc:"Number of the attempt; 0 = the unit itself."`
	Pointer string `query:"pointer" maxLength:"4000" doc:"JSON pointer into the value." example:"/rows/0"`
}

func (h *Handler) streamValue(ctx context.Context, in *valueInput) (*huma.StreamResponse, error) {
	find := h.valueOfTask
	if in.Step != "" {
		find = h.valueOfStep
	}
	value, err := find(ctx, in)
	if errors.As(err, new(*route.LocatedError)) {
		return nil, err
	}
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	if len(value) == 0 {
		return nil, route.NewNotFoundError("query.of", "request another value, or try again later", "there is no %s here", in.Of)
	}
	value, err = h.pointedAt(value, in.Pointer)
	if err != nil {
		return nil, err
	}
	content := h.Payloads.Reader(ctx, value)
	if content.Size() <= checkedBytes {
		if err := content.Check(); err != nil {
			return nil, err
		}
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := route.ExchangeOf(c.Context())
		header := x.Writer.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", api.ETag(value))
		served := &streamedValue{Reader: content}
		http.ServeContent(x.Writer, x.Request, "", time.Time{}, served)
		if served.err != nil { // the answer is compressed, so half of it would look complete
			api.NoteError(x.Request, served.err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// streamedValue is a value that is sent while it is being read. err is the error that stopped it.
type streamedValue struct {
	*payload.Reader
	err error
}

func (w *streamedValue) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

func (h *Handler) valueOfTask(ctx context.Context, in *valueInput) (json.RawMessage, error) {
	view, err := h.Reader.View(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	switch state := view.State; in.Of {
	case "params":
		return state.Params, nil
	case "shared":
		if in.Key == "" {
			return state.Root.SharedJSON(), nil
		}
		value, ok := state.Root.Shared[in.Key]
		if !ok {
			return nil, route.NewNotFoundError("query.key",
				"/v1/tasks/{task}?values=none lists the keys", "shared has no key %.200q", in.Key)
		}
		return value, nil
	case "result":
		if state.Status == flow.TaskCompleted {
			return state.Result(), nil
		}
		return nil, nil
	}
	return nil, route.NewInvalidError("query.step", "send the slug of a step", "a task has no %s of its own", in.Of)
}

func (h *Handler) valueOfStep(ctx context.Context, in *valueInput) (json.RawMessage, error) {
	at := flow.Address{Scope: in.Scope, Node: in.Step, Visit: in.Visit, Unit: max(in.Unit, 0), Attempt: in.Attempt}
	switch {
	case in.Of != "input" && in.Of != "output" && in.Of != "details":
		return nil, route.NewInvalidError("query.of", "send input, output or details as of, or remove step", "a step has no %s", in.Of)
	case in.Attempt > 0 && in.Visit == 0:
		return nil, route.NewInvalidError("query.visit", "send the visit of the attempt", "an attempt needs its visit")
	case in.Attempt > 0:
		run, err := h.Reader.Run(ctx, in.Task, at)
		if api.Missing(err) {
			return nil, route.NewNotFoundError("query.attempt", "/v1/tasks/{task}/runs lists the attempts", "the task has no such attempt")
		}
		if err != nil {
			return nil, err
		}
		return selectValue(in.Of, run.Input, run.Output, run.Details), nil
	case in.Unit < 0 && in.Of != "input":
		return h.outputOfStep(ctx, in)
	}
	list, err := h.Reader.Units(ctx, in.Task, at)
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil, route.NewNotFoundError("query.step", "/v1/tasks/{task}/steps lists its steps", "%s", err.Error())
	}
	if err != nil {
		return nil, err
	}
	if at.Unit >= list.Len() {
		return nil, route.NewNotFoundError("query.unit", "/v1/tasks/{task}/units lists its units", "the step has %d units", list.Len())
	}
	u := list.At(at.Unit)
	return selectValue(in.Of, u.Input, u.Output, u.Details), nil
}

func selectValue(of string, input, output, details json.RawMessage) json.RawMessage {
	switch of {
	case "input":
		return input
	case "output":
		return output
	}
	return details
}

// outputOfStep returns the output of a visit of a step.
func (h *Handler) outputOfStep(ctx context.Context, in *valueInput) (json.RawMessage, error) {
	q := flow.StepQuery{Scope: in.Scope, Node: in.Step, Most: 100, Bytes: pageBytes}
	var found *flow.StepView
	for {
		page, err := h.Reader.Steps(ctx, in.Task, q)
		if flow.ErrorKindOf(err) == flow.NotFound {
			return nil, route.NewNotFoundError("query.scope", "send inner_scope of a step that has started", "%s", err.Error())
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Steps {
			if v := &page.Steps[i]; in.Visit == 0 || v.Visit == in.Visit {
				found = v
			}
		}
		if !page.More || found != nil && in.Visit > 0 {
			break
		}
		q.After = page.Next
	}
	if found == nil {
		return nil, route.NewNotFoundError("query.step", "/v1/tasks/{task}/steps lists its steps", "the task has no such step")
	}
	return selectValue(in.Of, nil, found.Output, found.Details), nil
}

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// checkedBytes is the size up to which all references in a value are checked before the answer
// begins. References in larger values are checked during the answer.
const checkedBytes = 64 << 20

// pointedAt returns the part of a value at a JSON pointer.
func (h *Handler) pointedAt(value json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer == "" {
		return value, nil
	}
	names := strings.Split(pointer, "/")
	if names[0] != "" {
		return nil, route.NewInvalidError("query.pointer", "write it as /rows/0", "a JSON pointer begins with /")
	}
	for i, name := range names[1:] {
		var next json.RawMessage
		there := false
		opened, err := h.Payloads.Open(value)
		if err != nil {
			return nil, err
		}
		switch expr.KindOf(opened) {
		case expr.KindObject:
			next, there = expr.Field(opened, pointerUnescaper.Replace(name))
		case expr.KindArray:
			if n, err := strconv.Atoi(name); err == nil && n >= 0 {
				next, there = expr.Index(opened, n)
			}
		}
		if !there {
			return nil, route.NewNotFoundError("query.pointer", "look at the value without it",
				"the value has nothing at %.200q", strings.Join(names[:i+2], "/"))
		}
		value = next
	}
	return value, nil
}
