package orkhttp

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/unitid"
)

// runTask is a task of a run: a step, or a unit of a step with several units.
type runTask struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Status        string          `json:"status"`
	Executor      string          `json:"executor"`
	DependsOn     []string        `json:"depends_on"`
	DispatchedAt  *wire.Time      `json:"dispatched_at"`
	StartedAt     *wire.Time      `json:"started_at"`
	FinishedAt    *wire.Time      `json:"finished_at"`
	Output        json.RawMessage `json:"output"`
	Error         *string         `json:"error"`
	ErrorDetails  json.RawMessage `json:"error_details"`
	Metrics       json.RawMessage `json:"metrics"`
	Attempt       int             `json:"attempt"`
	MaxRetries    int             `json:"max_retries"`
	ParallelIndex *int            `json:"parallel_index"`
	ParallelCount *int            `json:"parallel_count"`
	RetryAt       *wire.Time      `json:"retry_at"`
	Execution     *string         `json:"execution_name"`
	Reason        *string         `json:"reason"`
	Params        json.RawMessage `json:"params"`
	Logs          *string         `json:"logs"` // address of its logs; null if there was no attempt

	key   string // key of its node
	node  int    // its index in the plan
	unit  int
	base  int // attempts of earlier visits
	visit int
	ended int64

	attempts []flow.Address
}

// taskBuilder builds the tasks of a run.
type taskBuilder struct {
	h     *flow.History
	steps [][]runTask // by node
}

// tasksOf returns the tasks of a run in the order of its file. Tasks of one step are in order of
// their indexes.
func tasksOf(h *flow.History) []runTask {
	if h.State.Root == nil || h.State.Root.Plan.Dag == nil {
		return []runTask{}
	}
	t := &taskBuilder{h: h, steps: make([][]runTask, len(h.State.Root.Nodes))}
	for i := range t.steps {
		t.beginStep(i)
	}
	for i := range h.Runs {
		t.addAttempt(&h.Runs[i])
	}
	all := []runTask{}
	for i := range t.steps {
		if t.nodePlan(i).Dag.For >= 0 {
			continue // created for another task
		}
		for j := range t.steps[i] {
			t.finishTask(i, &t.steps[i][j])
		}
		all = append(all, t.steps[i]...)
	}
	return all
}

func (t *taskBuilder) nodePlan(node int) *flow.PlanNode { return t.h.State.Root.Plan.Dag.List[node] }

// beginStep creates the tasks of a step in their initial state. A step without units, or with units
// that are not created yet, is one task.
func (t *taskBuilder) beginStep(node int) {
	plan, view := t.nodePlan(node), t.h.State.NodeView(node)
	count := view.Units.Total
	if plan.Kind == flow.KindFanout && count == 0 && plan.Dag.Items == nil {
		count = plan.Dag.Repeats
	}
	if plan.Kind != flow.KindFanout || count == 0 {
		if plan.Kind == flow.KindFanout && view.Status == flow.StepCreated {
			return // their number is not known yet
		}
		t.steps[node] = []runTask{t.newTask(node, 0)}
		return
	}
	for i := range count {
		one := t.newTask(node, i)
		one.ParallelIndex, one.ParallelCount = &i, &count
		if r := plan.Dag.Repeats; plan.Dag.Items != nil && r > 0 { // r units for each item
			index := i % r
			one.ParallelIndex, one.ParallelCount = &index, &r
		}
		t.steps[node] = append(t.steps[node], one)
	}
}

func (t *taskBuilder) newTask(node, unit int) runTask {
	plan, sc := t.nodePlan(node), t.h.State.Root.Plan
	one := runTask{ID: unitid.TaskID(publicRunID(t.h.State.Task), node, unit), Name: plan.Called(),
		Status: pending, Executor: executorOf(plan),
		DependsOn: dependsOn(sc, plan), Output: null, ErrorDetails: null, Metrics: null,
		Params: null, MaxRetries: plan.Retry.Max, key: plan.Key, node: node, unit: unit}
	if replicatedNode(t.h.State.Plan) != nil {
		one.Name = plan.Key + "_" + strconv.Itoa(unit)
	}
	return one
}

var null = json.RawMessage("null")

