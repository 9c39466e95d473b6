package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Kept holds the results that a failed or interrupted step leaves for its retry. Completed work is
// not repeated if the input is the same.
type Kept struct {
	Input   json.RawMessage
	Initial int    // number of units at the start
	Units   []Unit // one per unit; zero for units that had not completed
	Child   *Scope // scope of a subflow, without active steps
	Since   int    // visit whose unit keys the units use
	OwnKeys []OwnKeys
}

// OwnKeys is a range of units whose keys contain another visit than those of the other units,
// because they were undone. Ranges are in ascending order.
type OwnKeys struct {
	From, Count int
	Visit       int // 0 for the next visit, which runs the units again
}

// keepResults returns the reusable results of an ended step. Everything below the step has ended by
// then.
func (s evolveState) keepResults(st *Step, at int64) *Kept {
	k := &Kept{Input: st.Input, Initial: st.Initial, Units: st.completedUnits()}
	k.Since, k.OwnKeys = st.keyVisit(), st.OwnKeys
	if st.Child != nil {
		st.Child.cutActive(s.State, at)
		k.Child = st.Child
	}
	return k
}

// cutActive ends the active steps of a scope, and everything below them, at the given time.
func (sc *Scope) cutActive(s *State, at int64) {
	for _, st := range sc.Active() {
		s.evolvePart().forgetStep(st, at)
		sc.mode.deactivateStep(sc, st, at)
		sc.mode.setKept(sc, st.Node, s.evolvePart().keepResults(st, at))
	}
}

// completedUnits returns the units with the results of the completed ones alone. It returns nil if
// none has completed. It also returns nil if all have: then the step failed because of the combined
// output, and would fail again.
func (st *Step) completedUnits() []Unit {
	if st.Done == st.Failures || st.Done-st.Failures == len(st.Units) || st.Node.Single {
		return nil
	}
	units := make([]Unit, len(st.Units))
	for i := range st.Units {
		if u := &st.Units[i]; u.Status == UnitCompleted {
			units[i] = Unit{Status: UnitCompleted, Attempt: u.Attempt, Output: u.Output}
		}
	}
	return units
}

// reusableResults returns how many units of the previous visit can be reused by a step that is
// about to be entered (1 for a child scope). The results can be reused if the step has the same
// input.
func (sc *Scope) reusableResults(n *PlanNode, e *Event) int {
	k := sc.mode.keptResults(sc, n)
	if k == nil || k.Units == nil && k.Child == nil || !sc.sameWork(n, k, e) {
		return 0
	}
	count := 0
	for i := range k.Units {
		if k.Units[i].Status == UnitCompleted {
			count++
		}
	}
	return max(count, 1)
}

// continuedVisit returns the visit whose unit keys a step that is about to be entered reuses,
// because it retries the same work. It returns 0 if there is none.
func (sc *Scope) continuedVisit(n *PlanNode, e *Event) int {
	if k := sc.mode.keptResults(sc, n); k != nil && sc.sameWork(n, k, e) {
		return k.Since
	}
	return 0
}

// sameWork reports whether a step that is about to be entered has the same input and number of
// units as its last visit.
func (sc *Scope) sameWork(n *PlanNode, k *Kept, e *Event) bool {
	if k.Initial != e.Total {
		return false
	}
	input := e.Input
	if e.InputRef != "" {
		input = sc.resolveText(e.InputRef, sc.mode.stepParams(sc, n))
	}
	return sc.equalValues(k.Input, input)
}

// keyVisit returns the visit that the keys of the step's units contain.
func (st *Step) keyVisit() int { return cmp.Or(st.Since, st.Visit) }

// unitKeyVisit returns the visit that the key of a unit contains.
func (st *Step) unitKeyVisit(unit int) int {
	i, _ := slices.BinarySearchFunc(st.OwnKeys, unit, func(k OwnKeys, unit int) int {
		return cmp.Compare(k.From+k.Count-1, unit)
	})
	if i < len(st.OwnKeys) && st.OwnKeys[i].From <= unit {
		return st.OwnKeys[i].Visit
	}
	return st.keyVisit()
}

// originUnit returns the address of the unit in the visit that the step continues. It returns nil
// if neither the step nor a scope around it continues a visit.
func (st *Step) originUnit(unit int) *Address {
	scope, visit := st.scope.originPath(), st.unitKeyVisit(unit)
	if visit == st.Visit && scope == st.scope.Path {
		return nil
	}
	return &Address{Scope: scope, Node: st.Key, Visit: visit, Unit: unit}
}

// originPath returns the path of a scope, with the visits of the steps around it replaced by those
// that they continue.
func (sc *Scope) originPath() string {
	if sc.parent == nil {
		return sc.Path
	}
	around := sc.parent.scope.originPath()
	if sc.parent.Since == 0 && around == sc.parent.scope.Path {
		return sc.Path
	}
	return childScope(around, sc.parent.Key, sc.parent.keyVisit())
}

// applyKept restores the results of the last visit in a step that was just entered. Units that were
// appended to that visit are appended again later, and get their results then.
func (st *Step) applyKept(k *Kept) {
	st.takeResults(k.Units, 0)
	if len(k.Units) > len(st.Units) {
		st.scope.mode.setKept(st.scope, st.Node, &Kept{Units: k.Units})
	}
	if k.Child != nil {
		st.Child = k.Child.copyForRetry()
	}
}

