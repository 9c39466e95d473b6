package orkhttp

import (
	"slices"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/unitid"
)

// runUpdated and taskUpdated are the messages to listeners.
type runUpdated struct {
	Type   string `json:"type"`
	RunID  string `json:"run_id"`
	Status string `json:"status"`
}

type taskUpdated struct {
	Type   string `json:"type"`
	RunID  string `json:"run_id"`
	TaskID string `json:"task_id"`
	Status string `json:"status"`
}

// taskUnit is a task of a run: the index of its node, and its unit.
type taskUnit struct{ node, index int }

// runTransitions derives state changes of a run and its tasks from the run's events.
type runTransitions struct {
	run      string
	plan     *flow.Plan
	seq      int64 // number of the last row that was sent
	now      string
	status   map[taskUnit]string
	cutShort map[int]bool // nodes that ended because the run ended
	send     func(any)
	followed bool
	updated  int64
}

// loadState sets the current progress of a run.
func (t *runTransitions) loadState(h *flow.History) {
	t.now = statusIn(h.State)
	for _, one := range tasksOf(h) {
		t.status[taskUnit{one.node, one.unit}] = one.Status
		if h.State.Status.Ended() && !h.State.Root.Nodes[one.node].Ended() {
			t.cutShort[one.node] = true
		}
	}
}

func (t *runTransitions) applyRow(r engine.Row) error {
	events, err := flow.DecodeEvents(r.Events)
	if err != nil {
		return err
	}
	for i := range events {
		if e := &events[i]; e.Scope == "" {
			t.applyEvent(e)
		}
	}
	t.seq = r.Seq
	return nil
}

func (t *runTransitions) applyEvent(e *flow.Event) {
	switch e.Type {
	case flow.TaskCreated:
		t.setRunStatus(pending)
		t.setRunStatus(running)
		t.announceTasks()
	case flow.TaskRetried:
		t.setRunStatus(running)
		t.resetRetried(e.Node)
	case flow.TaskPaused:
		t.setRunStatus(paused)
	case flow.TaskResumed:
		t.setRunStatus(running)
	case flow.CancelRequested:
		t.setRunStatus(cancelled)
		t.endTasks(skipped, pending, paused)
	case flow.TaskEnded:
		t.endRun(flow.TaskStatus(e.Status))
	default:
		if n := t.taskNode(e.Node); n != nil {
			t.applyStepEvent(e, n)
		}
	}
}

// taskNode returns a node that is a task of the run.
func (t *runTransitions) taskNode(key string) *flow.PlanNode {
	if n := t.plan.Root.Nodes[key]; n != nil && n.Dag != nil && n.Dag.For < 0 {
		return n
	}
	return nil
}

func (t *runTransitions) applyStepEvent(e *flow.Event, n *flow.PlanNode) {
	u := taskUnit{n.Dag.Index, e.Unit}
	switch e.Type {
	case flow.StepEntered:
		for i := range max(e.Total, 1) {
			if at := (taskUnit{u.node, i}); t.status[at] == "" {
				t.setTaskStatus(at, pending)
			}
		}
	case flow.AttemptsDispatched:
		for i := range e.Total {
			t.setTaskStatus(taskUnit{u.node, e.Unit + i}, dispatched)
			if beginsAtOnce(&n.Exec) {
				t.setTaskStatus(taskUnit{u.node, e.Unit + i}, running)
			}
		}
	case flow.AttemptClaimed, flow.AttemptStarted, flow.AttemptDeferred:
		if n.Exec.Begins(e) {
			t.setTaskStatus(u, running)
		}
	case flow.AttemptEnded:
		t.setTaskStatus(u, endOf(e))
	case flow.StepHeld:
		t.moveTasks(paused, u.node, pending)
	case flow.StepReleased:
		t.moveTasks(pending, u.node, paused)
	case flow.StepEnded:
		t.stepEnded(u, flow.StepStatus(e.Status))
	}
}

