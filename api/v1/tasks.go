package v1

import (
	"context"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

func (s *service) taskRoutes() {
	serve(s, operation{id: "start-task", method: http.MethodPost, path: "/v1/tasks", tag: "tasks", created: true,
		summary: "Start a task",
		text:    "When it is answered the task is stored. With an idempotency key the same request may be sent again: it is the same task. The same key with another version, params or labels is refused (409)."}, s.start)
	serve(s, operation{id: "list-tasks", method: http.MethodGet, path: "/v1/tasks", tag: "tasks",
		summary: "Search tasks, newest first"}, s.listTasks)
	serve(s, operation{id: "get-task", method: http.MethodGet, path: "/v1/tasks/{task}", tag: "tasks",
		summary: "Read a task", text: "It is exact: what the journal says at this moment."}, s.getTask)
	s.command("cancel", "Cancel a task", "What it is doing is withdrawn. A task that has ended stays as it is.", flow.Cancel{})
	s.command("pause", "Pause a task", "Nothing new starts; what is in flight goes on.", flow.Pause{})
	s.command("resume", "Resume a paused task", "", flow.Resume{})
	serve(s, operation{id: "signal-task", method: http.MethodPost, path: "/v1/tasks/{task}/signal", tag: "tasks",
		summary: "Signal a task", text: "Sets a key of the task's shared state and wakes whoever waits for it. No signal is lost, whenever it comes. " + requestText}, s.signal)
}

// TaskPath names a task.
type TaskPath struct {
	Task string `path:"task" maxLength:"200" doc:"id of the task"`
}

// Request names a request, so that it can be sent again and has its effect once.
type Request struct {
	RequestID      string `header:"Request-Id" maxLength:"200" doc:"the same id again has no second effect"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" doc:"another name of Request-Id"`
}

const requestText = "A request with an id may be sent again: it has its effect once."

// id of a command's request: the same word for another command is another request.
func (r *Request) id(command string) (string, error) {
	if r.RequestID != "" && r.IdempotencyKey != "" && r.RequestID != r.IdempotencyKey {
		return "", invalid("header.Idempotency-Key", "send one of them", "Request-Id and Idempotency-Key are different")
	}
	id := orElse(r.RequestID, r.IdempotencyKey)
	if id == "" {
		return "", nil
	}
	return command + ":" + id, nil
}

// CommandInput is all that a command without content needs.
type CommandInput struct {
	TaskPath
	Request
}

// command adds a route that gives a command without content to a task.
func (s *service) command(name, summary, text string, cmd flow.Command) {
	op := operation{id: name + "-task", method: http.MethodPost, path: "/v1/tasks/{task}/" + name, tag: "tasks", summary: summary, text: text + " " + requestText}
	serve(s, op, func(ctx context.Context, in *CommandInput) (*body[wire.TaskSummary], error) {
		return s.do(ctx, name, cmd, in)
	})
}

// do gives a command and answers with the task as it is stored then.
func (s *service) do(ctx context.Context, name string, cmd flow.Command, in *CommandInput) (*body[wire.TaskSummary], error) {
	request, err := in.id(name)
	if err != nil {
		return nil, err
	}
	if err := s.Engine.Do(ctx, in.Task, cmd, request); err != nil {
		return nil, commandProblem(name, in.Task, err)
	}
	row, err := s.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	return &body[wire.TaskSummary]{toSummary(row)}, nil
}

func commandProblem(name, task string, err error) error {
	switch {
	case isMissing(err):
		return noTask(task, err)
	case name == "signal" && flow.KindOf(err) != flow.Busy:
		return at("body", err)
	}
	return at("path.task", err)
}

// noTask says so when that is what an error means.
func noTask(task string, err error) error {
	if isMissing(err) {
		return missing("path.task", "check the id; ended tasks are deleted after the retention time", "there is no task %.210q", task)
	}
	return err
}

type signalInput struct {
	CommandInput
	Body wire.Signal
}

func (s *service) signal(ctx context.Context, in *signalInput) (*body[wire.TaskSummary], error) {
	return s.do(ctx, "signal", flow.Signal{Key: in.Body.Key, Value: raw(in.Body.Value)}, &in.CommandInput)
}

type getTaskInput struct {
	TaskPath
	WaitMS int64 `query:"wait_ms" minimum:"0" maximum:"300000" doc:"wait this long for the task's end; 0 = not at all"`
}

func (s *service) getTask(ctx context.Context, in *getTaskInput) (*body[wire.Task], error) {
	view, err := s.Reader.View(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	if in.WaitMS > 0 && !view.State.Status.Ended() {
		if err := s.waitFor(ctx, in.Task, view.Seq, in.WaitMS); err != nil {
			return nil, noTask(in.Task, err)
		}
		if view, err = s.Reader.View(ctx, in.Task); err != nil {
			return nil, noTask(in.Task, err)
		}
	}
	return &body[wire.Task]{toTask(view)}, nil
}

// waitFor waits for the end of a task whose journal is known up to a row, but not longer than ms.
func (s *service) waitFor(ctx context.Context, task string, after, ms int64) error {
	waiting, leave := stay(ctx)
	defer leave()
	waiting, cancel := context.WithTimeout(waiting, time.Duration(ms)*time.Millisecond)
	defer cancel()
	for _, err := range s.Engine.Watch(waiting, task, after) {
		if err != nil && waiting.Err() == nil {
			return err
		}
	}
	return ctx.Err()
}
