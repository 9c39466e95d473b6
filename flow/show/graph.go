package show

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Graph is a plan as a page draws it: all its nodes in one list, those of a scope together and in
// the order in which a digest tells them, and what leads from node to node by their indexes.
type Graph struct {
	Mode   flow.Mode
	Scopes []GraphScope
	Nodes  []GraphNode
	Edges  []GraphEdge
}

// GraphScope is a scope of it: so many of its nodes from the first one on.
type GraphScope struct {
	Path         string // the keys of the nodes that it is inside of, escaped as in the paths of a task's scopes; ~ is where a task closes
	Mode         flow.Mode
	Start        string
	Node         int // that it is inside of; -1 = none
	First, Nodes int
}

// GraphNode is a node of it.
type GraphNode struct {
	*Node
	Scope   string
	Name    string // what people call it, when that is not its key
	Route   string
	Service string
	Tries   string // in words
	Path    string // its key behind those of the nodes around it, as in the text of the definition
	Inside  string // path of the scope inside of it; "" = none
}

// Kinds of edges.
const (
	EdgeNext  = ""      // graph mode: after an action
	EdgeAfter = "after" // dag mode: a dependency
	EdgeUndo  = "undo"  // it compensates the other one
)

// GraphEdge leads from a node to another one; To -1 ends the scope.
type GraphEdge struct {
	From, To int
	Kind     string
	Action   string
	When     string // of a choice: the condition
	Always   bool   // dag mode: it runs however the other one ends
}

// GraphOf draws a plan.
func GraphOf(p *flow.Plan) *Graph {
	g := &Graph{Mode: p.Root.Mode()}
	g.addScope(p.Root, "", "", -1)
	if p.Closing == nil {
		return g
	}
	first := len(g.Nodes)
	g.addScope(p.Closing, closingPath, "", -1)
	g.addUndoEdges(first)
	return g
}

const closingPath = "~"

// addScope adds a scope, and then those inside of its nodes.
func (g *Graph) addScope(of *flow.PlanScope, path, keys string, node int) {
	order, first := of.Order(), len(g.Nodes)
	g.Scopes = append(g.Scopes, GraphScope{Path: path, Mode: of.Mode(), Start: of.Start, Node: node, First: first, Nodes: len(order)})
	at := make(map[string]int, len(order))
	for i, n := range order {
		at[n.Key] = first + i
		g.Nodes = append(g.Nodes, graphNode(of, n, path, keys))
	}
	for i, n := range order {
		g.addEdges(of, n, first+i, at)
	}
	for i, n := range order {
		if n.Sub != nil {
			inside := flow.ScopeKey(path, n.Key)
			g.Nodes[first+i].Inside = inside
			g.addScope(n.Sub, inside, keys+n.Key+"/", first+i)
		}
	}
}

func graphNode(of *flow.PlanScope, n *flow.PlanNode, path, keys string) GraphNode {
	v := GraphNode{Scope: path, Name: n.Name, Service: n.Exec.Service, Path: keys + n.Key}
	if of.Mode() == flow.ModeDag {
		v.Node = shallowNode(n, func(bare *flow.PlanNode) *Node { return dagNodeOf(of, bare) })
	} else {
		v.Node = shallowNode(n, nodeOf)
	}
	if v.Handler != "" {
		v.Route = n.Exec.Route()
	}
	v.Tries = v.Times.triesText()
	return v
}

// shallowNode shows a node without what is inside of it, which has nodes of its own in the list.
func shallowNode(n *flow.PlanNode, show func(*flow.PlanNode) *Node) *Node {
	bare := *n
	bare.Sub = nil
	return show(&bare)
}

func (g *Graph) addEdges(of *flow.PlanScope, n *flow.PlanNode, index int, at map[string]int) {
	if of.Mode() == flow.ModeDag {
		for _, dep := range n.Dag.Deps {
			g.Edges = append(g.Edges, GraphEdge{From: at[of.Dag.List[dep].Key], To: index, Kind: EdgeAfter, Always: g.Nodes[index].Always})
		}
		return
	}
	for _, action := range slices.Sorted(maps.Keys(n.Edges)) {
		to, ok := at[n.Edges[action]]
		if !ok {
			to = -1
		}
		g.Edges = append(g.Edges, GraphEdge{From: index, To: to, Action: action, When: casesOf(n, action)})
	}
}

// addUndoEdges leads from nodes to those that undo them, which begin at an index.
func (g *Graph) addUndoEdges(first int) {
	by := map[string]int{}
	for i := first; i < len(g.Nodes); i++ {
		by[g.Nodes[i].Key] = i
	}
	for i := range g.Nodes[:first] {
		if to, ok := by[g.Nodes[i].Compensate]; ok {
			g.Edges = append(g.Edges, GraphEdge{From: i, To: to, Kind: EdgeUndo})
		}
	}
}

// Origin is the path of the node in the text of the definition that a node was made for, or that it
// is.
func (n *GraphNode) Origin() string {
	if n.For == "" {
		return n.Path
	}
	return strings.TrimSuffix(n.Path, n.Key) + n.For
}
