package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// taskHandler serves tasks and the commands to them.
type taskHandler struct {
	router    *apiRouter
	finder    *taskFinder
	starts    *startHandler
	positions *queuePositions

	store    api.Store
	reader   api.Reader
	engine   engine.Engine
	payloads *payload.Store
}

func (h *taskHandler) addTaskRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "start-task", method: http.MethodPost, path: "/v1/tasks", tag: "tasks", created: true,
		summary: "Start a task",
		text: "When it is answered the task is stored. With an idempotency key the same " +
			"request may be sent again: it is the same task. The same key with another version, " +
			"params or labels is refused (409). A dry run is answered with what the task would " +
			"do: choices and timers are decided, and whoever would be called or waited for is " +
			"named; what follows from that is not known."}, h.starts.startTask)
	registerOperation(rt, apiOperation{id: "start-tasks", method: http.MethodPost, path: "/v1/tasks/starts", tag: "tasks",
		summary: "Start many tasks at once",
		text: "Each is answered in its place: one that is refused has a problem there. Those " +
			"that are not are stored. With an idempotency key of each, or one of the request, " +
			"it may be sent again, and starts those that are not there yet."}, h.starts.startTasks)
	registerOperation(rt, apiOperation{id: "list-tasks", method: http.MethodGet, path: "/v1/tasks", tag: "tasks",
		summary: "Search tasks, newest first"}, h.listTasks)
	registerOperation(rt, apiOperation{id: "count-tasks", method: http.MethodGet, path: "/v1/tasks/count", tag: "tasks",
		summary: "Count tasks", text: "Those that a list with the same parameters has. Beyond " +
			"10,000 the count is not exact. By state each is counted up to 10,000 by itself, " +
			"pending, running and canceling together; by a flow or a label the first 10,000 " +
			"tasks are looked at, and so they are by state where no index tells all that is " +
			"asked for, such as a text. Of a label and a flow, a state or another label no more " +
			"than 1,000 are counted."}, h.countTasks)
	registerOperation(rt, apiOperation{id: "get-task", method: http.MethodGet, path: "/v1/tasks/{task}", tag: "tasks",
		summary: "Read a task", text: "It is exact: what the journal says at this moment."}, h.getTask)
	registerOperation(rt, apiOperation{id: "cancel-task", method: http.MethodPost,
		path: "/v1/tasks/{task}/cancel", tag: "tasks", summary: "Cancel a task",
		text: "What it is doing is withdrawn, then what it has done is undone, if its flow says " +
			"how. A task that has ended stays as it is; a warning says so if that is not what " +
			"was meant. " + requestText}, h.cancelTask)
	h.registerCommand("pause", "Pause a task", "Nothing new starts; what is in flight goes on.", flow.Pause{})
	h.registerCommand("resume", "Resume a paused task", "", flow.Resume{})
	registerOperation(rt, apiOperation{id: "retry-task", method: http.MethodPost,
		path: "/v1/tasks/{task}/retry", tag: "tasks", summary: "Retry a failed task",
		text: "It goes on where it failed, with all that failed or with one step of a dag; what " +
			"completed is not done again: neither steps, nor units of a step, nor what is " +
			"inside a subflow or branch. One that failed while it was paused is resumed by this. " +
			requestText}, h.retryTask)
	h.registerStepCommand("hold", "Keep a step from beginning",
		"Of a dag, a step that has yet to begin. It is still skipped when what it depends on fails.",
		func(a flow.Address) flow.Command { return flow.HoldStep{Address: a} })
	h.registerStepCommand("release", "Let a step begin that was held", "",
		func(a flow.Address) flow.Command { return flow.ReleaseStep{Address: a} })
	registerOperation(rt, apiOperation{id: "fork-task", method: http.MethodPost, path: "/v1/tasks/{task}/fork", tag: "tasks", created: true,
		summary: "Start a task that goes on from the history of another one",
		text: "Such as a failed one with a version in which what failed is mended. The other " +
			"task has to have ended, and stays as it is. Steps keep their results as long as " +
			"their nodes do the same in both versions, and so does all that they followed; what " +
			"else there was is done again. With an idempotency key the request may be sent again."},
		h.starts.forkTask)
	registerOperation(rt, apiOperation{id: "append-units", method: http.MethodPost, path: "/v1/tasks/{task}/append", tag: "tasks",
		summary: "Append units to a fanout",
		text: "The step has to be started. The answer has the indexes of the new units. " +
			requestText}, h.appendItems)
	registerOperation(rt, apiOperation{id: "complete-unit", method: http.MethodPost, path: "/v1/tasks/{task}/complete", tag: "tasks",
		summary: "Complete or fail a unit whose route is direct",
		text:    "A unit that has ended stays as it is; changed says so."}, h.completeUnit)
	registerOperation(rt, apiOperation{id: "signal-task", method: http.MethodPost, path: "/v1/tasks/{task}/signal", tag: "tasks",
		summary: "Signal a task", text: "Sets a key of the task's shared state and wakes " +
			"whoever waits for it. No signal is lost, whenever it comes. One of a key that " +
			"nothing in the flow reads is taken, and answered with a warning. A task that has " +
			"completed or was canceled refuses it (409). " + requestText}, h.signalTask)
}

