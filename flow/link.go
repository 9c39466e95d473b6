package flow

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow/expr"
)

// linkPlan rebuilds the data that derives from the exported fields of the state and from the plan.
func (s linkState) linkPlan(plan *Plan) error {
	s.Plan = plan
	s.linkRoot()
	if err := s.Root.mode.linkScope(s.State, s.Root); err != nil {
		return err
	}
	if err := s.undoPart().checkUndoables(); err != nil {
		return err
	}
	if s.Closing == nil {
		return nil
	}
	if plan.Closing == nil || s.Closing.Scope == nil {
		return fmt.Errorf("flow: a snapshot of task %s compensates, which its flow does not", s.Task)
	}
	s.linkClosing()
	s.undoPart().unfoldUndo()
	return s.Closing.Scope.mode.linkScope(s.State, s.Closing.Scope)
}

// linkStep links an active step, its units and the scope inside.
func (s linkState) linkStep(sc *Scope, st *Step) error {
	return s.linkNode(sc, st, sc.Plan.Nodes[st.Key])
}

// linkNode links an active step with its node.
func (s linkState) linkNode(sc *Scope, st *Step, n *PlanNode) error {
	if st.Node = n; n == nil {
		return fmt.Errorf("flow: a snapshot of task %s is at node %q, which its flow does not have", s.Task, st.Key)
	}
	if st.Undoable < 0 || st.Undoable > len(s.Undoables) {
		return fmt.Errorf("flow: a snapshot of task %s undoes units of a step that it does not have", s.Task)
	}
	st.scope, st.size = sc, 0
	for i := range st.Units {
		st.size += len(st.Units[i].Output)
	}
	st.unfoldUnits()
	if !s.Status.Ended() {
		if !s.isDraining() {
			s.evolvePart().addWaiting(st)
		}
		st.manualUnits = st.countManual()
		s.evolvePart().trackManual(st)
	}
	if st.Child == nil {
		return nil
	}
	s.linkChild(st)
	return st.Child.mode.linkScope(s.State, st.Child)
}

// linkRoot sets the fields of the root that derive from the task.
func (s linkState) linkRoot() {
	s.Root.setPlan(s.Plan.Root)
	s.Root.lost = &s.lost
	s.Root.mode.bindInputs(s.Root, s.Params, s.Params)
	s.Root.size = s.Root.sharedSize()
	s.scopes = map[string]*Scope{"": s.Root}
}

// setPlan sets the plan of a scope, its mode, and the state that only this mode has.
func (sc *Scope) setPlan(p *PlanScope) {
	sc.Plan, sc.mode = p, modeOf(p)
	if p.Code && sc.Function == nil {
		sc.Function = &FunctionState{}
	}
	if p.Dag != nil && sc.dag == nil {
		sc.dag = &dagState{}
	}
}

// linkClosing connects the closing scope to the shared of the root, where it writes its outputs.
func (s linkState) linkClosing() {
	if s.Root.Shared == nil {
		s.Root.Shared = map[string]json.RawMessage{}
	}
	sc := s.Closing.Scope
	sc.Plan, sc.Params, sc.Shared, sc.size, sc.task = s.Plan.Closing, objectOr(s.Params), s.Root.Shared, s.Root.size, s.State
	sc.mode, sc.lost = closingMode{}, &s.lost
	s.scopes[sc.Path] = sc
}

// linkChild sets the fields of a step's child scope that derive from the step.
func (s linkState) linkChild(st *Step) {
	c := st.Child
	c.setPlan(st.Node.Sub)
	c.parent, c.depth, c.overAt, c.lost = st, st.scope.depth+1, 0, &s.lost
	params, run := st.childInputs()
	c.mode.bindInputs(c, params, run)
	c.size = c.sharedSize()
	s.scopes[c.Path] = c
}

// childInputs returns the input of the scope inside a step. A scope that declares inputs gets only
// the declared ones, with defaults filled in.
func (st *Step) childInputs() (params, run json.RawMessage) {
	params, run = st.scope.mode.childInputs(st)
	if in := st.Node.Sub.Inputs; in != nil {
		params = in.Fill(st.scope.expandValue(st.declaredInputs()))
		run = params
	}
	return params, run
}

// declaredInputs returns the unchecked input of a child scope that declares inputs. An explicit
// input of the step is used unchanged.
func (st *Step) declaredInputs() json.RawMessage {
	params, run := st.scope.mode.childInputs(st)
	switch sub := st.Node.Sub; {
	case sub.Dag == nil:
		return sub.Inputs.Only(params)
	case len(st.Input) > 0:
		return run
	default:
		return sub.Inputs.Only(st.scope.openValue(run))
	}
}

// sharedSize returns the number of bytes in a scope's shared.
func (sc *Scope) sharedSize() *int {
	size := 0
	for key, v := range sc.Shared {
		size += len(key) + len(v)
	}
	return &size
}

// unfoldUnits derives from a step's input and params the values that all its units share. Evolving
// and linking call it, so that readers of a state need not change it.
func (st *Step) unfoldUnits() {
	st.jobParams = withOwnProgram(st.Params, st.Node.Params)
	if st.isCall() {
		st.jobParams = json.RawMessage("{}") // its Params describe the call
	}
	switch st.Node.Kind {
	case KindParallel:
		names, execs := st.Node.parallelBranches(st.Params, st.scope)
		st.common = &unitValues{names: names, execs: execs}
	case KindForeach:
		items, _ := expr.Elements(st.scope.openValue(st.Input))
		st.common = &unitValues{items: items}
	case KindFanout:
		st.unfoldFanout()
	}
}

// unfoldFanout stores the values that the units of a fanout work on. An input that cannot be built
// stays empty.
func (st *Step) unfoldFanout() {
	n := st.Node
	st.common = new(unitValues)
	switch d := n.Dag; {
	case d.Items == nil:
	case len(st.Input) > 0:
		st.common.items, _ = expr.Elements(st.scope.openValue(st.Input))
	default:
		st.common.items, _ = st.scope.itemsOfEach(n)
	}
	if d := n.Dag; (d.Items == nil || d.Shape == ShapeMerged) && (d.Shape != ShapeMapped || d.Fixed) {
		st.common.input, _ = st.scope.dagInput(n)
	}
}