// takeResults restores the kept results of units, from an index on.
func (st *Step) takeResults(kept []Unit, from int) {
	for i := from; i < min(len(kept), len(st.Units)); i++ {
		if kept[i].Status == UnitCompleted {
			st.Units[i] = kept[i]
			st.Done++
			st.size += len(kept[i].Output)
		}
	}
}

// copyForRetry returns a copy of an ended scope for another visit of its step. The original stays
// unchanged, because it may still have readers.
func (sc *Scope) copyForRetry() *Scope {
	next := *sc
	next.Nodes, next.Shared, next.Visits = slices.Clone(sc.Nodes), maps.Clone(sc.Shared), maps.Clone(sc.Visits)
	return &next
}

// reopenFailed resets a failed or interrupted scope, so that it continues. Failed nodes, the nodes
// that could not run because of them, and undone nodes run again.
func (sc *Scope) reopenFailed(undone map[string]bool) {
	sc.mode.reopenScope(sc, undone)
	sc.Failed, sc.FailedAt, sc.EnterAt, sc.Retries = "", "", 0, 0
}

// reopenScope makes a subflow retry the failed nodes of its dag. Held nodes stay held.
func (s evolveState) reopenScope(e *Event) {
	sc := s.scopes[e.Scope]
	if sc == nil {
		return
	}
	sc.cutActive(s.State, e.At)
	var held []string
	for i := range sc.Nodes {
		if sc.Nodes[i].Held {
			held = append(held, sc.Plan.Dag.List[i].Key)
		}
	}
	sc.reopenFailed(nil)
	for _, key := range held {
		sc.holdNode(key, true)
	}
	sc.Retries, sc.EnterAt = e.Attempt, e.Due
}

// retryTask makes a failed task continue. Failed nodes, the nodes that could not run because of
// them, and undone nodes run again.
func (s evolveState) retryTask(e *Event) {
	var undone map[string]bool
	ended := cmp.Or(s.EndedAt, e.At) // a fork may come from a task that has not ended
	s.Root.cutActive(s.State, ended)
	if s.Closing != nil {
		s.forgetScope(s.Closing.Scope, ended)
		undone = s.undoPart().forgetUndone()
	}
	s.Status, s.Error, s.EndedAt, s.CancelAt, s.CancelError = TaskRunning, "", 0, 0, ""
	s.Closing, s.Deadline, s.DeadlineLeft = nil, 0, 0
	if s.Plan.TimeoutMS > 0 {
		s.Deadline = e.At + s.Plan.TimeoutMS
	}
	if e.Params != nil {
		if !s.Root.equalValues(s.Params, e.Params) {
			s.Root.forgetInside()
			if f := s.Root.Function; f != nil {
				f.NextInput = nil // a restarted function gets the new params
			}
		}
		s.Params = e.Params
		s.Root.replaceParams(s.Params)
	}
	s.applyPermitsAsked(e)
	if e.Node == "" {
		s.Root.reopenFailed(undone)
		return
	}
	s.Root.reopenNode(e.Node)
}

// replaceParams gives the root new params. Units of a dag whose input changes lose their kept
// results. Other kept results are compared when their step begins.
func (sc *Scope) replaceParams(params json.RawMessage) {
	before := map[int][]json.RawMessage{}
	for i := range sc.Nodes {
		if k := sc.Nodes[i].keptResults(); k != nil && k.Units != nil && len(k.Input) == 0 {
			before[i] = sc.unitsWork(sc.Plan.Dag.List[i])
		}
	}
	sc.mode.bindInputs(sc, params, params)
	for i, work := range before {
		if !slices.EqualFunc(work, sc.unitsWork(sc.Plan.Dag.List[i]), sc.equalValues) {
			sc.Nodes[i].setKept(nil)
		}
	}
}

// unitsWork returns the values that the units of a fanout work on: their items, or their common
// input.
func (sc *Scope) unitsWork(n *PlanNode) (all []json.RawMessage) {
	if n.Dag.Items != nil {
		all, _ = sc.itemsOfEach(n)
		all = slices.Clone(all)
	}
	if n.Dag.Items == nil || n.Dag.Shape == ShapeMerged {
		v, _ := sc.dagInput(n)
		all = append(all, v)
	}
	return all
}

// forgetInside drops, from kept scopes, the results of units that used the input of their scope,
// because that input changes. If the scope got the input of its step, the input is compared when
// the step begins.
func (sc *Scope) forgetInside() {
	sc.Kept = sc.Kept.forgetInside()
	for i := range sc.Nodes {
		if k := sc.Nodes[i].keptResults(); k != nil {
			sc.Nodes[i].setKept(k.forgetInside())
		}
	}
}

func (k *Kept) forgetInside() *Kept {
	switch {
	case k == nil || k.Child == nil || len(k.Input) > 0:
		return k
	case k.Child.Plan == nil: // from a snapshot; params only change in the first row
		return nil
	}
	next := *k
	next.Child = k.Child.copyForRetry()
	for i := range next.Child.Nodes {
		n := &next.Child.Nodes[i]
		if own := n.keptResults(); own != nil && own.Units != nil && len(own.Input) == 0 && next.Child.Plan.Dag.List[i].mayUseRun() {
			n.setKept(nil)
		}
	}
	next.Child.forgetInside()
	return &next
}

// mayUseRun reports whether units of a fanout may use the input of their scope.
func (n *PlanNode) mayUseRun() bool {
	return n.Dag.Items == nil || n.Dag.Items.From == FromRun || n.Dag.Shape == ShapeMerged
}