// TaskPath identifies a task.
type TaskPath struct {
	Task string `path:"task" maxLength:"200" doc:"id of the task"`
}

// Request holds the id of a request, so that a repeated request has its effect once.
type Request struct {
	RequestID      string `header:"Request-Id" maxLength:"200" doc:"the same id again has no second effect"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"another name of Request-Id"`
}

const requestText = "A request with an id may be sent again: it has its effect once."

// commandRequestID returns the id of a command's request. The same id with another command is
// another request.
func (r *Request) commandRequestID(command string) (string, error) {
	if r.RequestID != "" && r.IdempotencyKey != "" && r.RequestID != r.IdempotencyKey {
		return "", newInvalidError("header.Idempotency-Key", "send one of them", "Request-Id and Idempotency-Key are different")
	}
	id := orElse(r.RequestID, r.IdempotencyKey)
	if id == "" {
		return "", nil
	}
	return command + ":" + id, nil
}

// CommandInput is the input of a command without content.
type CommandInput struct {
	TaskPath
	Request
}

// registerCommand adds a route that gives a command without content to a task.
func (h *taskHandler) registerCommand(name, summary, text string, cmd flow.Command) {
	op := apiOperation{id: name + "-task", method: http.MethodPost,
		path: "/v1/tasks/{task}/" + name, tag: "tasks", summary: summary, text: text + " " + requestText}
	registerOperation(h.router, op, func(ctx context.Context, in *CommandInput) (*bodyResponse[wire.TaskSummary], error) {
		return h.answerCommand(ctx, name, cmd, in)
	})
}

// answerCommand sends a command and answers with the task as it is stored afterwards.
func (h *taskHandler) answerCommand(ctx context.Context, name string, cmd flow.Command,
	in *CommandInput) (*bodyResponse[wire.TaskSummary], error) {
	given, err := h.sendCommand(ctx, name, cmd, in)
	if err != nil {
		return nil, err
	}
	return given.toResponse(""), nil
}

// commandResult is the result of a command.
type commandResult struct {
	row  *persistence.TaskRow
	made int // number of events that it caused at once; 0 if it came late or was a repetition
}

// toResponse returns the task as it is stored after the command, with a warning if there is one.
func (g *commandResult) toResponse(warning string) *bodyResponse[wire.TaskSummary] {
	task := toSummary(g.row)
	task.Warning = warning
	return &bodyResponse[wire.TaskSummary]{task}
}

