package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Undoable is a visit of a node that has a compensation, and of which at least one unit has
// completed. It holds all data that undoing the visit needs. The units are undone one by one. A
// step without units, such as a subflow, is undone as a whole, as unit 0.
type Undoable struct {
	Scope string
	Node  string
	Visit int
	Since int    // visit whose unit keys the units use
	By    string // key of the compensating node
	Left  int    // completed units that are not undone yet

	// The following fields are set when the step ends, and cleared when no unit is left to undo.

	Input   json.RawMessage   // input of the step, or of each of its units
	Items   json.RawMessage   // list with one item per unit; nil if every unit has Input
	Initial int               // number of units at the start
	Extra   []json.RawMessage // appended items
	Merged  bool              // the items are merged into Input
	Many    bool              // Output is the list of the units' outputs
	Output  json.RawMessage

	// items and outputs are the elements of Items and Output, set when the first unit is undone.
	items, outputs []json.RawMessage
}

// UnitRange is a range of units of an Undoable, in ascending order.
type UnitRange struct {
	Step  int // index of the Undoable in the state
	From  int
	Count int
}

func (r *UnitRange) lastUnit() int { return r.From + r.Count - 1 }

// hasUnits reports whether the step of the node has units, which are undone one by one.
func (n *PlanNode) hasUnits() bool {
	return n.Single || n.Kind == KindParallel || n.Kind == KindForeach || n.Kind == KindFanout
}

// noteDone records a completed unit that can be undone.
func (s undoState) noteDone(st *Step, unit int) {
	if st.Node.Undo == "" {
		return
	}
	if st.Undoable == 0 {
		s.addUndoable(st.scope, st.Node, st.Visit, st.keyVisit())
		st.Undoable = len(s.Undoables)
	}
	s.addDone(st.Undoable-1, unit)
}

// keepForUndo stores the data that undoing a completed step needs. A step without units is recorded
// as done only here.
func (s undoState) keepForUndo(
	sc *Scope, n *PlanNode, visit int, st *Step, input func() json.RawMessage, output json.RawMessage,
) {
	switch {
	case n.Undo == "":
	case !n.hasUnits():
		u := s.addUndoable(sc, n, visit, visit)
		u.Input, u.Output = orNull(input()), orNull(output)
		s.addDone(len(s.Undoables)-1, 0)
	case st != nil:
		s.keepUnitsForUndo(st, output)
	}
}

// keepUnitsForUndo stores the data that undoing the completed units of an ended step needs, because
// the step itself is dropped. If the output is not known yet, it is built.
func (s undoState) keepUnitsForUndo(st *Step, output json.RawMessage) {
	if st.Undoable == 0 {
		return
	}
	u := &s.Undoables[st.Undoable-1]
	if u.Output != nil {
		return
	}
	switch {
	case output != nil:
	case st.Node.Single:
		output = st.Units[0].Output
	default:
		output = st.unitOutputs()
	}
	u.Output, u.Many, u.Initial, u.Extra = orNull(output), !st.Node.Single, st.Initial, st.Extra
	switch n := st.Node; {
	case n.Kind == KindForeach:
		u.Items = orNull(st.Input)
	case n.Kind == KindFanout:
		u.Merged = n.Dag.Shape == ShapeMerged
		u.Items = st.itemList()
		if u.Items == nil || u.Merged {
			u.Input = st.stepInput()
		}
	default:
		u.Input = st.stepInput()
	}
}

// itemList returns the items of a fanout's units, or nil if the fanout only has a number of units.
func (st *Step) itemList() json.RawMessage {
	switch from := st.Node.Dag.Items; {
	case from == nil:
		return nil
	case len(st.Input) > 0:
		return st.Input
	default:
		list, _ := st.scope.dagRef(st.Node, from)
		return orNull(list)
	}
}

func (s undoState) addUndoable(sc *Scope, n *PlanNode, visit, since int) *Undoable {
	u := Undoable{Scope: sc.Path, Node: n.Key, Visit: visit, Since: since, By: n.Undo}
	s.Undoables = append(s.Undoables, u)
	return &s.Undoables[len(s.Undoables)-1]
}

