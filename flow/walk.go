package flow

import (
	"cmp"
	"strconv"
	"strings"
)

// Place is where something is in a task's journal: in which row, at which of its events, and as
// which of the things that this event begins. The zero place is before everything.
type Place struct {
	Seq       int64
	Index     int // of the event in its row
	Beginning int // counted from 0
}

// Compare orders places.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Index, q.Index), cmp.Compare(p.Beginning, q.Beginning))
}

// beforeEvent is the place in front of all that an event begins.
func (p Place) beforeEvent() Place { return Place{p.Seq, p.Index, -1} }

// Walker looks for something in a journal. Whoever reads it may leave out parts that do not concern
// the walker, if there is a later state to go on from.
type Walker interface {
	// From has it go on from a state, which it may change.
	From(s *State)
	// Apply gives it the event that follows, which it does not keep.
	Apply(e *Event, at Place)
	// Busy says that whatever happens next concerns it.
	Busy() bool
	// Idle says that nothing of what happens until a later state concerns it. Of a walker that
	// looks for one thing it may be asked before From.
	Idle(later *State) bool
	// Done says that nothing does any more.
	Done() bool
}

// maxEventsRead is how many events a page is looked for in. When they are over, it is as long as it
// has become, and the next page goes on from there.
const maxEventsRead = 20_000

// scopePhase is how far a scope is.
type scopePhase uint8

const (
	phaseAhead scopePhase = iota // it has yet to begin
	phaseActive
	phaseOver
)

// phaseOf tells it of the scope with a path.
func (s *State) phaseOf(path string) scopePhase {
	if s.scopes[path] != nil {
		return phaseActive
	}
	at, ok := ParentOf(path)
	if !ok { // the root, or a scope in which the task closes
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

// closingPhase is that of a scope in which the task closes and which is not there: a retry has
// taken it away, or it has yet to begin.
func (s *State) closingPhase(path string) scopePhase {
	n, err := strconv.Atoi(strings.TrimPrefix(path, closingScope))
	if path == closingScope {
		n, err = 1, nil
	}
	if err == nil && n <= s.Closings {
		return phaseOver
	}
	return phaseAhead
}

// Entered is how often a node has been entered, or would have been.
func (sc *Scope) Entered(node string) int {
	if n := sc.Plan.Nodes[node]; n != nil {
		return sc.mode.visitCount(sc, n)
	}
	return 0
}

// hasBegun reports whether an attempt has begun by now.
func (s *State) hasBegun(a Address) bool {
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

// ScopeWalk finds a scope as it was when it was over. It is a Walker.
type ScopeWalk struct {
	State *State
	Scope *Scope // nil = it has not begun

	path string
}

// NewScopeWalk is for the scope with a path.
func NewScopeWalk(path string) *ScopeWalk { return &ScopeWalk{path: path} }

// From begins, or goes on, with a state.
func (w *ScopeWalk) From(s *State) {
	w.State = s
	if sc := s.scopes[w.path]; sc != nil {
		w.Scope = sc
	}
}

// Apply adds an event.
func (w *ScopeWalk) Apply(e *Event, _ Place) {
	Evolve(w.State, e)
	if e.Type == StepEntered {
		w.From(w.State)
	}
}

// Idle says that the scope is not over later, either.
func (w *ScopeWalk) Idle(later *State) bool { return later.phaseOf(w.path) != phaseOver }

// Done says that the scope is over.
func (w *ScopeWalk) Done() bool { return w.Scope != nil && w.State.scopes[w.path] == nil }

// Has reports whether a scope has a node.
func (sc *Scope) Has(node string) bool { return sc.Plan.Nodes[node] != nil }

// Busy is false: it waits for the end of its scope.
func (w *ScopeWalk) Busy() bool { return false }

// ScopeOf returns the scope with a path; nil if the plan has none.
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
