package flow

import (
	"maps"
	"slices"
)

// NodeDigest is the progress of a node: its newest visit, without values. It is comparable, so that
// followers of a task can detect changes.
type NodeDigest struct {
	Status StepStatus
	Reason string
	Error  string // beginning of the error text
	Held   bool   // a user holds the step, so it does not begin
	Visit  int    // 0 if it has not begun
	Units  UnitCount

	StartedAt, EndedAt int64
}

// Order returns the nodes of a scope in display order. For a dag that is the order of the
// definition. For a graph it is the order in which nodes are reached from the start, then the
// unreachable nodes.
func (g *PlanScope) Order() []*PlanNode {
	if g.Mode() == ModeDag {
		return g.Dag.List
	}
	order := make([]*PlanNode, 0, len(g.Nodes))
	seen := make(map[string]bool, len(g.Nodes))
	visit := func(key string) {
		if n := g.Nodes[key]; n != nil && !seen[key] {
			seen[key] = true
			order = append(order, n)
		}
	}
	visit(g.Start)
	for i := 0; i < len(order); i++ {
		for _, action := range slices.Sorted(maps.Keys(order[i].Edges)) {
			visit(order[i].Edges[action])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.Nodes)) {
		visit(key)
	}
	return order
}

// Digest returns the progress of the nodes of a scope, in the given order. The cost depends on the
// size of the plan alone, not on the age of the task or the number of units.
func (s *State) Digest(sc *Scope, order []*PlanNode) []NodeDigest {
	list := make([]NodeDigest, len(order))
	for i, n := range order {
		list[i] = s.viewPart().digestOf(sc, n)
	}
	return list
}

func (s viewState) digestOf(sc *Scope, n *PlanNode) NodeDigest {
	if st := sc.mode.activeStep(sc, n.Key); st != nil {
		return s.digestOfStep(st)
	}
	if sc.Plan.Mode() == ModeDag {
		return s.digestOfNode(sc.nodeState(n))
	}
	if p, over := sc.Past[n.Key]; over {
		return p.toDigest(sc.Visits[n.Key])
	}
	return NodeDigest{Status: StepCreated, Visit: sc.Visits[n.Key]}
}

// digestOfStep returns the digest of an active step, or of a step that was active when its task or
// scope ended.
func (s viewState) digestOfStep(st *Step) NodeDigest {
	d := NodeDigest{Status: StepStarted, Visit: st.Visit, StartedAt: st.EnteredAt, Units: st.unitCounts()}
	if at := s.overAt(st.scope); at != 0 {
		d.Status, d.Reason, d.EndedAt = StepSkipped, ReasonWithdrawn, at
		d.Units.Flying, d.Units.Retrying = 0, 0
	}
	return d
}

func (s viewState) digestOfNode(n *NodeState) NodeDigest {
	rare := n.Rare()
	d := NodeDigest{Status: n.Status(), Reason: rare.Reason,
		Error: truncateText(rare.Error, maxPastText), Held: n.Held && n.Status() == "", Visit: int(n.Visit),
		StartedAt: n.StartedAt, EndedAt: n.EndedAt, Units: n.unitCounts()}
	switch {
	case n.Status() == "":
		d.Status = StepCreated
	case s.isWithdrawn(n):
		d.Status, d.Reason = StepSkipped, ReasonWithdrawn
	}
	return d
}
