// Package tasks serves the tasks of /v1: starts, commands, lists, counts, and bulk commands.
package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/work"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// Handler serves tasks and their commands.
type Handler struct {
	Router    *route.Router
	Finder    *catalog.Tasks
	Starts    *StartHandler
	Positions *work.Positions

	Store    api.Store
	Reader   api.Reader
	Engine   engine.Engine
	Payloads *payload.Store
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "start-task", Method: http.MethodPost, Path: "/v1/tasks", Tag: "tasks", Created: true,
		Summary: "Start a task",
		Text: "The answer is sent after the task is stored. With an idempotency key the request can " +
			"be sent again and returns the same task. The same key with another version, params " +
			"or labels is a conflict (409). A dry run returns a preview: choices and timers are " +
			"decided, and jobs and waits are named; what follows from their results is not known."}, h.Starts.startTask)
	route.Register(rt, route.Operation{ID: "start-tasks", Method: http.MethodPost, Path: "/v1/tasks/starts", Tag: "tasks",
		Summary: "Start many tasks",
		Text: "Each start has its own result: a rejected one has a problem, and the others are " +
			"stored. With an idempotency key for each, or one for the request, it can be sent " +
			"again and starts only the missing tasks."}, h.Starts.startTasks)
	route.Register(rt, route.Operation{ID: "list-tasks", Method: http.MethodGet, Path: "/v1/tasks", Tag: "tasks",
		Summary: "List tasks",
		Text:    "Newest first, unless sort says otherwise."}, h.listTasks)
	route.Register(rt, route.Operation{ID: "count-tasks", Method: http.MethodGet, Path: "/v1/tasks/count", Tag: "tasks",
		Summary: "Count tasks",
		Text: "Counts the tasks of the list with the same parameters. Above 10,000 the count is not " +
			"exact. By state, each state is counted up to 10,000 separately, with pending, " +
			"running and canceling together. By flow or label, the first 10,000 tasks are " +
			"examined. That also applies by state if no index covers the filter, such as a text. " +
			"For a label with a flow, a state or another label, at most 1,000 tasks are counted."}, h.countTasks)
	route.Register(rt, route.Operation{ID: "get-task", Method: http.MethodGet, Path: "/v1/tasks/{task}", Tag: "tasks",
		Summary: "Get a task",
		Text:    "The answer is exact: the journal's current state."}, h.getTask)
	route.Register(rt, route.Operation{ID: "cancel-task", Method: http.MethodPost,
		Path: "/v1/tasks/{task}/cancel", Tag: "tasks", Summary: "Cancel a task",
		Text: "Its running work is withdrawn, and its completed work is compensated if its flow " +
			"defines that. A task that has ended is unchanged; a warning reports it if the intent " +
			"was different. " +
			requestText}, h.cancelTask)
	h.registerCommand("pause", "Pause a task", "Nothing new starts; work in flight continues.", flow.Pause{})
	h.registerCommand("resume", "Resume a paused task", "", flow.Resume{})
	route.Register(rt, route.Operation{ID: "retry-task", Method: http.MethodPost,
		Path: "/v1/tasks/{task}/retry", Tag: "tasks", Summary: "Retry a failed task",
		Text: "Continues where the task failed, with everything that failed or with one step of a " +
			"dag. Completed work is not repeated: steps, units of a step, and work inside a " +
			"subflow or branch. A task that failed while it was paused is also resumed. " +
			requestText}, h.retryTask)
	h.registerStepCommand("hold", "Hold a step",
		"Prevents a step of a dag that has not started from starting. It is still skipped if a step "+
			"that it depends on fails.",
		func(a flow.Address) flow.Command { return flow.HoldStep{Address: a} })
	h.registerStepCommand("release", "Release a held step", "",
		func(a flow.Address) flow.Command { return flow.ReleaseStep{Address: a} })
	route.Register(rt, route.Operation{ID: "fork-task", Method: http.MethodPost, Path: "/v1/tasks/{task}/fork", Tag: "tasks", Created: true,
		Summary: "Fork a task",
		Text: "Starts a new task from the history of another one, such as a failed task with a " +
			"corrected version. The original task must have ended and is unchanged. Steps keep " +
			"their results while their nodes and all steps before them are the same in both " +
			"versions; the rest runs again. With an idempotency key the request can be sent " +
			"again."},
		h.Starts.forkTask)
	route.Register(rt, route.Operation{ID: "append-units", Method: http.MethodPost, Path: "/v1/tasks/{task}/append", Tag: "tasks",
		Summary: "Append units to a fanout",
		Text: "The step must have started. The answer contains the indexes of the new units. " +
			requestText}, h.appendItems)
	route.Register(rt, route.Operation{ID: "complete-unit", Method: http.MethodPost, Path: "/v1/tasks/{task}/complete", Tag: "tasks",
		Summary: "Complete or fail a unit with the route direct",
		Text:    "A unit that has ended is unchanged, and changed is false."}, h.completeUnit)
	route.Register(rt, route.Operation{ID: "signal-task", Method: http.MethodPost, Path: "/v1/tasks/{task}/signal", Tag: "tasks",
		Summary: "Signal a task",
		Text: "Sets a key of the task's shared state and wakes the steps that wait for it. No " +
			"signal is lost, whenever it arrives. A signal with a key that nothing in the flow " +
			"reads is accepted with a warning. A task that completed or was canceled rejects it " +
			"(409). " +
			requestText}, h.signalTask)
}