func (h *taskHandler) sendCommand(ctx context.Context, name string, cmd flow.Command, in *CommandInput) (*commandResult, error) {
	request, err := in.commandRequestID(name)
	if err != nil {
		return nil, err
	}
	out, err := h.engine.Do(ctx, engine.Order{Task: in.Task, Command: cmd, Request: request})
	if err != nil {
		return nil, commandProblem(name, in.Task, err)
	}
	row, err := h.store.Task(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	return &commandResult{row, out.Changed}, nil
}

func commandProblem(name, task string, err error) error {
	switch {
	case api.Missing(err):
		return noTask(task, err)
	case name == "signal" && flow.ErrorKindOf(err) != flow.Busy:
		return locateError("body", err)
	}
	return locateError("path.task", err)
}

// noTask converts an error that means that the task does not exist.
func noTask(task string, err error) error {
	if api.Missing(err) {
		return newNotFoundError("path.task",
			"check the id; ended tasks are deleted after the retention time", "there is no task %.210q", task)
	}
	return err
}

type cancelInput struct {
	CommandInput
	Body *wire.Cancel
}

func (h *taskHandler) cancelTask(ctx context.Context, in *cancelInput) (*bodyResponse[wire.TaskSummary], error) {
	how := flow.Cancel{}
	if in.Body != nil {
		how = flow.Cancel{Gently: in.Body.Gently, Force: in.Body.Force}
	}
	if how.Gently && how.Force {
		return nil, newInvalidError("body.force", "send one of them", "a task cannot be canceled gently and by force")
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
	Body *wire.Retry
}

func (h *taskHandler) retryTask(ctx context.Context, in *retryInput) (*bodyResponse[wire.TaskSummary], error) {
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

// registerStepCommand adds a route that gives a command about a step.
func (h *taskHandler) registerStepCommand(name, summary, text string, command func(flow.Address) flow.Command) {
	op := apiOperation{id: name + "-step", method: http.MethodPost,
		path: "/v1/tasks/{task}/" + name, tag: "tasks", summary: summary,
		text: strings.TrimSpace(text + " " + requestText)}
	registerOperation(h.router, op, func(ctx context.Context, in *HoldInput) (*bodyResponse[wire.TaskSummary], error) {
		given, err := h.sendCommand(ctx, name, command(addressOf(in.Body)), &in.CommandInput)
		if err != nil {
			return nil, h.stepProblem(ctx, in.Task, err)
		}
		return given.toResponse(""), nil
	})
}

type appendInput struct {
	CommandInput
	Body wire.Append
}

func (h *taskHandler) appendItems(ctx context.Context, in *appendInput) (*bodyResponse[wire.Appended], error) {
	request, err := in.commandRequestID("append")
	if err != nil {
		return nil, err
	}
	items := make([]json.RawMessage, len(in.Body.Items))
	for i, item := range in.Body.Items {
		items[i] = api.OrNull(item)
	}
	units, err := engine.Append(ctx, h.engine, in.Task,
		flow.Append{Address: addressOf(in.Body.StepName), Items: items, Route: in.Body.Route}, request)
	if err != nil {
		return nil, h.stepProblem(ctx, in.Task, err)
	}
	return &bodyResponse[wire.Appended]{wire.Appended{Units: units}}, nil
}

func addressOf(n wire.StepName) flow.Address { return flow.Address{Scope: n.Scope, Node: n.Step} }

// stepProblem distinguishes a missing step from a missing task.
func (h *taskHandler) stepProblem(ctx context.Context, task string, err error) error {
	if flow.ErrorKindOf(err) != flow.NotFound {
		return commandProblem("signal", task, err)
	}
	if _, missing := h.store.Task(ctx, task); missing != nil {
		return noTask(task, missing)
	}
	return &locatedError{where: "body.step", hint: "/v1/tasks/" + task + "/steps lists its steps", err: err}
}

type completeInput struct {
	TaskPath
	Body wire.Complete
}

func (h *taskHandler) completeUnit(ctx context.Context, in *completeInput) (*bodyResponse[wire.Completed], error) {
	if in.Body.Error != "" && len(in.Body.Output) > 0 {
		return nil, newInvalidError("body.error", "send one of them", "a unit ends with an output or with an error, not with both")
	}
	at := addressOf(in.Body.StepName)
	at.Unit = in.Body.Unit
	out, err := h.engine.Do(ctx, engine.Direct(in.Task, at, in.Body.Output, in.Body.Error))
	if err != nil {
		return nil, h.stepProblem(ctx, in.Task, err)
	}
	row, err := h.store.Task(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	return &bodyResponse[wire.Completed]{wire.Completed{Changed: out.Changed > 0, Task: toSummary(row)}}, nil
}

type signalInput struct {
	CommandInput
	Body wire.Signal
}

func (h *taskHandler) signalTask(ctx context.Context, in *signalInput) (*bodyResponse[wire.TaskSummary], error) {
	given, err := h.sendCommand(ctx, "signal",
		flow.Signal{Key: in.Body.Key, Value: api.OrNull(in.Body.Value),
			By: api.Signer(ctx, in.Body.By), Alive: true}, &in.CommandInput)
	if err != nil {
		return nil, err
	}
	return given.toResponse(h.signalWarning(ctx, given, in.Body.Key)), nil
}

// signalWarning returns a warning if the signal has no known effect, and "" otherwise.
func (h *taskHandler) signalWarning(ctx context.Context, given *commandResult, key string) string {
	row := given.row
	// with more events it woke a step, and the task failed because of that
	if row.Status == string(flow.TaskFailed) && given.made == 1 {
		return "the task has failed: the signal is read if it is retried"
	}
	plan, err := h.reader.Plan(ctx, row.VersionID)
	if err != nil {
		return "" // the signal was accepted; an unreadable flow is reported where it is shown
	}
	heard := plan.Heard(row.Params)
	if heard.Has(key) {
		return ""
	}
	warning := fmt.Sprintf("nothing in flow %s reads the key %q", orElse(row.FlowSlug, row.FlowID), key)
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
	TaskPath
	Values
	WaitMS int64 `query:"wait_ms" minimum:"0" maximum:"300000" doc:"wait this long for the task's end; 0 = not at all"`
}

func (h *taskHandler) getTask(ctx context.Context, in *getTaskInput) (*bodyResponse[wire.Task], error) {
	view, err := h.reader.View(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	if in.WaitMS > 0 && !view.State.Status.Ended() {
		if err := h.starts.waitFor(ctx, in.Task, in.WaitMS); err != nil {
			return nil, noTask(in.Task, err)
		}
		if view, err = h.reader.View(ctx, in.Task); err != nil {
			return nil, noTask(in.Task, err)
		}
	}
	task := toTask(view)
	if err := h.positions.stepsInLine(ctx, in.Task, task.Active); err != nil {
		return nil, err
	}
	in.cutTask(h.payloads, &task)
	return &bodyResponse[wire.Task]{task}, nil
}

// waitFor waits up to ms for the end of a task.
func (h *startHandler) waitFor(ctx context.Context, task string, ms int64) error {
	waiting, leave := liftTimeLimits(ctx)
	defer leave()
	waiting, cancel := context.WithTimeout(waiting, time.Duration(ms)*time.Millisecond)
	defer cancel()
	if _, err := h.engine.Await(waiting, task); err != nil && waiting.Err() == nil {
		return err
	}
	return ctx.Err()
}
