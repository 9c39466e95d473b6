package v1

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
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/payload"
)

func (h *historyHandler) addValueRoutes(rt *apiRouter) {
	const path = "/v1/tasks/{task}/value"
	registerOperation(rt, apiOperation{id: "get-value", method: http.MethodGet, path: path, tag: "tasks",
		summary: "Read one value of a task as it is",
		text: "Byte for byte, or a part of it: a Range of bytes, or what a JSON pointer " +
			"leads to. Without step it is a value of the task, with step the output of a step, " +
			"with unit a value of a unit, with attempt that of an attempt."}, h.streamValue)
	rt.huma.OpenAPI().Paths[path].Get.Responses["200"] = &huma.Response{Description: "OK; the value",
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{}}}}
}

type valueInput struct {
	TaskPath
	Of      string `query:"of" required:"true" enum:"params,shared,result,input,output,details" doc:"which value: input, output and details (of an error) are those of steps, units and attempts"`
	Key     string `query:"key" maxLength:"1000" doc:"of shared: only what this key has"`
	Step    string `query:"step" maxLength:"1000" doc:"slug of a step"`
	Scope   string `query:"scope" maxLength:"20000" doc:"the scope it is in; absent = the task's root"`
	Visit   int    `query:"visit" minimum:"0" doc:"which visit of it; 0 = the newest one"`
	Unit    int    `query:"unit" minimum:"-1" default:"-1" doc:"which unit; -1 = the step itself, of which there is an output alone"`
	Attempt int    `query:"attempt" minimum:"0" doc:"which attempt; 0 = the unit itself"`
	Pointer string `query:"pointer" maxLength:"4000" doc:"a JSON pointer into the value" example:"/rows/0"`
}

func (h *historyHandler) streamValue(ctx context.Context, in *valueInput) (*huma.StreamResponse, error) {
	find := h.valueOfTask
	if in.Step != "" {
		find = h.valueOfStep
	}
	value, err := find(ctx, in)
	if errors.As(err, new(*locatedError)) {
		return nil, err
	}
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	if len(value) == 0 {
		return nil, newNotFoundError("query.of", "ask for another one, or when there is one", "there is no %s here", in.Of)
	}
	value, err = h.pointedAt(value, in.Pointer)
	if err != nil {
		return nil, err
	}
	content := h.payloads.Reader(ctx, value)
	if content.Size() <= checkedBytes {
		if err := content.Check(); err != nil {
			return nil, err
		}
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := c.Context().Value(exchangeKey{}).(httpExchange)
		header := x.w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", api.ETag(value))
		served := &streamedValue{Reader: content}
		http.ServeContent(x.w, x.r, "", time.Time{}, served)
		if served.err != nil { // the answer is compressed, so half of it would look complete
			api.NoteError(x.r, served.err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// streamedValue is a value that is sent while it is read, and the error that stopped it.
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

func (h *historyHandler) valueOfTask(ctx context.Context, in *valueInput) (json.RawMessage, error) {
	view, err := h.reader.View(ctx, in.Task)
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
			return nil, newNotFoundError("query.key",
				"/v1/tasks/{task}?values=none has the keys there are", "shared has no key %.200q", in.Key)
		}
		return value, nil
	case "result":
		if state.Status == flow.TaskCompleted {
			return state.Result(), nil
		}
		return nil, nil
	}
	return nil, newInvalidError("query.step", "send the slug of a step", "a task has no %s of its own", in.Of)
}

func (h *historyHandler) valueOfStep(ctx context.Context, in *valueInput) (json.RawMessage, error) {
	at := flow.Address{Scope: in.Scope, Node: in.Step, Visit: in.Visit, Unit: max(in.Unit, 0), Attempt: in.Attempt}
	switch {
	case in.Of != "input" && in.Of != "output" && in.Of != "details":
		return nil, newInvalidError("query.of", "ask for input, output or details, or leave out step", "a step has no %s", in.Of)
	case in.Attempt > 0 && in.Visit == 0:
		return nil, newInvalidError("query.visit", "send the visit that the attempt belongs to", "the attempt's visit is not said")
	case in.Attempt > 0:
		run, err := h.reader.Run(ctx, in.Task, at)
		if api.Missing(err) {
			return nil, newNotFoundError("query.attempt", "/v1/tasks/{task}/runs lists the attempts", "the task has no such attempt")
		}
		if err != nil {
			return nil, err
		}
		return selectValue(in.Of, run.Input, run.Output, run.Details), nil
	case in.Unit < 0 && in.Of != "input":
		return h.outputOfStep(ctx, in)
	}
	list, err := h.reader.Units(ctx, in.Task, at)
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil, newNotFoundError("query.step", "/v1/tasks/{task}/steps lists its steps", "%s", err.Error())
	}
	if err != nil {
		return nil, err
	}
	if at.Unit >= list.Len() {
		return nil, newNotFoundError("query.unit", "/v1/tasks/{task}/units lists its units", "the step has %d units", list.Len())
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

// outputOfStep finds the output of a visit among the steps of a scope.
func (h *historyHandler) outputOfStep(ctx context.Context, in *valueInput) (json.RawMessage, error) {
	q := flow.StepQuery{Scope: in.Scope, Node: in.Step, Most: 100, Bytes: pageBytes}
	var found *flow.StepView
	for {
		page, err := h.reader.Steps(ctx, in.Task, q)
		if flow.ErrorKindOf(err) == flow.NotFound {
			return nil, newNotFoundError("query.scope", "send below of a step that has begun", "%s", err.Error())
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
		return nil, newNotFoundError("query.step", "/v1/tasks/{task}/steps lists its steps", "the task has no such step")
	}
	return selectValue(in.Of, nil, found.Output, found.Details), nil
}

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// checkedBytes is the size up to which all references in a value are checked before it is sent.
// References in larger values are checked while they are read.
const checkedBytes = 64 << 20

// pointedAt returns the part of a value that a JSON pointer selects.
func (h *historyHandler) pointedAt(value json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer == "" {
		return value, nil
	}
	names := strings.Split(pointer, "/")
	if names[0] != "" {
		return nil, newInvalidError("query.pointer", "write it as /rows/0", "a JSON pointer begins with /")
	}
	for i, name := range names[1:] {
		var next json.RawMessage
		there := false
		opened, err := h.payloads.Open(value)
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
			return nil, newNotFoundError("query.pointer", "look at the value without it",
				"the value has nothing at %.200q", strings.Join(names[:i+2], "/"))
		}
		value = next
	}
	return value, nil
}
