package flow

import (
	"cmp"
	"strconv"
	"strings"
)

// Place is a position in a task's journal: a row, an event in the row, and one of the runs that the
// event begins. The zero place is before everything.
type Place struct {
	Seq       int64
	Index     int // index of the event in its row
	Beginning int // index among the runs that the event begins
}

// Compare orders places.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Index, q.Index), cmp.Compare(p.Beginning, q.Beginning))
}

// beforeEvent returns the place before everything that the event begins.
func (p Place) beforeEvent() Place { return Place{p.Seq, p.Index, -1} }

// Walker searches a journal. The reader of the journal may skip parts that the walker does not
// need, if it can continue from a later state.
type Walker interface {
	// From starts or continues with a state, which the walker may change.
	From(s *State)
	// Apply passes the next event. The walker must not keep the pointer.
	Apply(e *Event, at Place)
	// Busy reports whether the walker needs every further event.
	Busy() bool
	// Idle reports whether the walker needs no event before the later state. A walker that looks
	// for a single item accepts this call before From.
	Idle(later *State) bool
	// Done reports whether the walker needs no further event.
	Done() bool
}

// maxEventsRead is the maximum number of events that are read for a page. After that the page ends,
// and the next one continues from there.
const maxEventsRead = 20_000

// scopePhase is the phase of a scope.
type scopePhase uint8

const (
	phaseAhead scopePhase = iota // the scope has not begun
	phaseActive
	phaseOver
)

// phaseOf returns the phase of the scope with a path.
func (s viewState) phaseOf(path string) scopePhase {
	if s.scopes[path] != nil {
		return phaseActive
	}
	at, ok := ParentOf(path)
	if !ok { // the root, or a closing scope
		return s.closingPhase(path)
	}
	switch p := s.phaseOf(at.Scope); {
	case p != phaseActive:
		return p
	case s.scopes[at.Scope].Entered(at.Node) < at.Visit:
		return phaseAhead
	}
	return phaseOver
}

// closingPhase returns the phase of a closing scope that does not exist now. Either a retry has
// removed it, or it has not begun.
func (s viewState) closingPhase(path string) scopePhase {
	n, err := strconv.Atoi(strings.TrimPrefix(path, closingScope))
	if path == closingScope {
		n, err = 1, nil
	}
	if err == nil && n <= s.Closings {
		return phaseOver
	}
	return phaseAhead
}

// Entered returns how often a node was entered, or would have been entered without a skip.
func (sc *Scope) Entered(node string) int {
	if n := sc.Plan.Nodes[node]; n != nil {
		return sc.mode.visitCount(sc, n)
	}
	if sc.Plan.Code {
		return sc.enteredUses(node)
	}
	return 0
}

// hasBegun reports whether an attempt has begun in this state.
func (s viewState) hasBegun(a Address) bool {
	p := s.phaseOf(a.Scope)
	if p != phaseActive {
		return p == phaseOver
	}
	if v := s.scopes[a.Scope].Entered(a.Node); v != a.Visit {
		return v > a.Visit
	}
	st := s.activeStep(a)
	return st == nil || a.Unit < len(st.Units) && int(st.Units[a.Unit].Attempt) >= a.Attempt
}

// ScopeWalk finds the final state of a scope. It is a Walker.
type ScopeWalk struct {
	State *State
	Scope *Scope // nil if the scope has not begun

	path string
}

// NewScopeWalk returns a ScopeWalk for the scope with a path.
func NewScopeWalk(path string) *ScopeWalk { return &ScopeWalk{path: path} }

// From starts or continues with a state.
func (w *ScopeWalk) From(s *State) {
	w.State = s
	if sc := s.scopes[w.path]; sc != nil {
		w.Scope = sc
	}
}

// Apply applies an event.
func (w *ScopeWalk) Apply(e *Event, _ Place) {
	Evolve(w.State, e)
	if e.Type == StepEntered {
		w.From(w.State)
	}
}

// Idle reports whether the scope is not over in the later state.
func (w *ScopeWalk) Idle(later *State) bool { return later.viewPart().phaseOf(w.path) != phaseOver }

// Done reports whether the scope is over.
func (w *ScopeWalk) Done() bool { return w.Scope != nil && w.State.scopes[w.path] == nil }

// Has reports whether a scope has the node.
func (sc *Scope) Has(node string) bool { return sc.Plan.Nodes[node] != nil }

// Busy returns false, because the walker only waits for the end of its scope.
func (w *ScopeWalk) Busy() bool { return false }

// ScopeOf returns the scope of the plan with a path, or nil if there is none.
func (p *Plan) ScopeOf(path string) *PlanScope {
	at, ok := ParentOf(path)
	switch {
	case path == "":
		return p.Root
	case !ok:
		return p.Closing
	}
	g := p.ScopeOf(at.Scope)
	if g == nil || g.Nodes[at.Node] == nil {
		return nil
	}
	return g.Nodes[at.Node].Sub
}