// beginsAtOnce reports whether an attempt counts as begun when it is dispatched, because its
// carrier does not report the beginning.
func beginsAtOnce(x *flow.Exec) bool {
	return x.Type != flow.ExecQueue && x.Type != flow.ExecDirect && x.Type != flow.ExecExternal && !x.Type.Started() && !x.ByFiles()
}

// endOf returns the state of a task after the end of an attempt.
func endOf(e *flow.Event) string {
	switch {
	case flow.AttemptStatus(e.Status) == flow.AttemptOK:
		return success
	case flow.AttemptStatus(e.Status) == flow.AttemptCanceled:
		return cancelled
	case e.Due != 0:
		return pending
	}
	return failed
}

// stepEnded reports the end of tasks that had no attempt.
func (t *runTransitions) stepEnded(u taskUnit, status flow.StepStatus) {
	word := map[flow.StepStatus]string{flow.StepSkipped: skipped, flow.StepFailed: failed, flow.StepCompleted: success}[status]
	known := false
	for at, is := range t.status {
		if at.node == u.node {
			known = true
			if is == pending || is == paused {
				t.setTaskStatus(at, word)
			}
		}
	}
	if !known {
		t.setTaskStatus(taskUnit{u.node, 0}, word)
	}
}

// announceTasks reports the tasks that exist in any case.
func (t *runTransitions) announceTasks() {
	if t.plan.Root.Dag == nil {
		return
	}
	for _, n := range t.plan.Root.Dag.List {
		count := 1
		if n.Kind == flow.KindFanout {
			if count = n.Dag.Repeats; n.Dag.Items != nil {
				count = 0
			}
		}
		for i := range count {
			if n.Dag.For < 0 {
				t.setTaskStatus(taskUnit{n.Dag.Index, i}, pending)
			}
		}
	}
}

// resetRetried reports the tasks that are retried: all that did not succeed, or one with its
// dependents, and the tasks that were cut short.
func (t *runTransitions) resetRetried(key string) {
	chosen := map[int]bool{}
	if n := t.plan.Root.Nodes[key]; n != nil && n.Dag != nil {
		for todo := []int{n.Dag.Index}; len(todo) > 0; todo = todo[1:] {
			if !chosen[todo[0]] {
				chosen[todo[0]] = true
				todo = append(todo, t.plan.Root.Dag.List[todo[0]].Dag.Dependents...)
			}
		}
	}
	for at, is := range t.status {
		if is != success && (key == "" || chosen[at.node] || t.cutShort[at.node]) {
			t.setTaskStatus(at, pending)
		}
	}
	clear(t.cutShort)
}

// moveTasks changes tasks of a node from one state to another.
func (t *runTransitions) moveTasks(word string, node int, was string) {
	for at, is := range t.status {
		if at.node == node && is == was {
			t.setTaskStatus(at, word)
		}
	}
}

// endTasks changes the state of tasks in given states because their run ends.
func (t *runTransitions) endTasks(word string, of ...string) {
	for at, is := range t.status {
		if slices.Contains(of, is) {
			t.cutShort[at.node] = true
			t.setTaskStatus(at, word)
		}
	}
}

func (t *runTransitions) endRun(status flow.TaskStatus) {
	if status == flow.TaskCanceled {
		t.endTasks(cancelled, pending, paused, dispatched, running)
	} else {
		t.endTasks(skipped, pending, paused, dispatched, running)
	}
	t.setRunStatus(statusOf(status, false, false))
}

// setRunStatus reports the run's state if it has changed.
func (t *runTransitions) setRunStatus(status string) {
	if t.now != status {
		t.now = status
		t.send(runUpdated{"run_updated", t.run, status})
	}
}

// setTaskStatus reports the state of a task if it has changed.
func (t *runTransitions) setTaskStatus(u taskUnit, status string) {
	if t.status[u] != status {
		t.status[u] = status
		t.send(taskUpdated{"task_updated", t.run, unitid.TaskID(t.run, u.node, u.index), status})
	}
}
