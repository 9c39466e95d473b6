package flow

import (
	"cmp"
	"encoding/json"
	"slices"
)

// StepView is a step in the form for users: an active step, an ended one, or a node in dag mode
// that has not begun.
type StepView struct {
	Address
	Node     *PlanNode
	Status   StepStatus
	Reason   string
	Mode     SkipMode
	Action   string
	Error    string
	Details  json.RawMessage // details of the error
	Output   json.RawMessage
	For      string   // node for which the compiler generated this node
	Held     bool     // a user holds the node, so it does not begin
	WaitsFor []string // first nodes that must end before it
	Waits    int      // number of nodes that must end before it
	Wait     *Wait    // what the step waits for while it is active
	Units    UnitCount

	StartedAt, EndedAt, Due int64
}

// UnitCount counts the units of a step.
type UnitCount struct{ Total, Initial, Flying, Retrying, Done, Failed int }

// viewOf returns the view of an active step.
func (s viewState) viewOf(st *Step) StepView {
	v := StepView{Address: st.Address(), Node: st.Node, Status: StepStarted,
		StartedAt: st.EnteredAt, Due: st.Due, Units: st.unitCounts(), For: st.scope.madeFor(st.Node)}
	if at := s.overAt(st.scope); at != 0 {
		v.markWithdrawn(at)
		return v
	}
	if waits := st.describeWaits(); len(waits) > 0 {
		v.Wait = &waits[0]
	}
	return v
}

// NodeView returns a node of the root of a task in dag mode by index.
func (s *State) NodeView(index int) StepView { return s.viewPart().viewOfNode(s.Root, index) }

func (s viewState) viewOfNode(sc *Scope, i int) StepView {
	n, node := &sc.Nodes[i], sc.Plan.Dag.List[i]
	if n.Step != nil {
		return s.viewOf(n.Step)
	}
	rare := n.Rare()
	v := StepView{Address: Address{Scope: sc.Path, Node: node.Key, Visit: int(n.Visit)}, Node: node,
		Status: n.Status(), Reason: rare.Reason, Mode: rare.Mode,
		Error: rare.Error, Details: rare.Details, Output: n.Output,
		Held: n.Held && n.Status() == "", For: sc.madeFor(node), StartedAt: n.StartedAt, EndedAt: n.EndedAt,
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

// waitsFor returns the first nodes that a node waits for, and the number of all such nodes.
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

// madeFor returns the node for which the compiler generated n, or "" if none.
func (sc *Scope) madeFor(n *PlanNode) string {
	if n.Dag == nil || n.Dag.For < 0 {
		return ""
	}
	return sc.Plan.Dag.List[n.Dag.For].Key
}

func (st *Step) unitCounts() UnitCount {
	return UnitCount{Total: len(st.Units), Initial: st.Initial, Flying: st.Flying,
		Retrying: len(st.Retrying), Done: st.Done, Failed: st.Failures}
}

// StepCounts returns the number of steps of the root for each status; nil in graph mode.
func (s *State) StepCounts() map[StepStatus]int {
	if s.Root == nil || s.Root.Plan.Mode() != ModeDag {
		return nil
	}
	counts := map[StepStatus]int{}
	for i := range s.Root.Nodes {
		n := &s.Root.Nodes[i]
		status := StepStatus(cmp.Or(string(n.Status()), string(StepCreated)))
		if s.viewPart().isWithdrawn(n) {
			status = StepSkipped
		}
		counts[status]++
	}
	return counts
}

// AllActive returns the active steps of all scopes, the outer ones first, up to a limit.
func (s *State) AllActive(most int) (list []StepView) {
	below := s.Active()
	for len(below) > 0 && len(list) < most {
		st := below[0]
		list, below = append(list, s.viewPart().viewOf(st)), below[1:]
		if st.Child != nil {
			below = slices.Concat(st.Child.Active(), below)
		}
	}
	return list
}

// Live returns the state of an attempt in flight, or nil if it is over.
func (s *State) Live(a Address) *Live {
	_, u := s.findAttempt(a)
	if u == nil || s.Status.Ended() {
		return nil
	}
	return u.Live
}

// ClosingScope returns the path of the last closing scope, or "" if the task has not closed.
func (s *State) ClosingScope() string {
	if s.Closing == nil {
		return ""
	}
	return s.Closing.Scope.Path
}

// overAt returns when a scope ended with all its active steps, or 0 if it has not ended.
func (s viewState) overAt(sc *Scope) int64 {
	if sc.overAt == 0 && s.Status.Ended() {
		return s.EndedAt
	}
	return sc.overAt
}

// markWithdrawn marks a step that had begun as withdrawn.
func (v *StepView) markWithdrawn(at int64) {
	v.Status, v.Reason, v.EndedAt, v.Wait, v.Due = StepSkipped, ReasonWithdrawn, at, nil, 0
	v.Units.Flying, v.Units.Retrying = 0, 0
}

// isWithdrawn reports whether a node has begun but its task or scope ended before it.
func (s viewState) isWithdrawn(n *NodeState) bool {
	return n.Status() == StepStarted && (n.Step == nil || s.Status.Ended())
}
