package flow

import "slices"

// StepQuery says which steps of a scope are meant.
type StepQuery struct {
	Scope  string
	Node   string       // only those of this node; "" = all
	States []StepStatus // only those in one of these; none = all
	After  Place        // the page before ended there
	Most   int          // steps of a page
	Bytes  int          // of their outputs; there is one step at least
}

func (q *StepQuery) matchesStatus(status StepStatus) bool {
	return len(q.States) == 0 || slices.Contains(q.States, status)
}

// StepPage is a part of the steps of a scope. Those of a dag are in the order of its definition and
// are told by a state. Those of a graph leave no trace in the state: they are gathered from the
// journal, in the order in which they began. With the root come, behind its own, those of the
// scopes in which the task closed.
type StepPage struct {
	State *State
	Steps []StepView
	More  bool // there may be others behind Next
	Next  Place

	query      StepQuery
	closing    bool  // only those of the closing scopes
	last       Place // of the steps so far
	size       int
	eventsRead int
	full       bool
	active     map[Address]int
}

// dagPlace is that of a node of a dag: before everything in the journal, which begins with row 1.
func dagPlace(index int) Place { return Place{Index: index + 1} }

// NodePage is the page of a dag's nodes. The steps of its journal, if it has any, are behind it.
func NodePage(s *State, sc *Scope, q StepQuery) *StepPage {
	p := &StepPage{State: s, query: q}
	if q.After.Seq > 0 {
		return p
	}
	for i := q.After.Index; i < len(sc.Nodes) && !p.full; i++ {
		if q.Node != "" && sc.Plan.Dag.List[i].Key != q.Node {
			continue
		}
		if v := s.viewOfNode(sc, i); q.matchesStatus(v.Status) {
			p.addStep(v, dagPlace(i))
		}
	}
	return p
}

// NewStepPage is a Walker for the steps of a graph, or for those of the closing scopes alone.
func NewStepPage(q StepQuery, closing bool) *StepPage {
	return &StepPage{query: q, closing: closing, active: map[Address]int{}}
}

// addStep adds a step, or ends the page before it.
func (p *StepPage) addStep(v StepView, at Place) {
	if len(p.Steps) == p.query.Most || p.size > p.query.Bytes {
		p.endAt(p.last)
		return
	}
	p.Steps, p.last = append(p.Steps, v), at
	p.size += len(v.Output) + len(v.Details)
}

func (p *StepPage) endAt(next Place) { p.full, p.More, p.Next = true, true, next }

// From begins, or goes on, with a state.
func (p *StepPage) From(s *State) { p.State = s }

// Apply adds an event.
func (p *StepPage) Apply(e *Event, at Place) {
	if at.Compare(p.query.After) > 0 && !p.full {
		if p.eventsRead++; p.eventsRead > maxEventsRead && len(p.active) == 0 {
			p.endAt(at.beforeEvent())
		}
	}
	st := p.State.activeStep(e.stepAddress())
	if mayCutSteps(e.Type) {
		p.updateCounts()
	}
	Evolve(p.State, e)
	switch {
	case e.Type == StepEntered && p.coversScope(e.Scope):
		p.applyEntered(e, at)
	case e.Type == StepEnded && st != nil:
		p.applyEnded(st, e)
	}
	if mayCutSteps(e.Type) {
		p.endCutSteps(e)
	}
}

// mayCutSteps reports whether such an event may cut steps short that it does not name.
func mayCutSteps(t EventType) bool {
	switch t {
	case StepEnded, ScopeRetried, TaskClosing, TaskRetried, TaskEnded:
		return true
	}
	return false
}

// updateCounts notes how far the active steps are: those that are cut short may leave no trace in
// the state.
func (p *StepPage) updateCounts() {
	for a, i := range p.active {
		if st := p.State.activeStep(a); st != nil {
			p.Steps[i].Units = st.unitCounts()
		}
	}
}

func (p *StepPage) coversScope(scope string) bool {
	if p.query.Scope == "" && len(scope) > 0 && scope[:1] == closingScope {
		return true
	}
	return scope == p.query.Scope && !p.closing
}