// addAttempt adds an attempt to its task. Attempts come in order.
func (t *taskBuilder) addAttempt(r *flow.NodeRun) {
	if r.Kind != flow.RunAttempt || r.Scope != "" || r.Node == nil || r.Node.Dag == nil {
		return
	}
	units := t.steps[r.Node.Dag.Index]
	if r.Unit >= len(units) {
		return
	}
	one := &units[r.Unit]
	if r.Visit != one.visit {
		one.visit, one.base = r.Visit, one.Attempt
	}
	one.attempts = append(one.attempts, r.Address)
	one.Logs = t.logsOf(one)
	one.Attempt, one.Params = one.base+r.Attempt, api.OrNull(r.Input)
	one.DispatchedAt, one.StartedAt, one.FinishedAt, one.RetryAt = timeOrNull(r.StartedAt),
		timeOrNull(beganAt(r)), timeOrNull(r.EndedAt), timeOrNull(r.RetryAt)
	one.Execution, one.ended, one.Metrics = textOrNull(r.Worker), r.EndedAt, api.OrNull(r.Metrics)
	switch {
	case r.EndedAt == 0 && one.StartedAt == nil:
		one.Status = dispatched
	case r.EndedAt == 0:
		one.Status = running
	case r.Status == flow.AttemptOK:
		one.Status, one.Output, one.Error, one.ErrorDetails = success, api.OrNull(r.Output), nil, null
	case r.Status == flow.AttemptCanceled:
		one.Status = cancelled
	case r.RetryAt != 0:
		one.Status, one.DispatchedAt, one.StartedAt, one.FinishedAt = pending, nil, nil, nil
	default:
		one.Status = failed
	}
	if r.Status == flow.AttemptError || r.Status == flow.AttemptTimeout {
		one.Error, one.ErrorDetails = textOrNull(errorText(r.Error)), api.OrNull(r.Details)
	}
}

// logsOf returns the address of a task's logs, which may be much larger than everything else.
func (t *taskBuilder) logsOf(one *runTask) *string {
	path := "/api/runs/" + url.PathEscape(publicRunID(t.h.State.Task)) + "/tasks/" + url.PathEscape(one.Name) + "/logs"
	if one.ParallelIndex != nil && replicatedNode(t.h.State.Plan) == nil {
		path += "?index=" + strconv.Itoa(one.unit)
	}
	return &path
}

// beganAt returns when work on an attempt began, or 0 if it has not begun. That time is stored for
// programs, for externals, for workers that report by files, and for jobs that workers fetch. All
// other attempts begin immediately.
func beganAt(r *flow.NodeRun) int64 {
	switch here := r.Node.Exec.Type; {
	case here == flow.ExecQueue:
		return r.ClaimedAt
	case here.Started(), here == flow.ExecExternal, r.Node.Exec.ByFiles():
		return r.BegunAt
	}
	return r.StartedAt
}

// errorText returns an error in Ork's words.
func errorText(text string) string {
	if strings.HasPrefix(text, "timeout: no result within ") {
		return "execution timeout"
	}
	return text
}

// finishTask adds the data of the whole step and of the run.
func (t *taskBuilder) finishTask(node int, one *runTask) {
	s := t.h.State
	n := &s.Root.Nodes[node]
	switch {
	case n.Status() == flow.StepSkipped:
		one.Status, one.FinishedAt, one.Reason = skipped, timeOrNull(n.EndedAt), textOrNull(n.Rare().Reason)
	case n.Status() == flow.StepFailed && one.Attempt == 0:
		one.Status, one.FinishedAt, one.ended, one.Error, one.Reason = failed,
			timeOrNull(n.EndedAt), n.EndedAt, textOrNull(n.Rare().Error), textOrNull(n.Rare().Reason)
	case n.Status() == flow.StepCompleted && one.Attempt == 0:
		one.Status, one.FinishedAt, one.Output = success, timeOrNull(n.EndedAt), api.OrNull(n.Output)
	case one.Status == pending && n.Held && n.Status() == "" && !s.Status.Ended() && s.CancelAt == 0:
		one.Status = paused
	case n.Ended() || one.Status != pending && one.Status != dispatched && one.Status != running:
	case one.Status == pending && s.CancelAt != 0, s.Status == flow.TaskFailed, s.Status == flow.TaskCompleted:
		one.Status, one.RetryAt, one.FinishedAt = skipped, nil, timeOrNull(s.EndedAt)
	case s.Status == flow.TaskCanceled:
		one.Status, one.RetryAt, one.FinishedAt = cancelled, nil, timeOrNull(s.EndedAt)
	}
}