func (s undoState) addDone(step, unit int) {
	s.Undoables[step].Left++
	if n := len(s.Done); n > 0 && s.Done[n-1].Step == step && s.Done[n-1].lastUnit()+1 == unit {
		s.Done[n-1].Count++
		return
	}
	s.Done = append(s.Done, UnitRange{Step: step, From: unit, Count: 1})
}

// countDone returns the number of units that are undone if the task fails.
func (s undoState) countDone() (count int) {
	for _, r := range s.Done {
		count += r.Count
	}
	return count
}

// nextUndo returns the next unit to undo: of the units that are not undone yet, the one that
// completed last. It returns nil if there is none.
func (s undoState) nextUndo() (*Undoable, int) {
	if len(s.Done) == 0 {
		return nil, 0
	}
	r := &s.Done[len(s.Done)-1]
	return &s.Undoables[r.Step], r.lastUnit()
}

// takeLast removes the unit that completed last from the units to undo, and returns it.
func (s undoState) takeLast() UnitRange {
	r := &s.Done[len(s.Done)-1]
	taken := UnitRange{Step: r.Step, From: r.lastUnit(), Count: 1}
	if r.Count--; r.Count == 0 {
		s.Done = s.Done[:len(s.Done)-1]
	}
	if u := &s.Undoables[taken.Step]; u.Left > 1 {
		u.Left--
	} else {
		*u = Undoable{Scope: u.Scope, Node: u.Node, Visit: u.Visit, Since: u.Since, By: u.By}
	}
	s.unfoldUndo()
	return taken
}

// unfoldUndo splits the lists of inputs and outputs into elements for the next unit to undo. Evolve
// and the link methods call it, as they do for active steps.
func (s undoState) unfoldUndo() {
	u, _ := s.nextUndo()
	if u == nil || s.Closing == nil || !u.Many || u.outputs != nil {
		return
	}
	u.outputs, _ = expr.Elements(u.Output)
	if u.Items != nil {
		u.items, _ = expr.Elements(s.Closing.Scope.openValue(u.Items))
	}
}

func (u *Undoable) unitInput(unit int) json.RawMessage {
	if !u.Many || unit < u.Initial && u.Items == nil {
		return orNull(u.Input)
	}
	item := orNull(itemAt(u.items, u.Extra, u.Initial, unit))
	if u.Merged {
		return expr.SetField(u.Input, "item", item)
	}
	return item
}

func (u *Undoable) unitOutput(unit int) json.RawMessage {
	switch {
	case !u.Many:
		return orNull(u.Output)
	case unit < len(u.outputs):
		return orNull(u.outputs[unit])
	}
	return null
}

// addUndone adds a unit to the list of undone units. Units arrive in descending order, so a range
// grows downwards.
func addUndone(list []UnitRange, r UnitRange) []UnitRange {
	if n := len(list); n > 0 && list[n-1].Step == r.Step && list[n-1].From == r.From+1 {
		list[n-1].From--
		list[n-1].Count++
		return list
	}
	return append(list, r)
}

// undidInside reports whether the task has undone a unit in a scope below the root.
func (s undoState) undidInside() bool {
	inside := func(r UnitRange) bool { return s.Undoables[r.Step].Scope != "" }
	return slices.ContainsFunc(s.Closing.Undone, inside)
}

// forgetUndone removes the results of undone units from the nodes of the root, and ends the
// closing. It returns these nodes and the nodes of undone branches.
//
// Units that run again after this get new keys. With the old keys, a service that has undone their
// work would treat them as repetitions.
func (s undoState) forgetUndone() map[string]bool {
	nodes := map[string]bool{}
	undone := map[string][]UnitRange{}
	for _, r := range s.Closing.Undone {
		key := s.Undoables[r.Step].Node
		nodes[key] = true
		undone[key] = append(undone[key], r)
		if n := s.Root.Plan.Nodes[key]; n.Kind == KindJoin {
			addInside(nodes, s.Root.Plan, n)
		}
	}
	for key, ranges := range undone {
		n, k := s.Root.Plan.Nodes[key], (*Kept)(nil)
		if s.Root.mode.canRedoUndone() && n.hasUnits() {
			if k = s.Root.mode.keptResults(s.Root, n); k == nil {
				k = s.keptDone(n)
			}
		}
		if k != nil {
			s.Root.mode.setKept(s.Root, n, k.withoutUnits(ranges))
		}
	}
	s.dropUndone()
	return nodes
}

