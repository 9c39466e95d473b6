package flow

import (
	"encoding/json"
	"slices"
)

// StepView is a step as people read it: one that is active, one that is over, or a node of dag mode
// whose turn has not come.
type StepView struct {
	Address
	Node     *PlanNode
	Status   StepStatus
	Reason   string
	Mode     SkipMode
	Action   string
	Error    string
	Output   json.RawMessage
	For      string   // the node it was made for by Compile
	WaitsFor []string // the first of the nodes that have to end before it
	Waits    int      // how many there are
	Wait     *Wait    // what it waits for while it is active
	Units    UnitCount

	StartedAt, EndedAt, Due int64
}

// UnitCount counts the pieces of a step.
type UnitCount struct{ Total, Initial, Flying, Retrying, Done, Failed int }

// StepList tells the steps of a scope. Those of a graph, which leave no trace in the state, it gathers
// from the journal, in the order in which they began; those of a dag are in the order of the
// definition. With the root come those of the scopes in which the task closed.
type StepList struct {
	State *State
	Known bool // the task has, or had, that scope

	scope string
	dag   *Scope
	begun []StepView
	at    map[Address]int // the active ones in begun
}

// NewStepList begins before a task's first event.
func NewStepList(task string, plan *Plan, scope string) *StepList {
	return &StepList{State: NewState(task, plan), scope: scope, at: map[Address]int{}}
}

// StepsInState makes the list of a state alone. ok is false when the journal is needed for it.
func StepsInState(s *State, scope string) (l *StepList, ok bool) {
	sc := s.Scope(scope)
	if sc == nil || sc.Graph.Dag == nil || scope == "" && s.Closings > 0 {
		return nil, false
	}
	return &StepList{State: s, Known: true, scope: scope, dag: sc}, true
}

// Apply adds an event of the journal.
func (l *StepList) Apply(e *Event) {
	st := l.State.step(e.stepAddress())
	Evolve(l.State, e)
	if sc := l.State.Scope(l.scope); sc != nil {
		l.Known = true
		if sc.Graph.Dag != nil {
			l.dag = sc
		}
	}
	switch {
	case !l.covers(e.Scope):
	case e.Type == StepEntered:
		if st := l.State.step(e.stepAddress()); st != nil && st.scope != l.dag {
			l.at[st.Address()] = len(l.begun)
			l.begun = append(l.begun, l.State.viewOf(st))
		}
	case e.Type == StepEnded && st != nil && st.scope != l.dag:
		l.end(st, e)
	}
	if e.Type == StepEnded || e.Type == TaskClosing || e.Type == TaskRetried || e.Type == ScopeRetried {
		l.cut(e.At)
	}
}

// cut ends those that were dropped with what they were in.
func (l *StepList) cut(at int64) {
	for a, i := range l.at {
		if l.State.step(a) == nil {
			l.begun[i].withdrawn(at)
			delete(l.at, a)
		}
	}
}

func (l *StepList) covers(scope string) bool {
	return scope == l.scope || l.scope == "" && len(scope) > 0 && scope[:1] == closingScope
}

func (l *StepList) end(st *Step, e *Event) {
	i, ok := l.at[e.stepAddress()]
	if !ok {
		return
	}
	v := &l.begun[i]
	v.Status, v.Action, v.Error, v.Reason, v.EndedAt, v.Units, v.Due = StepStatus(e.Status), e.Action, e.Error, e.Reason, e.At, st.count(), 0
	if v.Status == StepCompleted {
		v.Output = st.result(e)
	}
	delete(l.at, e.stepAddress())
}

// Len is how many steps there are.
func (l *StepList) Len() int {
	if l.dag == nil {
		return len(l.begun)
	}
	return len(l.dag.Nodes) + len(l.begun)
}

