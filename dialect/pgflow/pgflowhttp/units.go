package pgflowhttp

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// pgTask is a unit of a step.
type pgTask struct {
	StepSlug      string          `json:"step_slug"`
	TaskIndex     int             `json:"task_index"`
	Status        string          `json:"status"`
	Route         string          `json:"route"`
	Origin        string          `json:"origin"` // array (also for a single task) or appended
	MessageID     *string         `json:"message_id"`
	Input         json.RawMessage `json:"input"`
	Attempts      int             `json:"attempts_count"`
	ErrorMessage  *string         `json:"error_message"`
	FailureReason *string         `json:"failure_reason"`
	Output        json.RawMessage `json:"output"`
	QueuedAt      *wire.Time      `json:"queued_at"`
	StartedAt     *wire.Time      `json:"started_at"`
	CompletedAt   *wire.Time      `json:"completed_at"`
	FailedAt      *wire.Time      `json:"failed_at"`
	LastWorkerID  *string         `json:"last_worker_id"`
	RequeuedCount int             `json:"requeued_count"`
}

// Origins of tasks.
const (
	originArray    = "array"
	originAppended = "appended"
)

// tasksOf returns the tasks of all steps, by the step's index.
func tasksOf(h *flow.History) [][]pgTask {
	list := make([][]pgTask, len(h.State.Root.Nodes))
	visits := make([]int, len(list))
	for i := range list {
		step := h.State.NodeView(i)
		list[i], visits[i] = newTasks(&step), step.Visit
	}
	for i := range h.Runs {
		run := &h.Runs[i]
		if run.Kind != flow.RunAttempt || run.Scope != "" || run.Node == nil || run.Node.Dag == nil {
			continue
		}
		if index := run.Node.Dag.Index; run.Visit == visits[index] && run.Unit < len(list[index]) {
			list[index][run.Unit].addAttempt(h.State.Task, run)
		}
	}
	return list
}

// taskAt returns one task; found is false if it does not exist yet.
func taskAt(h *flow.History, at flow.Address) (t pgTask, found bool) {
	if at.Scope == "" {
		for _, tasks := range tasksOf(h) {
			if at.Unit >= 0 && at.Unit < len(tasks) && tasks[at.Unit].StepSlug == at.Node {
				return tasks[at.Unit], true
			}
		}
		return t, false
	}
	for i := range h.Runs {
		r := &h.Runs[i]
		if r.Kind != flow.RunAttempt || r.Scope != at.Scope || r.Address.Node != at.Node ||
			r.Unit != at.Unit || at.Visit != 0 && r.Visit != at.Visit {
			continue
		}
		if r.Attempt == 1 {
			t = pgTask{StepSlug: at.Step(), TaskIndex: at.Unit, Route: r.Node.Exec.Route(),
				Origin: originArray, Output: json.RawMessage("null")}
		}
		t.addAttempt(h.State.Task, r)
		found = true
	}
	return t, found
}

// newTasks returns the tasks of a step in their initial state.
func newTasks(step *flow.StepView) []pgTask {
	tasks := make([]pgTask, step.Units.Total)
	for i := range tasks {
		tasks[i] = pgTask{StepSlug: step.Node.Key, TaskIndex: i, Status: pgQueued,
			Route: step.Node.Exec.Route(), Origin: originOf(step.Node, i, step.Units.Initial),
			Input: json.RawMessage("null"), Output: json.RawMessage("null"), QueuedAt: timeOrNull(step.StartedAt)}
	}
	return tasks
}

func originOf(plan *flow.PlanNode, unit, initial int) string {
	if plan.Kind == flow.KindFanout && unit >= initial {
		return originAppended
	}
	return originArray
}

// addAttempt adds an attempt. Attempts come in order.
func (t *pgTask) addAttempt(run string, n *flow.NodeRun) {
	if n.Attempt == 1 {
		t.QueuedAt, t.Input = timeOrNull(n.StartedAt), api.OrNull(n.Input)
	}
	waits := n.Queue || n.Node.Exec.Type == flow.ExecDirect
	if begun := n.ClaimedAt != 0 || n.Lost > 0 || !waits || hasEnded(n); begun {
		t.Attempts = n.Attempt
	}
	if n.Queue {
		id := flow.JobID(run, n.Address)
		t.MessageID = &id
	}
	t.Status, t.RequeuedCount = pgQueued, t.RequeuedCount+n.Lost
	t.StartedAt = timeOrNull(n.ClaimedAt)
	if !waits {
		t.StartedAt = timeOrNull(n.StartedAt)
	}
	if n.Worker != "" {
		t.LastWorkerID = &n.Worker
	}
	if n.ClaimedAt != 0 || !waits {
		t.Status = pgStarted
	}
	t.setEnd(n)
}

// hasEnded reports whether the attempt was ended by a report or a timeout.
func hasEnded(n *flow.NodeRun) bool {
	return n.EndedAt != 0 && n.Status != flow.AttemptCanceled
}

func (t *pgTask) setEnd(n *flow.NodeRun) {
	switch {
	case !hasEnded(n):
		return
	case n.Status == flow.AttemptOK:
		t.Status, t.Output, t.CompletedAt, t.ErrorMessage, t.FailureReason = pgCompleted,
			api.OrNull(n.Output), timeOrNull(n.EndedAt), nil, nil
		return
	case n.RetryAt != 0:
		t.Status, t.StartedAt = pgQueued, nil
	default:
		t.Status, t.FailedAt = pgFailed, timeOrNull(n.EndedAt)
	}
	reason := reasonOf(n.Status)
	t.ErrorMessage, t.FailureReason = &n.Error, &reason
}

// reasonOf returns why an attempt failed.
func reasonOf(s flow.AttemptStatus) string {
	if s == flow.AttemptTimeout {
		return "timeout"
	}
	return "error"
}
