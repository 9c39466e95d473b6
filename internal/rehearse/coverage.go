package rehearse

import (
	"cmp"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Coverage counts where stories have been at.
type Coverage struct {
	plan  *flow.Plan
	nodes map[Spot]int
	edges map[Spot]int
}

// Spot is a node, by the path of its scope and its key; with an action, an edge of it.
type Spot struct{ Scope, Node, Action string }

// NewCoverage knows all spots of a plan; nothing has been at them.
func NewCoverage(p *flow.Plan) *Coverage {
	c := &Coverage{plan: p, nodes: map[Spot]int{}, edges: map[Spot]int{}}
	c.addScope("", p.Root)
	if p.Closing != nil {
		c.addScope(closingScope, p.Closing)
	}
	return c
}

// closingScope is the path of the scope in which tasks close.
const closingScope = "~"

func (c *Coverage) addScope(path string, g *flow.PlanScope) {
	for key, n := range g.Nodes {
		if isGenerated(n) {
			continue
		}
		c.nodes[Spot{path, key, ""}] = 0
		for _, action := range nodeOutcomes(g, n) {
			c.edges[Spot{path, key, action}] = 0
		}
		if n.Sub != nil {
			c.addScope(joinScope(path, key), n.Sub)
		}
	}
}

// Ghost reports whether an event is about a node that the compiler made for another one.
func Ghost(p *flow.Plan, e *flow.Event) bool {
	_, g := findScope(p, e.Scope)
	return g != nil && g.Nodes[e.Node] != nil && isGenerated(g.Nodes[e.Node])
}

// isGenerated reports whether the compiler made a node for another one.
func isGenerated(n *flow.PlanNode) bool {
	return n.Dag != nil && (n.Dag.For >= 0 || n.Kind == flow.KindJoin)
}

// nodeOutcomes are the edges of a node of graph mode; of a dag, that it runs and that it is
// skipped, if it has a condition.
func nodeOutcomes(g *flow.PlanScope, n *flow.PlanNode) []string {
	if g.Mode() == flow.ModeGraph {
		return slices.Sorted(maps.Keys(n.Edges))
	}
	d := n.Dag
	if d.Has != nil || d.Not != nil || d.Expr != nil || slices.ContainsFunc(d.Guards, func(i int) bool { return g.Dag.List[i].Kind != flow.KindPrep }) {
		return []string{Runs, Skips}
	}
	return nil
}

// What a node with a condition may do.
const (
	Runs  = "runs"
	Skips = "is skipped"
)

func joinScope(scope, node string) string {
	if scope == "" {
		return node
	}
	return scope + "/" + node
}

// Add counts where a story has been at.
func (c *Coverage) Add(s *Story) {
	for i := range s.Events {
		e := &s.Events[i]
		if e.Type != flow.StepEntered && e.Type != flow.StepEnded {
			continue
		}
		at, g := findScope(c.plan, e.Scope)
		if g == nil || g.Nodes[e.Node] == nil {
			continue
		}
		n, spot := g.Nodes[e.Node], Spot{at, e.Node, ""}
		if e.Type == flow.StepEntered {
			c.countSpot(c.nodes, spot)
			c.countSpot(c.edges, Spot{at, e.Node, Runs})
			continue
		}
		if g.Mode() == flow.ModeDag {
			if e.Reason == flow.ReasonUnmet || e.Reason == flow.ReasonSkipped {
				c.countSpot(c.edges, Spot{at, e.Node, Skips})
			}
			continue
		}
		c.countSpot(c.edges, Spot{at, e.Node, takenAction(n, e)})
	}
}

// countSpot counts what there is.
func (c *Coverage) countSpot(all map[Spot]int, at Spot) {
	if n, there := all[at]; there {
		all[at] = n + 1
	}
}

// takenAction is the action of the edge by which a step has been left.
func takenAction(n *flow.PlanNode, e *flow.Event) string {
	_, caught := n.Edges["error"]
	if e.Status == string(flow.StepFailed) && caught {
		return "error"
	}
	if to, ok := n.Edges[e.Action]; ok && to == e.Next {
		return e.Action
	}
	if to, ok := n.Edges["default"]; ok && to == e.Next {
		return "default"
	}
	return ""
}

// findScope is the scope of a path of a task, and its path without visits.
func findScope(p *flow.Plan, scope string) (path string, g *flow.PlanScope) {
	var keys []string
	for at, inside := flow.ParentOf(scope); inside; at, inside = flow.ParentOf(at.Scope) {
		keys = append([]string{at.Node}, keys...)
		scope = at.Scope
	}
	g = p.Root
	if scope != "" { // ~, or ~2: what is left when nothing is above
		path, g = closingScope, p.Closing
	}
	for _, key := range keys {
		if g == nil || g.Nodes[key] == nil {
			return "", nil
		}
		path, g = joinScope(path, key), g.Nodes[key].Sub
	}
	return path, g
}

// Merge adds what another coverage of the same plan has counted.
func (c *Coverage) Merge(other *Coverage) {
	for at, n := range other.nodes {
		c.nodes[at] += n
	}
	for at, n := range other.edges {
		c.edges[at] += n
	}
}

// Node is how often a node was entered.
func (c *Coverage) Node(scope, key string) int { return c.nodes[Spot{scope, key, ""}] }

// Edge is how often an edge was taken; known is false where there is none.
func (c *Coverage) Edge(scope, key, action string) (times int, known bool) {
	times, known = c.edges[Spot{scope, key, action}]
	return times, known
}

// Totals are how many nodes and edges there are, and how many of them something has been at.
func (c *Coverage) Totals() (nodes, nodesHit, edges, edgesHit int) {
	return len(c.nodes), countHit(c.nodes), len(c.edges), countHit(c.edges)
}

func countHit(all map[Spot]int) (n int) {
	for _, times := range all {
		if times > 0 {
			n++
		}
	}
	return n
}

// Percent is how much of all nodes and edges something has been at.
func (c *Coverage) Percent() float64 {
	nodes, nodesHit, edges, edgesHit := c.Totals()
	if nodes+edges == 0 {
		return 100
	}
	return 100 * float64(nodesHit+edgesHit) / float64(nodes+edges)
}

// Missed are the spots that nothing has been at, in order.
func (c *Coverage) Missed() (all []Spot) {
	for _, of := range []map[Spot]int{c.nodes, c.edges} {
		for at, n := range of {
			if n == 0 {
				all = append(all, at)
			}
		}
	}
	slices.SortFunc(all, func(a, b Spot) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Action, b.Action))
	})
	return all
}

// Text names a spot for people.
func (s Spot) Text() string {
	at := s.Node
	if s.Scope != "" && s.Scope != closingScope {
		at = joinScope(s.Scope, s.Node)
	}
	switch s.Action {
	case "":
		return "node " + at
	case Runs, Skips:
		return "node " + at + " " + s.Action
	}
	return "edge " + s.Action + " of " + at
}
