package flow

import "encoding/json"

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
	Worker   string // that holds it
	Note     string
	RetryAt  int64
	Due      int64
}

// UnitList finds a visit of a node in a journal and tells its units, also when it is over.
type UnitList struct {
	State *State
	Step  *Step // nil = it has not begun

	at Address
}

// NewUnitList begins before a task's first event. Visit 0 is the newest one.
func NewUnitList(task string, plan *Plan, at Address) *UnitList {
	return &UnitList{State: NewState(task, plan), at: at}
}

// UnitsInState makes the list of a state alone. ok is false when the journal is needed for it.
func UnitsInState(s *State, at Address) (l *UnitList, ok bool) {
	sc := s.Scope(at.Scope)
	if sc == nil || sc.Graph.Nodes[at.Node] == nil {
		return nil, false
	}
	st := sc.visitOf(sc.Graph.Nodes[at.Node])
	if st == nil || at.Visit != 0 && at.Visit != st.Visit {
		return nil, false
	}
	return &UnitList{State: s, Step: st, at: at}, true
}

// Apply adds an event of the journal.
func (l *UnitList) Apply(e *Event) {
	Evolve(l.State, e)
	if e.Type != StepEntered || e.Scope != l.at.Scope || e.Node != l.at.Node || l.at.Visit != 0 && e.Visit != l.at.Visit {
		return
	}
	l.Step = l.State.step(e.stepAddress()) // which is left as it was when it ended
}

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
		v.Error = *u.Error
	}
	if over := l.State.Status.Ended() || l.State.step(st.Address()) != st; over && !u.Status.Ended() {
		v.Status, v.RetryAt = UnitCanceled, 0
		return v
	}
	if u.Live != nil {
		v.Worker, v.Note, v.Due = u.Live.Worker, u.Live.Note, u.Live.Due
	}
	return v
}