// addInside adds the nodes of a branch that the compiler placed into its parent's scope.
func addInside(nodes map[string]bool, scope *PlanScope, branch *PlanNode) {
	for key := range scope.Nodes {
		if strings.HasPrefix(key, branch.Key+"/") {
			nodes[key] = true
		}
	}
}

// keptDone returns the reusable results of a completed fanout of the root. Only some of its units
// were undone. It returns nil if there are no such results.
func (s undoState) keptDone(n *PlanNode) (k *Kept) {
	since := 0
	for i := range s.Undoables {
		if u := &s.Undoables[i]; u.Scope == "" && u.Node == n.Key {
			since = u.Since
		}
	}
	for _, r := range s.Done {
		u := &s.Undoables[r.Step]
		if u.Scope != "" || u.Node != n.Key || u.Since != since || !u.Many {
			continue
		}
		outputs, _ := expr.Elements(u.Output)
		if k == nil {
			k = &Kept{Input: u.enteredInput(n), Initial: u.Initial, Since: since}
		}
		k.Units = append(k.Units, make([]Unit, max(0, len(outputs)-len(k.Units)))...)
		for i := r.From; i < min(r.From+r.Count, len(outputs)); i++ {
			k.Units[i] = Unit{Status: UnitCompleted, Attempt: 1, Output: outputs[i]}
		}
	}
	return k
}

// enteredInput returns the input with which the fanout was entered.
func (u *Undoable) enteredInput(n *PlanNode) json.RawMessage {
	switch d := n.Dag; {
	case d.Items != nil && d.Items.From == FromShared:
		return u.Items
	case d.Items == nil && d.Shape == ShapeMapped && !d.Fixed:
		return u.Input
	}
	return nil
}

// withoutUnits returns a copy of the results without the results of the undone units.
func (k *Kept) withoutUnits(undone []UnitRange) *Kept {
	next := *k
	next.Units = slices.Clone(k.Units)
	visits := map[int]int{}
	for _, own := range k.OwnKeys {
		for i := range own.Count {
			visits[own.From+i] = own.Visit
		}
	}
	for _, r := range undone {
		for i := r.From; i < r.From+r.Count; i++ {
			visits[i] = 0
			if i < len(next.Units) {
				next.Units[i] = Unit{}
			}
		}
	}
	if !slices.ContainsFunc(next.Units, func(u Unit) bool { return u.Status == UnitCompleted }) {
		next.Units = nil
	}
	next.OwnKeys = nil
	for _, unit := range slices.Sorted(maps.Keys(visits)) {
		next.OwnKeys = addOwnKey(next.OwnKeys, unit, visits[unit])
	}
	return &next
}

func addOwnKey(list []OwnKeys, unit, visit int) []OwnKeys {
	if n := len(list); n > 0 && list[n-1].From+list[n-1].Count == unit && list[n-1].Visit == visit {
		list[n-1].Count++
		return list
	}
	return append(list, OwnKeys{From: unit, Count: 1, Visit: visit})
}

// ownKeys returns the units of a step that have keys of their own, for the visit that runs them
// again.
func (k *Kept) ownKeys(visit int) []OwnKeys {
	list := slices.Clone(k.OwnKeys)
	for i := range list {
		list[i].Visit = cmp.Or(list[i].Visit, visit)
	}
	return list
}

// dropUndone removes the visits that have no unit left to undo.
func (s undoState) dropUndone() {
	var left []Undoable
	places := map[int]int{}
	for i := range s.Done {
		step := s.Done[i].Step
		at, known := places[step]
		if !known {
			at = len(left)
			left, places[step] = append(left, s.Undoables[step]), at
		}
		s.Done[i].Step = at
	}
	s.Undoables = left
}

// checkUndoables rejects a snapshot whose units to undo do not belong to any of its steps.
func (s undoState) checkUndoables() error {
	unknown := func(r UnitRange) bool {
		return r.Step < 0 || r.Step >= len(s.Undoables) || r.From < 0 || r.Count <= 0
	}
	if slices.ContainsFunc(s.Done, unknown) ||
		s.Closing != nil && slices.ContainsFunc(s.Closing.Undone, unknown) {
		return fmt.Errorf("flow: a snapshot of task %s undoes units of a step that it does not have", s.Task)
	}
	return nil
}
