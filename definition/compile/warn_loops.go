package compile

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// endlessLoops warns of loops without work, wait or timer, in which the values that choices depend
// on never change.
func (c *graphWarner) endlessLoops(g *flow.PlanScope, at *definition.Place) {
	next := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(g.Nodes)) {
		if takesTime(g.Nodes[key]) {
			continue
		}
		for _, to := range slices.Sorted(maps.Values(g.Nodes[key].Edges)) {
			if n := g.Nodes[to]; n != nil && !takesTime(n) {
				next[key] = append(next[key], to)
			}
		}
	}
	told := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if told[key] {
			continue
		}
		if loop := wayBack(key, next); loop != nil {
			for _, member := range loop {
				told[member] = true
			}
			c.Warnf(at.Key("nodes").Key(key), "the loop %.200s has no work, wait or timer in "+
				"it: a task that goes round it fails after 10000 steps",
				strings.Join(append(loop, key), " → "))
		}
	}
}

// takesTime reports whether a step of the node may take time or has work.
func takesTime(n *flow.PlanNode) bool {
	switch n.Kind {
	case flow.KindChoice:
		return false
	case flow.KindTimer:
		raw, _ := expr.Field(n.Params, "delay_ms")
		delay, isNumber := expr.Number(raw)
		_, isText := expr.String(raw)
		return isText || isNumber && delay > 0
	case flow.KindSubflow:
		if n.Sub == nil || n.Sub.Dag != nil {
			return n.Sub != nil
		}
		return slices.ContainsFunc(slices.Collect(maps.Values(n.Sub.Nodes)), takesTime)
	}
	return true
}

// wayBack returns the nodes of a shortest cycle through a node, beginning with the node. It returns
// nil if there is no cycle.
func wayBack(key string, next map[string][]string) []string {
	from := map[string]string{}
	for todo := []string{key}; len(todo) > 0; todo = todo[1:] {
		for _, to := range next[todo[0]] {
			if to == key {
				loop := []string{todo[0]}
				for at := todo[0]; at != key; {
					at = from[at]
					loop = append(loop, at)
				}
				slices.Reverse(loop)
				return loop
			}
			if _, seen := from[to]; !seen {
				from[to] = todo[0]
				todo = append(todo, to)
			}
		}
	}
	return nil
}

// unheardWrites warns of nodes that write a key for which another node waits. Only signals and
// answers end a wait.
func (c *graphWarner) unheardWrites(s *scopeSource, g *flow.PlanScope, at *definition.Place) {
	waits := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(g.Nodes)) {
		n := g.Nodes[key]
		raw, _ := expr.Field(n.Params, signalKeys[n.Kind])
		if text, ok := expr.String(raw); ok && signalKeys[n.Kind] != "" {
			if awaited, _, err := flow.ReadWaitKey(text, flow.ModeGraph); err == nil && awaited != "" {
				waits[firstOf(awaited)] = key
			}
		}
	}
	warn := func(key, written string, at *definition.Place) {
		if by := waits[firstOf(written)]; by != "" && signalKeys[g.Nodes[key].Kind] == "" {
			c.Warnf(at, "the key %.80q is what node %.80q waits for, which only a signal or an "+
				"answer sets: what a node writes there ends no wait", written, by)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.Nodes)) {
		post, place := orEmpty(s.nodes[key]).Post, at.Key("nodes").Key(key).Key("post")
		warn(key, post.OutputKey, place.Key("output_key"))
		for _, written := range slices.Sorted(maps.Keys(post.OutputMap)) {
			warn(key, written, place.Key("output_map").Key(written))
		}
	}
}
