package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Kept is what a step that failed or was cut short leaves to the visit that tries it again: what it
// had completed is not done once more, as long as it works on the same input.
type Kept struct {
	Input   json.RawMessage
	Initial int    // units it began with
	Units   []Unit // zero where nothing had completed
	Child   *Scope // of a subflow, with nothing active in it
	Since   int    // the visit whose keys its units have
	OwnKeys []OwnKeys
}

// OwnKeys are units of a step, in ascending order, that have keys of another visit than the others,
// because they were undone.
type OwnKeys struct {
	From, Count int
	Visit       int // 0 = of the next one, which does them again
}

// keepResults is called when a step is over, and everything below it with it.
func (s *State) keepResults(st *Step, at int64) *Kept {
	k := &Kept{Input: st.Input, Initial: st.Initial, Units: st.completedUnits()}
	k.Since, k.OwnKeys = st.keyVisit(), st.OwnKeys
	if st.Child != nil {
		st.Child.cutActive(s, at)
		k.Child = st.Child
	}
	return k
}

// cutActive drops the active steps of a scope, which were over at a time, and what is below them.
func (sc *Scope) cutActive(s *State, at int64) {
	for _, st := range sc.Active() {
		s.forgetStep(st, at)
		sc.mode.deactivateStep(sc, st, at)
		sc.mode.setKept(sc, st.Node, s.keepResults(st, at))
	}
}

// completedUnits are the units of a step with nothing but the results of those that completed; nil
// when none has, and when all have: then it failed by what they put out together, and would again.
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

// reusableResults says of how many units, or of a scope, a step that is about to be entered has the
// results: its last visit has left them, and it works on the same.
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

// continuedVisit returns the visit whose keys the units of a step that is about to be entered keep,
// because a retry has them do the same work again; 0 = none.
func (sc *Scope) continuedVisit(n *PlanNode, e *Event) int {
	if k := sc.mode.keptResults(sc, n); k != nil && sc.sameWork(n, k, e) {
		return k.Since
	}
	return 0
}

// sameWork reports whether a step that is about to be entered has the input and the number of units
// of its last visit.
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

// keyVisit returns the visit whose keys the step's units have.
func (st *Step) keyVisit() int { return cmp.Or(st.Since, st.Visit) }

// unitKeyVisit returns the visit whose key a unit has.
func (st *Step) unitKeyVisit(unit int) int {
	i, _ := slices.BinarySearchFunc(st.OwnKeys, unit, func(k OwnKeys, unit int) int {
		return cmp.Compare(k.From+k.Count-1, unit)
	})
	if i < len(st.OwnKeys) && st.OwnKeys[i].From <= unit {
		return st.OwnKeys[i].Visit
	}
	return st.keyVisit()
}

// originUnit returns the unit of the visit that a step continues; the zero Address when it
// continues none, and is in no scope that does.
func (st *Step) originUnit(unit int) Address {
	scope, visit := st.scope.originPath(), st.unitKeyVisit(unit)
	if visit == st.Visit && scope == st.scope.Path {
		return Address{}
	}
	return Address{Scope: scope, Node: st.Key, Visit: visit, Unit: unit}
}

// originPath returns the path of a scope, with the visits that the steps around it continue in the
// place of theirs.
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

// applyKept gives a step that has just been entered what its last visit has left. Units that were
// appended to that one are appended again, and only then have their results.
func (st *Step) applyKept(k *Kept) {
	st.takeResults(k.Units, 0)
	if len(k.Units) > len(st.Units) {
		st.scope.mode.setKept(st.scope, st.Node, &Kept{Units: k.Units})
	}
	if k.Child != nil {
		st.Child = k.Child.copyForRetry()
	}
}

// takeResults gives units from an index on the results that were kept of them.
func (st *Step) takeResults(kept []Unit, from int) {
	for i := from; i < min(len(kept), len(st.Units)); i++ {
		if kept[i].Status == UnitCompleted {
			st.Units[i] = kept[i]
			st.Done++
			st.size += len(kept[i].Output)
		}
	}
}

// copyForRetry is a copy of a scope that is over, for another visit of the step it belongs to. The
// first one stays as somebody may be reading it.
func (sc *Scope) copyForRetry() *Scope {
	next := *sc
	next.Nodes, next.Shared, next.Visits = slices.Clone(sc.Nodes), maps.Clone(sc.Shared), maps.Clone(sc.Visits)
	return &next
}

// reopenFailed has a scope that failed or was cut short go on where it was: what failed, and what
// could not run because of that, is as if it had not been there; so is what was undone.
func (sc *Scope) reopenFailed(undone map[string]bool) {
	sc.mode.reopenScope(sc, undone)
	sc.Failed, sc.FailedAt, sc.EnterAt, sc.Retries = "", "", 0, 0
}

// reopenScope has a subflow try again what failed in its dag. What somebody does not want to begin
// still does not.
func (s *State) reopenScope(e *Event) {
	sc := s.scopes[e.Scope]
	if sc == nil {
		return
	}
	sc.cutActive(s, e.At)
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

// retryTask has a failed task go on: what failed, and what could not run because of that, is as if
// it had not been there; so is what was undone.
func (s *State) retryTask(e *Event) {
	var undone map[string]bool
	ended := cmp.Or(s.EndedAt, e.At) // a fork may be of a task that has not ended
	s.Root.cutActive(s, ended)
	if s.Closing != nil {
		s.forgetScope(s.Closing.Scope, ended)
		undone = s.forgetUndone()
	}
	s.Status, s.Error, s.EndedAt, s.CancelAt, s.Closing, s.Deadline, s.DeadlineLeft = TaskRunning, "", 0, 0, nil, 0, 0
	if s.Plan.TimeoutMS > 0 {
		s.Deadline = e.At + s.Plan.TimeoutMS
	}
	if e.Params != nil {
		if !s.Root.equalValues(s.Params, e.Params) {
			s.Root.forgetInside()
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

// replaceParams has the root work on other params. Units of a dag that would work on something else
// than those whose results were kept are done again; what is kept in other ways is compared when
// the step begins.
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

// unitsWork is what the units of a fanout work on: their items, or the input of all.
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

// forgetInside drops from the scopes that are kept what units of dags had completed that worked on
// what their scope was given: it will be given something else. Where a scope was given the input of
// its step, that is compared when the step begins.
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
	case k.Child.Plan == nil: // of a snapshot; params change in the first row alone
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

// mayUseRun reports whether units of a fanout may work on what their scope was given.
func (n *PlanNode) mayUseRun() bool {
	return n.Dag.Items == nil || n.Dag.Items.From == FromRun || n.Dag.Shape == ShapeMerged
}
