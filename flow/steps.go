package flow

import (
	"cmp"
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
	Details  json.RawMessage // of the error
	Output   json.RawMessage
	For      string   // the node it was made for when the flow was compiled
	Held     bool     // somebody does not want it to begin
	WaitsFor []string // the first of the nodes that have to end before it
	Waits    int      // how many there are
	Wait     *Wait    // what it waits for while it is active
	Units    UnitCount

	StartedAt, EndedAt, Due int64
}

// UnitCount counts the pieces of a step.
type UnitCount struct{ Total, Initial, Flying, Retrying, Done, Failed int }

// viewOf an active step.
func (s *State) viewOf(st *Step) StepView {
	v := StepView{Address: st.Address(), Node: st.Node, Status: StepStarted, StartedAt: st.EnteredAt, Due: st.Due, Units: st.unitCounts(), For: st.scope.madeFor(st.Node)}
	if at := s.overAt(st.scope); at != 0 {
		v.markWithdrawn(at)
		return v
	}
	if waits := st.describeWaits(); len(waits) > 0 {
		v.Wait = &waits[0]
	}
	return v
}

// NodeView is a node of the root of a task in dag mode, by its index.
func (s *State) NodeView(index int) StepView { return s.viewOfNode(s.Root, index) }

func (s *State) viewOfNode(sc *Scope, i int) StepView {
	n, node := &sc.Nodes[i], sc.Plan.Dag.List[i]
	if n.Step != nil {
		return s.viewOf(n.Step)
	}
	rare := n.Rare()
	v := StepView{Address: Address{Scope: sc.Path, Node: node.Key, Visit: int(n.Visit)}, Node: node, Status: n.Status(), Reason: rare.Reason, Mode: rare.Mode,
		Error: rare.Error, Details: rare.Details, Output: n.Output, Held: n.Held && n.Status() == "", For: sc.madeFor(node), StartedAt: n.StartedAt, EndedAt: n.EndedAt,
		Units: n.unitCounts()}
	switch v.Status {
	case "":
		v.Status = StepCreated
		v.WaitsFor, v.Waits = sc.waitsFor(node)
	case StepStarted:
		v.markWithdrawn(n.EndedAt)
	}
	return v
}

// waitsFor are the nodes that a node waits for; of many the first are named.
func (sc *Scope) waitsFor(n *PlanNode) (names []string, all int) {
	for _, i := range n.Dag.Deps {
		if sc.Nodes[i].Ended() {
			continue
		}
		if all++; all <= maxNamedWaits {
			names = append(names, sc.Plan.Dag.List[i].Key)
		}
	}
	return names, all
}

// madeFor is the node that another one was made for.
func (sc *Scope) madeFor(n *PlanNode) string {
	if n.Dag == nil || n.Dag.For < 0 {
		return ""
	}
	return sc.Plan.Dag.List[n.Dag.For].Key
}

func (st *Step) unitCounts() UnitCount {
	return UnitCount{Total: len(st.Units), Initial: st.Initial, Flying: st.Flying, Retrying: len(st.Retrying), Done: st.Done, Failed: st.Failures}
}

// StepCounts counts the steps of the task's root by their status; nil in graph mode.
func (s *State) StepCounts() map[StepStatus]int {
	if s.Root == nil || s.Root.Plan.Mode() != ModeDag {
		return nil
	}
	counts := map[StepStatus]int{}
	for i := range s.Root.Nodes {
		n := &s.Root.Nodes[i]
		status := StepStatus(cmp.Or(string(n.Status()), string(StepCreated)))
		if s.isWithdrawn(n) {
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
	_, u := s.findAttempt(a)
	if u == nil || s.Status.Ended() {
		return nil
	}
	return u.Live
}

// ClosingScope is the path of the scope in which the task closes, or has closed the last time; ""
// when it has not.
func (s *State) ClosingScope() string {
	if s.Closing == nil {
		return ""
	}
	return s.Closing.Scope.Path
}

// overAt is when a scope was over with all that was active in it; 0 when it is not.
func (s *State) overAt(sc *Scope) int64 {
	if sc.overAt == 0 && s.Status.Ended() {
		return s.EndedAt
	}
	return sc.overAt
}

// markWithdrawn makes the view of a step that had begun that of a step which came to nothing.
func (v *StepView) markWithdrawn(at int64) {
	v.Status, v.Reason, v.EndedAt, v.Wait, v.Due = StepSkipped, ReasonWithdrawn, at, nil, 0
	v.Units.Flying, v.Units.Retrying = 0, 0
}

// isWithdrawn reports whether a node has begun and will not end.
func (s *State) isWithdrawn(n *NodeState) bool {
	return n.Status() == StepStarted && (n.Step == nil || s.Status.Ended())
}
