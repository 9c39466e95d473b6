package flow

import (
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/flow/codec"
)

// NodeDigest is the progress of a node: its newest visit, without values. It is comparable, so that
// followers of a task can detect changes.
type NodeDigest struct {
	Status StepStatus
	Reason string
	Error  string // beginning of the error text
	Held   bool   // a user holds the step, so it does not begin
	Visit  int    // 0 if no visit has begun
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

// Past summarizes the newest visit of a node in graph mode after its end. With it a reader can show
// the whole graph of a task without its history. A scope of dag mode has the same data in its
// nodes. A Past is small, because every step of every task leaves one.
type Past struct {
	StartedAt, EndedAt  int64
	Total, Done, Failed int32 // numbers of units
	Ended               PastState
	Why                 *PastWhy
}

// PastState is an index in pastStates.
type PastState byte

// PastWhy holds the fields that few visits need.
type PastWhy struct {
	Reason string
	Error  string // beginning of the error text; the journal has all of it
}

var pastStates = [...]StepStatus{StepCompleted, StepFailed, StepSkipped}

// maxPastText is the maximum number of bytes of an error kept in a Past.
const maxPastText = 200

// recordPast stores the summary of an ended visit.
func (sc *Scope) recordPast(st *Step, status StepStatus, reason, failed string, at int64) {
	if sc.Past == nil {
		sc.Past = map[string]Past{}
	}
	p := Past{StartedAt: st.EnteredAt, EndedAt: at, Total: int32(len(st.Units)), Done: int32(st.Done), Failed: int32(st.Failures)}
	for pastStates[p.Ended] != status && int(p.Ended) < len(pastStates)-1 {
		p.Ended++
	}
	if reason != "" || failed != "" {
		p.Why = &PastWhy{reason, truncateText(failed, maxPastText)}
	}
	sc.Past[st.Key] = p
}

// toDigest converts the summary to the form for users.
func (p *Past) toDigest(visit int) NodeDigest {
	d := NodeDigest{Status: pastStates[p.Ended], Visit: visit, StartedAt: p.StartedAt, EndedAt: p.EndedAt,
		Units: UnitCount{Total: int(p.Total), Done: int(p.Done), Failed: int(p.Failed)}}
	if p.Why != nil {
		d.Reason, d.Error = p.Why.Reason, p.Why.Error
	}
	return d
}

func codePast(c *codec.Codec, p *Past) {
	c.Int64(&p.StartedAt)
	c.Int64(&p.EndedAt)
	for _, n := range []*int32{&p.Total, &p.Done, &p.Failed} {
		units := int(*n)
		c.Int(&units)
		*n = int32(units)
	}
	state := byte(p.Ended)
	if c.Byte(&state); int(state) >= len(pastStates) {
		state = 0
		c.Fail(codec.NoSuch)
	}
	p.Ended = PastState(state)
	codec.Pointer(c, &p.Why, func(c *codec.Codec, w *PastWhy) {
		codec.Text(c, &w.Reason)
		codec.Text(c, &w.Error)
	})
}
