package flow

import (
	"encoding/json"
	"strconv"
)

// UnitView is a unit in the form for users.
type UnitView struct {
	Index    int
	Name     string // name of a branch
	Status   UnitStatus
	Attempt  int
	Appended bool
	Input    json.RawMessage
	Output   json.RawMessage
	Error    string
	Details  json.RawMessage // details of the error
	Worker   string          // worker that holds its claim
	Note     string
	RetryAt  int64
	Due      int64
}

// UnitList lists the units of a visit of a node, also after the end of the visit. It is a Walker
// for that visit.
type UnitList struct {
	State *State
	Step  *Step // nil if the step has not begun

	at Address
}

// NewUnitList returns a list for a visit of a node.
func NewUnitList(at Address) *UnitList { return &UnitList{at: at} }

// From starts or continues with a state.
func (l *UnitList) From(s *State) {
	l.State = s
	if st := s.activeStep(l.at); st != nil {
		l.Step = st
	}
}

// Apply applies an event. A step that has ended stays as it was at its end.
func (l *UnitList) Apply(e *Event, _ Place) {
	Evolve(l.State, e)
	if e.Type == StepEntered {
		l.From(l.State)
	}
}

// Busy returns false, because the list only waits for the end of its visit.
func (l *UnitList) Busy() bool { return false }

// Idle reports whether the visit is still active in the later state, or has not begun there.
func (l *UnitList) Idle(later *State) bool {
	switch later.viewPart().phaseOf(l.at.Scope) {
	case phaseAhead:
		return true
	case phaseOver:
		return false
	}
	return later.activeStep(l.at) != nil || later.scopes[l.at.Scope].Entered(l.at.Node) < l.at.Visit
}

// Done reports whether the visit has ended.
func (l *UnitList) Done() bool { return l.Step != nil && l.State.activeStep(l.at) != l.Step }

// Len returns the number of units.
func (l *UnitList) Len() int {
	if l.Step == nil {
		return 0
	}
	return len(l.Step.Units)
}

// At returns the unit with an index.
func (l *UnitList) At(i int) UnitView {
	st := l.Step
	u := &st.Units[i]
	v := UnitView{Index: i, Name: st.UnitName(i), Status: u.Status, Attempt: int(u.Attempt),
		Input: st.unitInput(i), Output: u.Output, RetryAt: u.RetryAt,
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

// UnitName returns the name of a unit in the history: the branch of a parallel, or the index of an
// item.
func (st *Step) UnitName(i int) string {
	switch st.Node.Kind {
	case KindParallel:
		if i < len(st.common.names) {
			return st.common.names[i]
		}
	case KindForeach, KindFanout:
		return strconv.Itoa(i)
	}
	return ""
}

// UnitRun counts consecutive units that have the same status.
type UnitRun struct {
	Count  int
	Status UnitStatus
}

// States returns the status of all units in order, with consecutive equal ones combined.
func (l *UnitList) States() []UnitRun {
	runs := []UnitRun{}
	for i := range l.Len() {
		status := l.Step.Units[i].Status
		if !status.Ended() && l.isOver() {
			status = UnitCanceled
		}
		if last := len(runs) - 1; last >= 0 && runs[last].Status == status {
			runs[last].Count++
			continue
		}
		runs = append(runs, UnitRun{1, status})
	}
	return runs
}

// isOver reports whether the units will not change any more.
func (l *UnitList) isOver() bool {
	return l.State.Status.Ended() || l.State.activeStep(l.Step.Address()) != l.Step
}

// Settled reports whether the list will never change, because its visit has ended. It is false
// after the end of the task, because a retry may continue the visit.
func (l *UnitList) Settled() bool {
	return l.Step != nil && l.State.activeStep(l.Step.Address()) != l.Step
}