// At is one of them.
func (l *StepList) At(i int) StepView {
	if l.dag != nil && i < len(l.dag.Nodes) {
		return l.State.viewOfNode(l.dag, i)
	}
	if l.dag != nil {
		i -= len(l.dag.Nodes)
	}
	v := l.begun[i]
	if st := l.State.step(v.Address); v.EndedAt == 0 && st != nil {
		return l.State.viewOf(st)
	}
	return v
}

// viewOf an active step.
func (s *State) viewOf(st *Step) StepView {
	v := StepView{Address: st.Address(), Node: st.Node, Status: StepStarted, StartedAt: st.EnteredAt, Due: st.Due, Units: st.count(), For: st.scope.madeFor(st.Node)}
	if at := s.overAt(st.scope); at != 0 {
		v.withdrawn(at)
		return v
	}
	if waits := st.waits(); len(waits) > 0 {
		v.Wait = &waits[0]
	}
	return v
}

// NodeView is a node of the root of a task in dag mode, by its index.
func (s *State) NodeView(index int) StepView { return s.viewOfNode(s.Root, index) }

func (s *State) viewOfNode(sc *Scope, i int) StepView {
	n, node := &sc.Nodes[i], sc.Graph.Dag.List[i]
	if n.Step != nil {
		return s.viewOf(n.Step)
	}
	v := StepView{Address: Address{Scope: sc.Path, Node: node.Key, Visit: n.Visit}, Node: node, Status: n.Status, Reason: n.Reason, Mode: n.Mode,
		Error: n.Error, Output: n.Output, For: sc.madeFor(node), StartedAt: n.StartedAt, EndedAt: n.EndedAt,
		Units: UnitCount{Total: n.Total, Initial: n.Initial, Done: n.Total - n.Left + n.Failures, Failed: n.Failures}}
	switch v.Status {
	case "":
		v.Status = StepCreated
		v.WaitsFor, v.Waits = sc.waitsFor(node)
	case StepStarted:
		v.withdrawn(n.EndedAt)
	}
	return v
}

// waitsFor are the nodes that a node waits for; of many the first are named.
func (sc *Scope) waitsFor(n *PlanNode) (names []string, all int) {
	for _, i := range n.Dag.Deps {
		if sc.Nodes[i].Ended() {
			continue
		}
		if all++; all <= namedWaits {
			names = append(names, sc.Graph.Dag.List[i].Key)
		}
	}
	return names, all
}

// madeFor is the node that Compile made a node for.
func (sc *Scope) madeFor(n *PlanNode) string {
	if n.Dag == nil || n.Dag.For < 0 {
		return ""
	}
	return sc.Graph.Dag.List[n.Dag.For].Key
}

func (st *Step) count() UnitCount {
	return UnitCount{Total: len(st.Units), Initial: st.Initial, Flying: st.Flying, Retrying: len(st.Retrying), Done: st.Done, Failed: st.Failures}
}

// StepCounts counts the steps of the task's root by their status; nil in graph mode.
func (s *State) StepCounts() map[StepStatus]int {
	if s.Root == nil || s.Root.Graph.Dag == nil {
		return nil
	}
	counts := map[StepStatus]int{}
	for i := range s.Root.Nodes {
		n := &s.Root.Nodes[i]
		status := StepStatus(orText(string(n.Status), string(StepCreated)))
		if s.withdrawn(n) {
			status = StepSkipped
		}
		counts[status]++
	}
	return counts
}

// AllActive are the steps under way in every scope, the outer ones first, but no more than a bound.
func (s *State) AllActive(most int) (list []StepView) {
	below := s.Active()
	for len(below) > 0 && len(list) < most {
		st := below[0]
		list, below = append(list, s.viewOf(st)), below[1:]
		if st.Child != nil {
			below = slices.Concat(st.Child.Active(), below)
		}
	}
	return list
}

// Live is what is known about an attempt in flight; nil when it is over.
func (s *State) Live(a Address) *Live {
	_, u := s.attempt(a)
	if u == nil || s.Status.Ended() {
		return nil
	}
	return u.Live
}
