package troupe

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// parentLabel is the label of a task that a durable function runs. Its value is the id of the
// function's task.
const parentLabel = "parent"

// childTasks carries out the jobs of durable.Run: each is a task of its own, which the function's
// task waits for. So it is the starter and the tracker of the service flow.ChildTask.
type childTasks struct{ engine *Engine }

// Start starts the task of a job. If an earlier attempt of the job has started it already, a failed
// task goes on where it failed.
func (c childTasks) Start(ctx context.Context, j flow.Job, _ bool) flow.Report {
	version, err := c.engine.versionOf(ctx, j.Exec.Func, 0)
	if err != nil {
		return flow.Report{Error: err.Error(), Fatal: true}
	}
	params, err := c.engine.stores.Payloads.WholeFor(ctx, j.Input)
	if err != nil {
		return flow.Report{Error: err.Error()}
	}
	if string(params) == "null" {
		params = nil
	}
	n := engine.NewTask{VersionID: version.ID, Newest: true, Params: params, Key: j.Key(),
		Labels: map[string]string{parentLabel: j.Task}}
	id, err := c.startTask(ctx, n, j.Attempt)
	if err != nil {
		return flow.Report{Error: fmt.Sprintf("the flow %s cannot be started: %v", j.Exec.Func, err),
			Fatal: flow.ErrorKindOf(err) == flow.Invalid}
	}
	return flow.Report{Worker: "task " + id, Deferred: []flow.External{{Service: flow.ChildTask, ID: id}}}
}

// startTask starts a task for an attempt, or lets the one of an earlier attempt go on. One that was
// canceled cannot, so another one takes its place.
func (c childTasks) startTask(ctx context.Context, n engine.NewTask, attempt int) (id string, err error) {
	member, err := c.engine.Member(ctx)
	if err != nil {
		return "", err
	}
	started, err := member.StartTask(ctx, n)
	if err != nil || started.Created || attempt < 2 {
		return started.Task, err
	}
	row, err := c.engine.stores.Newest.Task(ctx, started.Task)
	switch {
	case err != nil:
		return "", err
	case flow.TaskStatus(row.Status) == flow.TaskFailed:
		_, err = member.Do(ctx, engine.Order{Task: started.Task, Command: flow.RetryTask{}})
		return started.Task, err
	case flow.TaskStatus(row.Status) == flow.TaskCanceled:
		n.Key = fmt.Sprintf("%s.%d", n.Key, attempt)
		return c.startTask(ctx, n, 1)
	}
	return started.Task, nil
}

// maxChildPause is the longest pause between two looks at a task that a function waits for.
const maxChildPause = 5 * time.Second

// Poll returns the state of a task. A young one is looked at more often than one that runs for
// long.
func (c childTasks) Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	row, err := c.engine.stores.Newest.Task(ctx, x.ID)
	if api.Missing(err) {
		return flow.ExternalStatus{Ended: true, Error: fmt.Sprintf("the task %s was deleted", x.ID)}, nil
	}
	if err != nil {
		return flow.ExternalStatus{}, err
	}
	if !flow.TaskStatus(row.Status).Ended() {
		age := time.Duration(c.engine.nowMillis()-x.StartedAt) * time.Millisecond
		return flow.ExternalStatus{Again: min(max(age/10, 10*time.Millisecond), maxChildPause)}, nil
	}
	result, err := c.engine.Wait(ctx, x.ID)
	if err != nil {
		return flow.ExternalStatus{}, err
	}
	if result.Status == flow.TaskCompleted {
		return flow.ExternalStatus{Ended: true, Output: result.Value}, nil
	}
	details, err := json.Marshal(childFailure{Task: x.ID, State: result.Status})
	if err != nil {
		return flow.ExternalStatus{}, err
	}
	text := fmt.Sprintf("the task %s is %s", x.ID, result.Status)
	if result.Error != "" {
		text += ": " + result.Error
	}
	return flow.ExternalStatus{Ended: true, Error: text, Details: details}, nil
}

// childFailure is the details of the error of a task that did not complete.
type childFailure struct {
	Task  string          `json:"task"`
	State flow.TaskStatus `json:"state"`
}

// Cancel cancels a task that is no longer needed.
func (c childTasks) Cancel(ctx context.Context, x flow.External) error {
	member, err := c.engine.Member(ctx)
	if err != nil {
		return err
	}
	_, err = member.Do(ctx, engine.Order{Task: x.ID, Command: flow.Cancel{}})
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil // it was deleted
	}
	return err
}
