package flow

import (
	"maps"
	"slices"
)

// NodeDigest is how far a node is: its newest visit, without values. It is comparable, so that who
// follows a task can tell what has changed.
type NodeDigest struct {
	Status StepStatus
	Reason string
	Error  string // its beginning
	Held   bool   // somebody does not want it to begin
	Visit  int    // 0 = it has not begun
	Units  UnitCount

	StartedAt, EndedAt int64
}

// Order is the order in which a scope's nodes are told: of a dag that of its definition, of a graph
// that in which they are reached from the start, and behind them those that cannot be.
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

// Digest tells how far the nodes of a scope are, in the order that its plan has them. It costs what
// the plan costs, however long the task has run and however many units its steps have.
func (s *State) Digest(sc *Scope, order []*PlanNode) []NodeDigest {
	list := make([]NodeDigest, len(order))
	for i, n := range order {
		list[i] = s.digestOf(sc, n)
	}
	return list
}

func (s *State) digestOf(sc *Scope, n *PlanNode) NodeDigest {
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

// digestOfStep is that of a step under way, or of one that was when its task or scope was over.
func (s *State) digestOfStep(st *Step) NodeDigest {
	d := NodeDigest{Status: StepStarted, Visit: st.Visit, StartedAt: st.EnteredAt, Units: st.unitCounts()}
	if at := s.overAt(st.scope); at != 0 {
		d.Status, d.Reason, d.EndedAt = StepSkipped, ReasonWithdrawn, at
		d.Units.Flying, d.Units.Retrying = 0, 0
	}
	return d
}

func (s *State) digestOfNode(n *NodeState) NodeDigest {
	rare := n.Rare()
	d := NodeDigest{Status: n.Status(), Reason: rare.Reason, Error: truncateText(rare.Error, maxPastText), Held: n.Held && n.Status() == "", Visit: int(n.Visit),
		StartedAt: n.StartedAt, EndedAt: n.EndedAt, Units: n.unitCounts()}
	switch {
	case n.Status() == "":
		d.Status = StepCreated
	case s.isWithdrawn(n):
		d.Status, d.Reason = StepSkipped, ReasonWithdrawn
	}
	return d
}
