package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Differences tells how the shapes of two plans differ: their nodes and the order of these, what kind
// they are of, what they wait for and under which conditions they run. How often and how long something
// is tried is no part of it. A flow inside a node counts as that node's kind.
func Differences(old, new *Plan) []string {
	was, is := old.Root.keys(), new.Root.keys()
	list := []string{}
	for _, key := range was {
		if new.Root.Nodes[key] == nil {
			list = append(list, fmt.Sprintf("step %s is gone", key))
		}
	}
	for _, key := range is {
		before := old.Root.Nodes[key]
		if before == nil {
			list = append(list, fmt.Sprintf("step %s is new", key))
			continue
		}
		list = append(list, aspectsOf(key, old.Root, before, new.Root, new.Root.Nodes[key])...)
	}
	if len(list) == 0 && !slices.Equal(was, is) {
		list = append(list, fmt.Sprintf("the order of the steps is %s, was %s", strings.Join(is, ", "), strings.Join(was, ", ")))
	}
	return list
}

// keys of the nodes in the order that means something: of a graph it does not.
func (g *Graph) keys() []string {
	if g.Dag == nil {
		return slices.Sorted(maps.Keys(g.Nodes))
	}
	keys := make([]string, len(g.Dag.List))
	for i, n := range g.Dag.List {
		keys[i] = n.Key
	}
	return keys
}

func aspectsOf(key string, g *Graph, was *PlanNode, h *Graph, is *PlanNode) []string {
	var list []string
	before, now := was.shape(g), is.shape(h)
	for i, aspect := range aspects {
		if before[i] != now[i] {
			list = append(list, fmt.Sprintf("step %s: the %s is %s, was %s", key, aspect, orText(now[i], "none"), orText(before[i], "none")))
		}
	}
	return list
}

// aspects of a node's shape, in the order of the texts that shape makes.
var aspects = [...]string{"type", "route", "list of dependencies", "mode when skipped", "mode when exhausted", "pattern if", "pattern if_not", "set of edges"}

func (n *PlanNode) shape(g *Graph) [len(aspects)]string {
	s := [len(aspects)]string{0: string(n.Kind)}
	if n.Single || n.Kind == KindFanout {
		s[1] = n.Exec.Route()
	}
	if d := n.Dag; d != nil {
		deps := make([]string, len(d.Deps))
		for i, dep := range d.Deps {
			deps[i] = g.Dag.List[dep].Key
		}
		s[2], s[3], s[4], s[5], s[6] = strings.Join(deps, ", "), string(d.Mode), string(d.Exhausted), string(d.If), string(d.IfNot)
	}
	edges := make([]string, 0, len(n.Edges))
	for _, action := range slices.Sorted(maps.Keys(n.Edges)) {
		edges = append(edges, action+" → "+n.Edges[action])
	}
	s[7] = strings.Join(edges, ", ")
	return s
}
