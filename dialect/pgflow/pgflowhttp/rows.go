package pgflowhttp

import (
	"cmp"
	"encoding/json"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// pgRun is a run as this dialect shows it. Its status is started, completed or failed. Only the
// times show whether the run is paused or cancelled.
type pgRun struct {
	RunID          string          `json:"run_id"`
	FlowSlug       string          `json:"flow_slug"`
	Status         string          `json:"status"`
	Input          json.RawMessage `json:"input"`
	Output         json.RawMessage `json:"output"`
	ErrorMessage   *string         `json:"error_message"`
	RemainingSteps int             `json:"remaining_steps"`
	StartedAt      *wire.Time      `json:"started_at"`
	CompletedAt    *wire.Time      `json:"completed_at"`
	FailedAt       *wire.Time      `json:"failed_at"`
	PausedAt       *wire.Time      `json:"paused_at"`
	ResumedAt      *wire.Time      `json:"resumed_at"`
	CancelledAt    *wire.Time      `json:"cancelled_at"`
}

// Statuses of runs, steps and tasks in this dialect. Steps also have the statuses created and
// skipped, with the same names as in the engine.
const (
	pgQueued    = "queued"
	pgStarted   = "started"
	pgCompleted = "completed"
	pgFailed    = "failed"
	pgPaused    = "paused"
	pgCancelled = "cancelled"
)

// shownAs returns the status of a run for people, which includes paused and cancelled.
func shownAs(s *flow.State) string {
	switch {
	case s.CancelAt != 0 || s.Status == flow.TaskCanceling || s.Status == flow.TaskCanceled:
		return pgCancelled
	case s.Status == flow.TaskCompleted:
		return pgCompleted
	case s.Status == flow.TaskFailed:
		return pgFailed
	case s.Paused():
		return pgPaused
	}
	return pgStarted
}

func runStatusOf(s *flow.State) string {
	if shown := shownAs(s); shown == pgCompleted || shown == pgFailed {
		return shown
	}
	return pgStarted
}

func toRun(s *flow.State) pgRun {
	r := pgRun{RunID: s.Task, FlowSlug: s.Plan.FlowSlug, Status: runStatusOf(s),
		Input: api.OrNull(s.Params), Output: json.RawMessage("null"),
		ErrorMessage: textOrNull(s.Error), RemainingSteps: remainingSteps(s),
		StartedAt: timeOrNull(s.CreatedAt), PausedAt: timeOrNull(s.PausedAt), ResumedAt: timeOrNull(s.ResumedAt)}
	switch shownAs(s) {
	case pgCompleted:
		r.Output, r.CompletedAt = s.Result(), timeOrNull(s.EndedAt)
	case pgFailed:
		r.FailedAt = timeOrNull(s.EndedAt)
	case pgCancelled:
		r.CancelledAt = timeOrNull(cmp.Or(s.CancelAt, s.EndedAt))
	}
	return r
}

// remainingSteps counts the steps that have neither completed nor been skipped.
func remainingSteps(s *flow.State) int {
	n := 0
	for i := range s.Root.Nodes {
		if status := s.Root.Nodes[i].Status(); status != flow.StepCompleted && status != flow.StepSkipped {
			n++
		}
	}
	return n
}

// pgStep is the state of a step.
type pgStep struct {
	StepSlug       string          `json:"step_slug"`
	StepIndex      int             `json:"step_index"`
	StepType       string          `json:"step_type"` // single or fanout
	Kind           flow.Kind       `json:"kind"`
	Route          *string         `json:"route"` // null if there is no task
	Status         string          `json:"status"`
	InitialTasks   *int            `json:"initial_tasks"`
	RemainingTasks *int            `json:"remaining_tasks"`
	RemainingDeps  int             `json:"remaining_deps"`
	Output         json.RawMessage `json:"output"`
	ErrorMessage   *string         `json:"error_message"`
	FailureReason  *string         `json:"failure_reason"`
	SkipReason     *string         `json:"skip_reason"`
	CreatedAt      *wire.Time      `json:"created_at"`
	StartedAt      *wire.Time      `json:"started_at"`
	CompletedAt    *wire.Time      `json:"completed_at"`
	FailedAt       *wire.Time      `json:"failed_at"`
	SkippedAt      *wire.Time      `json:"skipped_at"`
	Tasks          []pgTask        `json:"tasks,omitempty"`
}

// toSteps returns the states of all steps of a run in the order of the definition.
func toSteps(s *flow.State) []pgStep {
	steps := make([]pgStep, len(s.Root.Nodes))
	for i := range steps {
		steps[i] = toStep(s, i)
	}
	return steps
}

func toStep(s *flow.State, index int) pgStep {
	n, plan := &s.Root.Nodes[index], s.Root.Plan.Dag.List[index]
	r := pgStep{StepSlug: plan.Key, StepIndex: index, StepType: "single", Kind: plan.Kind,
		Status: string(n.Status()), RemainingDeps: int(n.Waits),
		Output: json.RawMessage("null"), ErrorMessage: textOrNull(n.Rare().Error),
		CreatedAt: timeOrNull(s.CreatedAt), StartedAt: timeOrNull(n.StartedAt)}
	if plan.Kind == flow.KindFanout {
		r.StepType = "fanout"
	}
	if plan.Single || plan.Kind == flow.KindFanout {
		route := plan.Exec.Route()
		r.Route = &route
	}
	r.InitialTasks, r.RemainingTasks = taskCounts(n, plan)
	switch n.Status() {
	case "":
		r.Status = string(flow.StepCreated)
	case flow.StepCompleted:
		r.Output, r.CompletedAt = api.OrNull(n.Output), timeOrNull(n.EndedAt)
		// a step without tasks starts and ends immediately
		r.StartedAt = timeOrNull(cmp.Or(n.StartedAt, n.EndedAt))
	case flow.StepFailed:
		r.FailureReason, r.FailedAt = textOrNull(n.Rare().Reason), timeOrNull(n.EndedAt)
	case flow.StepSkipped:
		r.SkipReason, r.SkippedAt = textOrNull(n.Rare().Reason), timeOrNull(n.EndedAt)
	}
	return r
}

// taskCounts returns initial_tasks and remaining_tasks. They are unknown until the array exists and
// the step starts.
func taskCounts(n *flow.NodeState, plan *flow.PlanNode) (initial, remaining *int) {
	switch {
	case n.Step != nil:
		left := n.Step.Left()
		return &n.Step.Initial, &left
	// without a start both are 0, because there was no work
	case n.StartedAt != 0 || n.Status() == flow.StepCompleted:
		begun, left := int(n.Units().Initial), int(n.Units().Left)
		return &begun, &left
	case plan.Single:
		one := 1
		return &one, nil
	}
	return nil, nil
}

func timeOrNull(ms int64) *wire.Time {
	if ms == 0 {
		return nil
	}
	t := wire.Millis(ms)
	return &t
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
