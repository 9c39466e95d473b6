package flow

import "slices"

// StepQuery selects steps of a scope.
type StepQuery struct {
	Scope  string
	Node   string       // only steps of this node; "" for all
	States []StepStatus // only steps in one of these states; none for all
	After  Place        // end of the previous page
	Most   int          // maximum number of steps
	Bytes  int          // maximum bytes of their outputs, with at least one step
}

func (q *StepQuery) matchesStatus(status StepStatus) bool {
	return len(q.States) == 0 || slices.Contains(q.States, status)
}

// StepPage is a page of the steps of a scope. The steps of a dag come from the state, in the order
// of the definition. Ended steps of a graph are not in the state, so they come from the journal, in
// the order of their start. A page of the root ends with the steps of the closing scopes.
type StepPage struct {
	State *State
	Steps []StepView
	More  bool // there may be more steps after Next
	Next  Place

	query      StepQuery
	closing    bool  // only steps of the closing scopes
	last       Place // place of the last step so far
	size       int
	eventsRead int
	full       bool
	active     map[Address]int
}

// dagPlace returns the place of a node of a dag. It is before all places in the journal, because
// the journal begins with row 1.
func dagPlace(index int) Place { return Place{Index: index + 1} }

// NodePage returns a page of a dag's nodes. Steps from the journal, if there are any, follow after
// the nodes.
func NodePage(s *State, sc *Scope, q StepQuery) *StepPage {
	p := &StepPage{State: s, query: q}
	if q.After.Seq > 0 {
		return p
	}
	for i := q.After.Index; i < len(sc.Nodes) && !p.full; i++ {
		if q.Node != "" && sc.Plan.Dag.List[i].Key != q.Node {
			continue
		}
		if v := s.viewPart().viewOfNode(sc, i); q.matchesStatus(v.Status) {
			p.addStep(v, dagPlace(i))
		}
	}
	return p
}

// NewStepPage returns a Walker for the steps of a graph, or for those of the closing scopes alone.
func NewStepPage(q StepQuery, closing bool) *StepPage {
	return &StepPage{query: q, closing: closing, active: map[Address]int{}}
}

// addStep adds a step to the page. If the page is full, it ends before that step.
func (p *StepPage) addStep(v StepView, at Place) {
	if len(p.Steps) == p.query.Most || p.size > p.query.Bytes {
		p.endAt(p.last)
		return
	}
	p.Steps, p.last = append(p.Steps, v), at
	p.size += len(v.Output) + len(v.Details)
}

func (p *StepPage) endAt(next Place) { p.full, p.More, p.Next = true, true, next }

// From starts or continues with a state.
func (p *StepPage) From(s *State) { p.State = s }

// Apply applies an event.
func (p *StepPage) Apply(e *Event, at Place) {
	if at.Compare(p.query.After) > 0 && !p.full {
		if p.eventsRead++; p.eventsRead > maxEventsRead && len(p.active) == 0 {
			p.endAt(at.beforeEvent())
		}
	}
	st := p.State.activeStep(e.stepAddress())
	if mayCutSteps(e) {
		p.updateCounts()
	}
	Evolve(p.State, e)
	switch {
	case e.Type == StepEntered && p.coversScope(e.Scope):
		p.applyEntered(e, at)
	case e.Type == StepEnded && st != nil:
		p.applyEnded(st, e)
	case e.Type == WaitStarted && p.coversScope(e.Scope) && CodeKind(e.Action) != CodeRetry:
		p.applyEntered(e, at)
	case e.Type == StepRecorded && p.coversScope(e.Scope) && CodeKind(e.Action) != CodeRetry:
		p.applyRecorded(e, at)
	}
	if mayCutSteps(e) {
		p.endCutSteps(e)
	}
}

// mayCutSteps reports whether an event may interrupt steps other than its own.
func mayCutSteps(e *Event) bool {
	switch e.Type {
	case StepEnded, ScopeRetried, TaskClosing, TaskRetried, TaskEnded:
		return true
	case StepRecorded:
		return CodeKind(e.Action) == CodeRace
	}
	return false
}

// updateCounts stores the unit counts of the active steps, because interrupted steps may disappear
// from the state.
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
	p.addStep(p.State.viewPart().viewOf(st), at)
	if !p.full {
		p.active[st.Address()] = n
	}
}