// Request holds the id of a request, so that a repeated request takes effect once.
type Request struct {
	RequestID      string `header:"Request-Id" maxLength:"200" doc:"Request ID: requests with the same ID take effect once."`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"Alternative to Request-Id."`
}

const requestText = "A request with an ID can be sent again: it takes effect once."

// commandRequestID returns the request id of a command. It includes the command, because the same
// id with another command is another request.
func (r *Request) commandRequestID(command string) (string, error) {
	if r.RequestID != "" && r.IdempotencyKey != "" && r.RequestID != r.IdempotencyKey {
		return "", route.NewInvalidError("header.Idempotency-Key", "send one of them", "Request-Id and Idempotency-Key are different")
	}
	id := cmp.Or(r.RequestID, r.IdempotencyKey)
	if id == "" {
		return "", nil
	}
	return command + ":" + id, nil
}

// CommandInput is the input of a command without a body.
type CommandInput struct {
	catalog.TaskPath
	Request
}

// registerCommand adds a route for a command without a body.
func (h *Handler) registerCommand(name, summary, text string, cmd flow.Command) {
	op := route.Operation{ID: name + "-task", Method: http.MethodPost,
		Path: "/v1/tasks/{task}/" + name, Tag: "tasks", Summary: summary, Text: text + " " + requestText}
	route.Register(h.Router, op, func(ctx context.Context, in *CommandInput) (*route.Response[wire.TaskSummary], error) {
		return h.answerCommand(ctx, name, cmd, in)
	})
}

// answerCommand sends a command, and answers with the stored task.
func (h *Handler) answerCommand(ctx context.Context, name string, cmd flow.Command,
	in *CommandInput) (*route.Response[wire.TaskSummary], error) {
	given, err := h.sendCommand(ctx, name, cmd, in)
	if err != nil {
		return nil, err
	}
	return given.toResponse(""), nil
}

// commandResult is the task after a command.
type commandResult struct {
	row  *persistence.TaskRow
	made int // number of events that the command caused; 0 for a late or repeated command
}

// toResponse returns the task after the command, with a warning if there is one.
func (g *commandResult) toResponse(warning string) *route.Response[wire.TaskSummary] {
	task := render.ToSummary(g.row)
	task.Warning = warning
	return &route.Response[wire.TaskSummary]{Body: task}
}

func (h *Handler) sendCommand(ctx context.Context, name string, cmd flow.Command, in *CommandInput) (*commandResult, error) {
	request, err := in.commandRequestID(name)
	if err != nil {
		return nil, err
	}
	out, err := h.Engine.Do(ctx, engine.Order{Task: in.Task, Command: cmd, Request: request})
	if err != nil {
		return nil, commandProblem(name, in.Task, err)
	}
	row, err := h.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	return &commandResult{row, out.Changed}, nil
}

func commandProblem(name, task string, err error) error {
	switch {
	case api.Missing(err):
		return catalog.LocateTaskError(task, err)
	case name == "signal" && flow.ErrorKindOf(err) != flow.Busy:
		return route.LocateError("body", err)
	}
	return route.LocateError("path.task", err)
}

type cancelInput struct {
	CommandInput
	Body *wire.CancelRequest
}

func (h *Handler) cancelTask(ctx context.Context, in *cancelInput) (*route.Response[wire.TaskSummary], error) {
	how := flow.Cancel{}
	if in.Body != nil {
		how = flow.Cancel{Gently: in.Body.Graceful, Force: in.Body.Force}
	}
	if how.Gently && how.Force {
		return nil, route.NewInvalidError("body.force", "send one of them", "a task cannot be canceled both gracefully and by force")
	}
	given, err := h.sendCommand(ctx, "cancel", how, &in.CommandInput)
	if err != nil {
		return nil, err
	}
	warning := ""
	if status := flow.TaskStatus(given.row.Status); given.made == 0 && (status == flow.TaskCompleted || status == flow.TaskFailed) {
		warning = fmt.Sprintf("the task has %s already: nothing was canceled", status)
	}
	return given.toResponse(warning), nil
}

type retryInput struct {
	CommandInput
	Body *wire.RetryRequest
}

func (h *Handler) retryTask(ctx context.Context, in *retryInput) (*route.Response[wire.TaskSummary], error) {
	cmd := flow.RetryTask{}
	if in.Body != nil {
		cmd.Node = in.Body.Step
	}
	given, err := h.sendCommand(ctx, "retry", cmd, &in.CommandInput)
	switch {
	case err != nil && cmd.Node != "":
		return nil, h.stepProblem(ctx, in.Task, err)
	case err != nil:
		return nil, err
	}
	return given.toResponse(""), nil
}

// HoldInput identifies a step of a task.
type HoldInput struct {
	CommandInput
	Body wire.StepName
}

// registerStepCommand adds a route for a command about a step.
func (h *Handler) registerStepCommand(name, summary, text string, command func(flow.Address) flow.Command) {
	op := route.Operation{ID: name + "-step", Method: http.MethodPost,
		Path: "/v1/tasks/{task}/" + name, Tag: "tasks", Summary: summary,
		Text: strings.TrimSpace(text + " " + requestText)}
	route.Register(h.Router, op, func(ctx context.Context, in *HoldInput) (*route.Response[wire.TaskSummary], error) {
		given, err := h.sendCommand(ctx, name, command(addressOf(in.Body)), &in.CommandInput)
		if err != nil {
			return nil, h.stepProblem(ctx, in.Task, err)
		}
		return given.toResponse(""), nil
	})
}

type appendInput struct {
	CommandInput
	Body wire.AppendUnits
}

func (h *Handler) appendItems(ctx context.Context, in *appendInput) (*route.Response[wire.AppendedUnits], error) {
	request, err := in.commandRequestID("append")
	if err != nil {
		return nil, err
	}
	items := make([]json.RawMessage, len(in.Body.Items))
	for i, item := range in.Body.Items {
		items[i] = api.OrNull(item)
	}
	units, err := engine.Append(ctx, h.Engine, in.Task,
		flow.Append{Address: addressOf(in.Body.StepName), Items: items, Route: in.Body.Route}, request)
	if err != nil {
		return nil, h.stepProblem(ctx, in.Task, err)
	}
	return &route.Response[wire.AppendedUnits]{Body: wire.AppendedUnits{Units: units}}, nil
}

func addressOf(n wire.StepName) flow.Address { return flow.Address{Scope: n.Scope, Node: n.Step} }

// stepProblem converts an error about a step. It distinguishes a missing step from a missing task.
func (h *Handler) stepProblem(ctx context.Context, task string, err error) error {
	if flow.ErrorKindOf(err) != flow.NotFound {
		return commandProblem("signal", task, err)
	}
	if _, missing := h.Store.Task(ctx, task); missing != nil {
		return catalog.LocateTaskError(task, missing)
	}
	return &route.LocatedError{Where: "body.step", Hint: "/v1/tasks/" + task + "/steps lists its steps", Err: err}
}

type completeInput struct {
	catalog.TaskPath
	Body wire.CompleteRequest
}

func (h *Handler) completeUnit(ctx context.Context, in *completeInput) (*route.Response[wire.CompleteResult], error) {
	if in.Body.Error != "" && len(in.Body.Output) > 0 {
		return nil, route.NewInvalidError("body.error", "send one of them", "a unit ends with an output or with an error, not with both")
	}
	at := addressOf(in.Body.StepName)
	at.Unit = in.Body.Unit
	out, err := h.Engine.Do(ctx, engine.Direct(in.Task, at, in.Body.Output, in.Body.Error))
	if err != nil {
		return nil, h.stepProblem(ctx, in.Task, err)
	}
	row, err := h.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	return &route.Response[wire.CompleteResult]{Body: wire.CompleteResult{Changed: out.Changed > 0, Task: render.ToSummary(row)}}, nil
}

type signalInput struct {
	CommandInput
	Body wire.Signal
}

func (h *Handler) signalTask(ctx context.Context, in *signalInput) (*route.Response[wire.TaskSummary], error) {
	given, err := h.sendCommand(ctx, "signal",
		flow.Signal{Key: in.Body.Key, Value: api.OrNull(in.Body.Value),
			By: api.Signer(ctx, in.Body.SentBy), Alive: true}, &in.CommandInput)
	if err != nil {
		return nil, err
	}
	return given.toResponse(h.signalWarning(ctx, given, in.Body.Key)), nil
}

// signalWarning returns a warning if the signal has no known effect, else "".
func (h *Handler) signalWarning(ctx context.Context, given *commandResult, key string) string {
	row := given.row
	// more than one event means that the signal woke a step, after which the task failed
	if row.Status == string(flow.TaskFailed) && given.made == 1 {
		return "the task has failed: the signal is read if it is retried"
	}
	plan, err := h.Reader.Plan(ctx, row.VersionID)
	if err != nil {
		return "" // the signal was accepted; an unreadable flow is reported elsewhere
	}
	heard := plan.Heard(row.Params)
	if heard.Has(key) {
		return ""
	}
	warning := fmt.Sprintf("nothing in flow %s reads the key %q", cmp.Or(row.FlowSlug, row.FlowID), key)
	if len(heard.Keys) == 0 {
		return warning + ": it reads none"
	}
	warning += fmt.Sprintf(": it reads %.300s", strings.Join(heard.Keys, ", "))
	if near := flow.Nearest(key, heard.Keys); near != "" {
		warning += fmt.Sprintf(" (did you mean %s?)", near)
	}
	return warning
}

type getTaskInput struct {
	catalog.TaskPath
	render.Values
	WaitMS    int64  `query:"wait_ms" minimum:"0" maximum:"300000" doc:"Maximum time in milliseconds to wait for the task's end; 0 = do not wait."`
	WaitUntil string `query:"wait_until" maxLength:"1000" doc:"With wait_ms: the step whose end the answer waits for, instead of the task's end. NODE, or NODE#2 for its second visit; for a function the name of a step."`
}

func (h *Handler) getTask(ctx context.Context, in *getTaskInput) (*route.Response[wire.Task], error) {
	view, err := h.Reader.View(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	step, err := h.waitForGet(ctx, in, view)
	if err != nil {
		return nil, err
	}
	if in.WaitMS > 0 && !view.State.Status.Ended() {
		if view, step, err = h.readAfterWait(ctx, in, step); err != nil {
			return nil, err
		}
	}
	task := render.ToTask(view)
	if err := h.Positions.AddToSteps(ctx, in.Task, task.Active); err != nil {
		return nil, err
	}
	in.CutTask(h.Payloads, &task)
	if step != nil {
		shown := []wire.Step{*step}
		in.CutSteps(h.Payloads, shown)
		task.Step = &shown[0]
	}
	return &route.Response[wire.Task]{Body: task}, nil
}

// waitForGet waits for the end of the task or of a step, as the request demands. It returns the
// step.
func (h *Handler) waitForGet(ctx context.Context, in *getTaskInput, view *persistence.View) (*wire.Step, error) {
	switch {
	case in.WaitUntil != "" && in.WaitMS == 0:
		return nil, route.NewInvalidError("query.wait_until", "send wait_ms, too", "without wait_ms the answer does not wait")
	case in.WaitMS == 0:
		return nil, nil
	case in.WaitUntil == "":
		if view.State.Status.Ended() {
			return nil, nil
		}
		return nil, catalog.LocateTaskError(in.Task, h.Starts.waitFor(ctx, in.Task, in.WaitMS))
	}
	s, err := parseAwaitedStep("query.wait_until", in.WaitUntil, view.State.Plan)
	if err != nil {
		return nil, err
	}
	step, err := h.Starts.endedStep(ctx, in.Task, s)
	if err == nil && step == nil && !view.State.Status.Ended() {
		step, err = h.Starts.awaitStep(ctx, in.Task, s, view.Seq, in.WaitMS)
	}
	return step, catalog.LocateTaskError(in.Task, err)
}

// readAfterWait reads a task again after a wait. If the task has ended since, so may have the step.
func (h *Handler) readAfterWait(ctx context.Context, in *getTaskInput, step *wire.Step) (*persistence.View, *wire.Step, error) {
	view, err := h.Reader.View(ctx, in.Task)
	if err != nil {
		return nil, nil, catalog.LocateTaskError(in.Task, err)
	}
	if step == nil && in.WaitUntil != "" && view.State.Status.Ended() {
		step, err = h.waitForGet(ctx, in, view)
	}
	return view, step, err
}

// waitFor waits up to ms milliseconds for the end of a task.
func (h *StartHandler) waitFor(ctx context.Context, task string, ms int64) error {
	waiting, leave := route.LiftTimeLimits(ctx)
	defer leave()
	waiting, cancel := context.WithTimeout(waiting, time.Duration(ms)*time.Millisecond)
	defer cancel()
	if _, err := h.Engine.Await(waiting, task); err != nil && waiting.Err() == nil {
		return err
	}
	return ctx.Err()
}
