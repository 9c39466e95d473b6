package flow

import (
	"encoding/json"
	"strconv"
)

// UnitView is a unit as people read it.
type UnitView struct {
	Index    int
	Name     string // of a branch
	Status   UnitStatus
	Attempt  int
	Appended bool
	Input    json.RawMessage
	Output   json.RawMessage
	Error    string
	Details  json.RawMessage // of the error
	Worker   string          // that holds it
	Note     string
	RetryAt  int64
	Due      int64
}

// UnitList tells the units of a visit of a node, also when it is over. It is a Walker for that
// visit.
type UnitList struct {
	State *State
	Step  *Step // nil = it has not begun

	at Address
}

// NewUnitList is for a visit of a node.
func NewUnitList(at Address) *UnitList { return &UnitList{at: at} }

// From begins, or goes on, with a state.
func (l *UnitList) From(s *State) {
	l.State = s
	if st := s.activeStep(l.at); st != nil {
		l.Step = st
	}
}

// Apply adds an event. A step is left as it was when it ended.
func (l *UnitList) Apply(e *Event, _ Place) {
	Evolve(l.State, e)
	if e.Type == StepEntered {
		l.From(l.State)
	}
}

// Busy is false: it waits for the end of its visit.
func (l *UnitList) Busy() bool { return false }

// Idle says that the visit is under way later, too, or has yet to come.
func (l *UnitList) Idle(later *State) bool {
	switch later.phaseOf(l.at.Scope) {
	case phaseAhead:
		return true
	case phaseOver:
		return false
	}
	return later.activeStep(l.at) != nil || later.scopes[l.at.Scope].Entered(l.at.Node) < l.at.Visit
}

// Done says that the visit is over.
func (l *UnitList) Done() bool { return l.Step != nil && l.State.activeStep(l.at) != l.Step }

// Len is how many units there are.
func (l *UnitList) Len() int {
	if l.Step == nil {
		return 0
	}
	return len(l.Step.Units)
}

// At is one of them.
func (l *UnitList) At(i int) UnitView {
	st := l.Step
	u := &st.Units[i]
	v := UnitView{Index: i, Name: st.UnitName(i), Status: u.Status, Attempt: int(u.Attempt), Input: st.unitInput(i), Output: u.Output, RetryAt: u.RetryAt,
		Appended: st.Node.Kind == KindFanout && i >= st.Initial}
	if u.Error != nil {
		v.Error, v.Details = u.Error.Text, u.Error.Details
	}
	if !u.Status.Ended() && l.isOver() {
		v.Status, v.RetryAt = UnitCanceled, 0
		return v
	}
	if u.Live != nil {
		v.Worker, v.Note, v.Due = u.Live.Worker, u.Live.Note, u.Live.Due
	}
	return v
}

// UnitName is a unit's name in history: a parallel's branch or an item's index.
func (st *Step) UnitName(i int) string {
	switch st.Node.Kind {
	case KindParallel:
		if i < len(st.names) {
			return st.names[i]
		}
	case KindForeach, KindFanout:
		return strconv.Itoa(i)
	}
	return ""
}
