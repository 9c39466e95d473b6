package show

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Graph is a plan in the form that a page draws: a flat list of nodes and the edges between their
// indexes. Nodes of a scope are adjacent, in the same order as in a digest.
type Graph struct {
	Mode   flow.Mode
	Scopes []GraphScope
	Nodes  []GraphNode
	Edges  []GraphEdge
}

// GraphScope is a scope of a graph: a range of its nodes.
type GraphScope struct {
	// keys of the enclosing nodes, escaped as in the scope paths of a task; ~ is the scope of
	// compensations and finally
	Path         string
	Mode         flow.Mode
	Start        string
	Node         int // index of the enclosing node; -1 if there is none
	First, Nodes int
}

// GraphNode is a node of a graph.
type GraphNode struct {
	*Node
	Scope   string
	Name    string // display name, if it differs from the key
	Route   string
	Service string
	Tries   string // retry settings in words
	Path    string // its key after those of the enclosing nodes, as in the text of the definition
	Inside  string // path of the inner scope; "" if there is none
}

// Kinds of edges.
const (
	EdgeNext         = ""             // graph mode: for an action
	EdgeDependency   = "dependency"   // dag mode: a dependency
	EdgeCompensation = "compensation" // compensation of the node
)

// GraphEdge leads from one node to another. If To is -1, the edge ends the scope.
type GraphEdge struct {
	From, To int
	Kind     string
	Action   string
	When     string // condition, for an edge of a choice
	Always   bool   // dag mode: the node runs regardless of how the dependency ends
}

// GraphOf returns the graph of a plan.
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

// addScope adds a scope, and then the inner scopes of its nodes.
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

// shallowNode returns a node without its inner scope, whose nodes have their own entries in the
// list.
func shallowNode(n *flow.PlanNode, show func(*flow.PlanNode) *Node) *Node {
	bare := *n
	bare.Sub = nil
	return show(&bare)
}

func (g *Graph) addEdges(of *flow.PlanScope, n *flow.PlanNode, index int, at map[string]int) {
	if of.Mode() == flow.ModeDag {
		for _, dep := range n.Dag.Deps {
			g.Edges = append(g.Edges, GraphEdge{From: at[of.Dag.List[dep].Key], To: index,
				Kind: EdgeDependency, Always: g.Nodes[index].Always})
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

// addUndoEdges adds edges from nodes to their compensating nodes. first is the index of the first
// compensating node.
func (g *Graph) addUndoEdges(first int) {
	by := map[string]int{}
	for i := first; i < len(g.Nodes); i++ {
		by[g.Nodes[i].Key] = i
	}
	for i := range g.Nodes[:first] {
		if to, ok := by[g.Nodes[i].Compensate]; ok {
			g.Edges = append(g.Edges, GraphEdge{From: i, To: to, Kind: EdgeCompensation})
		}
	}
}

// Origin returns a path in the text of the definition: of the node itself, or of the node for which
// the compiler added this node.
func (n *GraphNode) Origin() string {
	if n.For == "" {
		return n.Path
	}
	return strings.TrimSuffix(n.Path, n.Key) + n.For
}