func (p *StepPage) applyEntered(e *Event, at Place) {
	st := p.State.activeStep(e.stepAddress())
	if st == nil || p.full || at.Compare(p.query.After) <= 0 || p.query.Node != "" && e.Node != p.query.Node {
		return
	}
	n := len(p.Steps)
	p.addStep(p.State.viewOf(st), at)
	if !p.full {
		p.active[st.Address()] = n
	}
}

func (p *StepPage) applyEnded(st *Step, e *Event) {
	i, ok := p.active[e.stepAddress()]
	if !ok {
		return
	}
	delete(p.active, e.stepAddress())
	v := &p.Steps[i]
	v.Status, v.Action, v.Error, v.Reason, v.EndedAt, v.Units, v.Due, v.Wait = StepStatus(e.Status), e.Action, e.Error, e.Reason, e.At, st.unitCounts(), 0, nil
	v.Details = st.errorDetails()
	p.size += len(v.Details)
	if v.Status == StepCompleted {
		v.Output = st.stepResult(e)
		p.size += len(v.Output)
	}
	p.dropUnwanted(i)
}

// dropUnwanted drops a step again that has become what is not meant. It is the last one: the steps
// of a graph follow each other.
func (p *StepPage) dropUnwanted(i int) {
	if !p.query.matchesStatus(p.Steps[i].Status) {
		p.Steps = slices.Delete(p.Steps, i, i+1)
	}
}

// endCutSteps ends the steps that are cut short together with their scope, or the task.
func (p *StepPage) endCutSteps(e *Event) {
	for a, i := range p.active {
		if p.State.activeStep(a) != nil && !p.State.Status.Ended() {
			continue
		}
		delete(p.active, a)
		p.Steps[i].markWithdrawn(e.At)
		p.dropUnwanted(i)
	}
}

// Busy is false: many steps may be none of this scope.
func (p *StepPage) Busy() bool { return false }

// Idle says that no step begins that is wanted, and none of the page ends.
func (p *StepPage) Idle(later *State) bool {
	for a := range p.active {
		if later.activeStep(a) == nil || later.Status.Ended() {
			return false
		}
	}
	return p.full || p.State.progressOf(p.query.Scope) == later.progressOf(p.query.Scope)
}

// Done says that the steps of the page are all there and over.
func (p *StepPage) Done() bool {
	return len(p.active) == 0 && (p.full || p.State.Root != nil && p.State.phaseOf(p.query.Scope) == phaseOver)
}

// Known reports whether the task has, or had, the scope.
func (p *StepPage) Known() bool {
	closed := len(p.query.Scope) > 0 && p.query.Scope[:1] == closingScope && p.State.Closings > 0
	return closed || len(p.Steps) > 0 || p.query.Scope == "" || p.State.phaseOf(p.query.Scope) != phaseAhead
}

// Size is how many bytes of outputs the page has.
func (p *StepPage) Size() int { return p.size }

// GoOnBehind says that the page ends with the nodes of its dag, and others are behind them.
func (p *StepPage) GoOnBehind(sc *Scope) { p.endAt(dagPlace(len(sc.Nodes) - 1)) }

// Finish shows the steps that are still active as they are now, when the journal is at its end.
func (p *StepPage) Finish() {
	for a, i := range p.active {
		if st := p.State.activeStep(a); st != nil {
			p.Steps[i] = p.State.viewOf(st)
		}
		p.dropUnwanted(i)
	}
}

// scopeProgress says how far a scope is. As long as it is the same, no step has begun in it.
type scopeProgress struct {
	phase            scopePhase
	visits           int
	closings, closed int
}

func (s *State) progressOf(scope string) scopeProgress {
	at := scopeProgress{phase: s.phaseOf(scope), closings: s.Closings}
	for _, n := range s.scopes[scope].visitCounts() {
		at.visits += n
	}
	if s.Closing != nil {
		for _, n := range s.Closing.Scope.Visits {
			at.closed += n
		}
	}
	return at
}

// visitCounts is how often the nodes of a graph have been entered.
func (sc *Scope) visitCounts() map[string]int {
	if sc == nil {
		return nil
	}
	return sc.Visits
}
