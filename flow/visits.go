package flow

import (
	"crypto/sha256"
	"encoding/json"
)

// Visit is a summary of a visit of a node. It is small, so that all visits of two tasks fit into
// memory for a comparison.
type Visit struct {
	Address
	Status   StepStatus
	Action   string
	Reason   string
	Error    string // beginning of the error text
	Attempts int    // attempts of all units
	Units    int
	Output   Glimpse

	StartedAt, EndedAt int64 // 0 if the visit has not begun or not ended
}

// Glimpse is a summary of a value: enough to compare it with others, and to show its beginning.
type Glimpse struct {
	Bytes int
	Begin string
	sum   [sha256.Size]byte
}

// glimpseBytes is the number of bytes of a value that are shown.
const glimpseBytes = 200

func (g *PlanScope) glimpseOf(v json.RawMessage) Glimpse {
	if len(v) == 0 {
		return Glimpse{}
	}
	if g.contents != nil {
		size, begin, sum := g.contents.Glimpse(v, glimpseBytes)
		return Glimpse{size, truncateText(string(begin), glimpseBytes), sum}
	}
	return Glimpse{len(v), truncateText(string(v), glimpseBytes), sha256.Sum256(v)}
}

// MaxVisits is the maximum number of visits collected from a task.
const MaxVisits = 5000

// Visits collects the visits of all nodes of a task from its journal, in the order of their start.
// Skipped nodes of a dag are placed where they were skipped.
type Visits struct {
	State *State
	List  []Visit
	Cut   bool // the task has more than MaxVisits visits

	at map[Address]int
}

// NewVisits returns the Visits of a task before its first event.
func NewVisits(task string, plan *Plan) *Visits {
	return &Visits{State: NewState(task, plan), at: map[Address]int{}}
}

// Apply applies an event.
func (v *Visits) Apply(e *Event) {
	st := v.State.activeStep(e.stepAddress())
	Evolve(v.State, e)
	switch e.Type {
	case StepEntered:
		if visit := v.visitAt(e.stepAddress()); visit != nil {
			visit.Status, visit.StartedAt = StepStarted, e.At
		}
	case AttemptsDispatched:
		if visit := v.visitAt(e.stepAddress()); visit != nil {
			visit.Attempts += e.Total
		}
	case StepEnded:
		v.applyEnded(st, e)
	case ScopeRetried, TaskClosing, TaskRetried, TaskEnded:
		v.withdrawActive(e.At)
	}
}

// visitAt returns the visit at an address and adds it if needed. It returns nil if there are too
// many.
func (v *Visits) visitAt(at Address) *Visit {
	i, known := v.at[at]
	if !known {
		if len(v.List) == MaxVisits {
			v.Cut = true
			return nil
		}
		i = len(v.List)
		v.List, v.at[at] = append(v.List, Visit{Address: at}), i
	}
	return &v.List[i]
}

func (v *Visits) applyEnded(st *Step, e *Event) {
	visit := v.visitAt(e.stepAddress())
	if visit == nil {
		return
	}
	visit.Status, visit.Action, visit.Reason, visit.Error, visit.EndedAt = StepStatus(e.Status),
		e.Action, e.Reason, truncateText(e.Error, maxPastText), e.At
	if st == nil {
		return
	}
	visit.Units = len(st.Units)
	if visit.Status == StepCompleted {
		visit.Output = st.scope.Plan.glimpseOf(st.stepResult(e))
	}
}

// withdrawActive marks active visits as withdrawn if their scope or task has ended.
func (v *Visits) withdrawActive(at int64) {
	for i := range v.List {
		visit := &v.List[i]
		if visit.Status == StepStarted && (v.State.Status.Ended() || v.State.activeStep(visit.Address) == nil) {
			visit.Status, visit.Reason, visit.EndedAt = StepSkipped, ReasonWithdrawn, at
		}
	}
}
