package define

import (
	"maps"
	"slices"
	"strings"
)

// InOrder are the keys of nodes as they were written.
func InOrder(nodes map[string]*Node) []string {
	return slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		if of := nodes[a].writtenOrder() - nodes[b].writtenOrder(); of != 0 {
			return of
		}
		return strings.Compare(a, b)
	})
}

// writtenOrder is a node's place among those of its scope.
func (n *Node) writtenOrder() int {
	if n == nil {
		return 0
	}
	return n.order
}

// CountNodes counts nodes and those inside of them.
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
