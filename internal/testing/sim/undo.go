package sim

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// owedUndo is a completed unit whose node has a compensation. A step without units counts as unit
// 0.
type owedUndo struct {
	node        string
	visit, unit int
	by          string
	output      json.RawMessage // output of the unit, if the step has several units
}

// promisedUndo maps the nodes of a plan to the keys of their compensations.
func promisedUndo(scope *flow.PlanScope, promised map[*flow.PlanNode]string) {
	for _, n := range scope.Nodes {
		if n.Undo != "" {
			promised[n] = n.Undo
		}
		if n.Sub != nil {
			promisedUndo(n.Sub, promised)
		}
	}
}

// checkCompensations records the units that have to be undone. It checks that each is undone
// exactly once, in reverse order of completion, that nothing else is undone, and that each
// compensation has the data of its unit.
func (t *taskShadow) checkCompensations(e *flow.Event) error {
	c := t.state.Closing
	if c == nil || e.Scope != c.Scope.Path {
		t.owe(e)
		return nil
	}
	if e.Type != flow.StepEntered || len(t.owed) == 0 && e.Node == t.state.Plan.Finally {
		return nil
	}
	var told struct {
		Node        string
		Visit, Unit int
		Output      json.RawMessage
	}
	if err := json.Unmarshal(e.Input, &told); err != nil || len(t.owed) == 0 {
		return fmt.Errorf("%s runs with %s, and %d units are to be undone", e.Address(), e.Input, len(t.owed))
	}
	last := t.owed[len(t.owed)-1]
	t.owed = t.owed[:len(t.owed)-1]
	if e.Node != last.by || told.Node != last.node || told.Visit != last.visit || told.Unit != last.unit {
		return fmt.Errorf("%s runs with %s, and %s should be compensated by %s", e.Address(), e.Input, last, last.by)
	}
	if last.output != nil && !bytes.Equal(told.Output, last.output) {
		return fmt.Errorf("%s runs with %s, and the output of %s was %s", e.Address(), e.Input, last, last.output)
	}
	return nil
}

// owe records the unit that an event completes.
func (t *taskShadow) owe(e *flow.Event) {
	n := t.state.Scope(e.Scope).Plan.Nodes[e.Node]
	by := t.promised[n]
	several := n.Kind == flow.KindParallel || n.Kind == flow.KindForeach || n.Kind == flow.KindFanout
	switch {
	case by == "":
	case e.Type == flow.AttemptEnded && e.Status == string(flow.AttemptOK) && several:
		t.owed = append(t.owed, owedUndo{e.Node, e.Visit, e.Unit, by, e.Output})
	case e.Type == flow.AttemptEnded && e.Status == string(flow.AttemptOK) && n.Single,
		e.Type == flow.StepEnded && e.Status == string(flow.StepCompleted) && !several && !n.Single:
		t.owed = append(t.owed, owedUndo{e.Node, e.Visit, 0, by, nil})
	}
}

func (o owedUndo) String() string { return fmt.Sprintf("%s#%d.%d", o.node, o.visit, o.unit) }

// checkUndone checks that a task that did not complete has undone all completed units.
func (c *commitChecker) checkUndone(t *taskShadow) {
	if t.state.Status != flow.TaskCompleted && len(t.owed) > 0 {
		c.w.failRun("task %s is %s and has not undone %v", t.state.Task, t.state.Status, t.owed)
	}
}
