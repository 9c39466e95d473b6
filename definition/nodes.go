package definition

import (
	"maps"
	"slices"
	"strings"
)

// InOrder returns the keys of nodes in the written order.
func InOrder(nodes map[string]*Node) []string {
	return slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		if of := nodes[a].writtenOrder() - nodes[b].writtenOrder(); of != 0 {
			return of
		}
		return strings.Compare(a, b)
	})
}

// NewNode returns a node at a position among those of its flow.
func NewNode(position int) *Node { return &Node{order: position} }

// writtenOrder returns the position of a node in its scope.
func (n *Node) writtenOrder() int {
	if n == nil {
		return 0
	}
	return n.order
}

// CountNodes returns the number of nodes, including those of nested flows.
func CountNodes(nodes map[string]*Node) int {
	count := len(nodes)
	for _, n := range nodes {
		switch {
		case n == nil:
			continue
		case n.Subflow != nil:
			count += CountNodes(n.Subflow.Nodes)
		}
		if f := n.Flow; f != nil && f.Definition != nil {
			count += CountNodes(f.Nodes)
		}
	}
	return count
}