// applyRecorded adds a recorded step of a function, or ends its wait.
func (p *StepPage) applyRecorded(e *Event, at Place) {
	if i, waits := p.active[e.stepAddress()]; waits {
		delete(p.active, e.stepAddress())
		p.Steps[i] = recordedView(e)
		p.size += len(e.Output)
		p.dropUnwanted(i)
		return
	}
	if p.full || at.Compare(p.query.After) <= 0 || p.query.Node != "" && e.Node != p.query.Node {
		return
	}
	if v := recordedView(e); p.query.matchesStatus(v.Status) {
		p.addStep(v, at)
	}
}

func (p *StepPage) applyEnded(st *Step, e *Event) {
	i, ok := p.active[e.stepAddress()]
	if !ok {
		return
	}
	delete(p.active, e.stepAddress())
	v := &p.Steps[i]
	v.Status, v.Action, v.Error, v.Reason, v.EndedAt, v.Units, v.Due, v.Wait = StepStatus(e.Status),
		e.Action, e.Error, e.Reason, e.At, st.unitCounts(), 0, nil
	v.Details = st.errorDetails()
	p.size += len(v.Details)
	if v.Status == StepCompleted {
		v.Output = st.stepResult(e)
		p.size += len(v.Output)
	}
	p.dropUnwanted(i)
}

// dropUnwanted removes a step whose status no longer matches the query. Active waits of a function
// may follow the step, so their indexes are adjusted.
func (p *StepPage) dropUnwanted(i int) {
	if p.query.matchesStatus(p.Steps[i].Status) {
		return
	}
	p.Steps = slices.Delete(p.Steps, i, i+1)
	for a, at := range p.active {
		if at > i {
			p.active[a] = at - 1
		}
	}
}

// endCutSteps ends the steps that were interrupted together with their scope or the task.
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

// Busy returns false, because many steps may belong to other scopes.
func (p *StepPage) Busy() bool { return false }

// Idle reports whether no step of the page begins or ends before the later state.
func (p *StepPage) Idle(later *State) bool {
	for a := range p.active {
		if later.activeStep(a) == nil || later.Status.Ended() {
			return false
		}
	}
	return p.full || p.State.viewPart().progressOf(p.query.Scope) == later.viewPart().progressOf(p.query.Scope)
}

// Done reports whether the page has all its steps and all of them have ended.
func (p *StepPage) Done() bool {
	return len(p.active) == 0 && (p.full || p.State.Root != nil && p.State.viewPart().phaseOf(p.query.Scope) == phaseOver)
}

// Known reports whether the task has or had the scope.
func (p *StepPage) Known() bool {
	closed := len(p.query.Scope) > 0 && p.query.Scope[:1] == closingScope && p.State.Closings > 0
	return closed || len(p.Steps) > 0 || p.query.Scope == "" || p.State.viewPart().phaseOf(p.query.Scope) != phaseAhead
}

// Size returns the number of bytes of outputs on the page.
func (p *StepPage) Size() int { return p.size }

// GoOnBehind ends the page at the last node of its dag, and marks that more steps follow.
func (p *StepPage) GoOnBehind(sc *Scope) { p.endAt(dagPlace(len(sc.Nodes) - 1)) }

// Finish updates the steps that are still active at the end of the journal to their current state.
func (p *StepPage) Finish() {
	for a, i := range p.active {
		if st := p.State.activeStep(a); st != nil {
			p.Steps[i] = p.State.viewPart().viewOf(st)
		}
		p.dropUnwanted(i)
	}
}

// scopeProgress describes the progress of a scope. While it is equal, no step has begun in the
// scope.
type scopeProgress struct {
	phase            scopePhase
	visits           int
	recorded         int // recorded steps of a function since its start or last restart
	waits            int // active waits of a function, which only grow while it records nothing
	closings, closed int
}

func (s viewState) progressOf(scope string) scopeProgress {
	at := scopeProgress{phase: s.phaseOf(scope), closings: s.Closings}
	for _, n := range s.scopes[scope].visitCounts() {
		at.visits += n
	}
	if sc := s.scopes[scope]; sc != nil && sc.Function != nil {
		at.recorded = len(sc.Function.Steps)
		at.waits = len(sc.Function.Waits)
	}
	if s.Closing != nil {
		for _, n := range s.Closing.Scope.Visits {
			at.closed += n
		}
	}
	return at
}

// visitCounts returns how often each node of a graph was entered.
func (sc *Scope) visitCounts() map[string]int {
	if sc == nil {
		return nil
	}
	return sc.Visits
}
