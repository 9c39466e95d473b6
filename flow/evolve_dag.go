package flow

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// holdDag makes a step active in a scope of dag mode.
func (sc *Scope) holdDag(st *Step) {
	n := sc.node(st.Node)
	sc.unready(st.Node.Dag.Index)
	if n.Step != nil { // an event that does not fit
		sc.deactivate(n.Step)
	}
	n.Status, n.Visit, n.StartedAt, n.Step = StepStarted, st.Visit, st.EnteredAt, st
	n.Initial, n.Extra, n.Kept = st.Initial, nil, nil
	sc.EnterAt = 0
	sc.activate(st)
}

// unready takes a node from those that can be decided about. It is nearly always the first.
func (sc *Scope) unready(index int) {
	if i := slices.Index(sc.dag.ready, index); i >= 0 {
		heap.Remove(&sc.dag.ready, i)
	}
}

// leaveDag ends a node, also one that never began.
func (s *State) leaveDag(sc *Scope, e *Event) {
	node := sc.Plan.Nodes[e.Node]
	if node == nil {
		return
	}
	n := sc.node(node)
	if n.Ended() || n.Step != nil && n.Step.Visit != e.Visit {
		return
	}
	sc.unready(node.Dag.Index)
	st := n.Step
	n.Status, n.Visit, n.Reason, n.Error, n.EndedAt = StepStatus(e.Status), e.Visit, e.Reason, e.Error, e.At
	switch n.Status {
	case StepSkipped:
		n.Mode = SkipMode(e.Action)
	case StepCompleted:
		n.Output = sc.outputOf(node, st, e)
	case StepFailed:
		if sc.Failed == "" {
			sc.Failed, sc.FailedAt = node.Key+": "+cmp.Or(e.Error, "failed"), node.Key
		}
	}
	if n.Status == StepCompleted && node.Undo != "" {
		s.remember(sc, node, e.Visit, sc.inputOf(node, st), n.Output)
	}
	if st != nil {
		s.forget(st)
		sc.drop(st)
		if n.Status == StepFailed {
			n.Kept = s.keep(st)
		}
	}
	s.Steps++
	sc.dag.left--
	sc.release(node)
}

// inputOf is what a node worked on. A branch that is laid out in its scope has none of its own.
func (sc *Scope) inputOf(n *PlanNode, st *Step) json.RawMessage {
	switch {
	case st != nil:
		return st.stepInput()
	case n.Kind == KindJoin:
		return null
	}
	v, err := sc.dagInput(n)
	if err != nil {
		return null
	}
	return v
}

// outputOf is the output of a node that completed.
func (sc *Scope) outputOf(n *PlanNode, st *Step, e *Event) json.RawMessage {
	switch {
	case st != nil:
		return st.result(e)
	case n.Kind == KindFanout:
		return json.RawMessage("[]")
	case n.Kind == KindJoin:
		if sees := n.Dag.Sees; len(sees) == 1 && sees[0].Name == "" {
			return orNull(sc.Nodes[sees[0].Index].Output)
		}
		return sc.leaves(n.Dag.Sees)
	}
	return e.Output
}

// release tells those who wait for a node that it is over.
func (sc *Scope) release(n *PlanNode) {
	for _, i := range n.Dag.Dependents {
		d := &sc.Nodes[i]
		switch {
		case d.Status != "":
		case sc.passes(n.Dag.Index, sc.Plan.Dag.List[i]):
			if d.Waits--; d.Waits == 0 && !d.Doomed {
				heap.Push(&sc.dag.ready, i)
			}
		case !d.Doomed:
			d.Doomed = true
			heap.Push(&sc.dag.ready, i)
		}
	}
}

// passes says whether a node that is over lets another one run.
func (sc *Scope) passes(index int, dependent *PlanNode) bool {
	n := &sc.Nodes[index]
	return n.Status == StepCompleted || dependent.Dag.Always && index != dependent.Dag.Entry || n.Status == StepSkipped && n.Mode == SkipOptional
}

// branchRun is what `run` means inside a branch that has a scope of its own.
func (sc *Scope) branchRun(n *PlanNode) json.RawMessage {
	for _, g := range n.Dag.Guards {
		if sc.Plan.Dag.List[g].Kind == KindPrep {
			return orNull(sc.Nodes[g].Output)
		}
	}
	return sc.runOf(n)
}

// extend adds units to a fanout.
func (s *State) extend(e *Event) {
	st := s.step(e.Address())
	items, _ := expr.Elements(e.Input)
	if st == nil || len(items) == 0 {
		return
	}
	from := len(st.Units)
	st.Units = append(st.Units, make([]Unit, len(items))...)
	st.Extra = append(st.Extra, items...)
	if st.Node.Dag == nil {
		return
	}
	if n := st.scope.node(st.Node); n.Kept != nil {
		st.take(n.Kept.Units, from)
		n.Kept = nil
	}
}

// entered notes that a step of the closing scope has begun: what undoes the step that completed last,
// or finally.
func (c *Closing) entered(s *State) {
	if last := len(s.Done) - 1; last >= 0 {
		c.Undone = append(c.Undone, s.Done[last])
		s.Done = s.Done[:last]
		return
	}
	c.Final = true
}

// retry has a failed task go on: what failed, and what could not run because of that, is as if it had
// not been there; so is what was undone.
func (s *State) retry(e *Event) {
	undone := map[string]bool{}
	if s.Closing != nil {
		for _, u := range s.Closing.Undone {
			undone[u.Node] = true
		}
		delete(s.scopes, s.Closing.Scope.Path)
	}
	s.Status, s.Error, s.EndedAt, s.Closing, s.Deadline = TaskRunning, "", 0, nil, 0
	if s.Plan.TimeoutMS > 0 {
		s.Deadline = e.At + s.Plan.TimeoutMS
	}
	s.Root.cut(s)
	s.Root.retry(undone)
}

// Reasons why a step failed or was skipped.
const (
	ReasonTaskError        = "task_error"
	ReasonTaskTimeout      = "task_timeout"
	ReasonCondition        = "condition_error"
	ReasonPreprocessing    = "preprocessing_error"
	ReasonSkipped          = "skipped"
	ReasonUnmet            = "condition_unmet"
	ReasonDependency       = "dependency_skipped"
	ReasonDependencyFailed = "dependency_failed"
	ReasonHandlerFailed    = "handler_failed"
)
