package compile

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// guessFrom returns the question whether one of the names was meant.
func guessFrom(word string, names []string) definition.Guess {
	return definition.Guess{Word: word, Names: func() []string { return names }}
}

// guessNode returns the question whether another node was meant.
func guessNode[T any](word string, nodes map[string]T) definition.Guess {
	return definition.Guess{Word: word, Names: func() []string { return slices.Collect(maps.Keys(nodes)) }}
}

// maxGuesses is the maximum number of searches for the name that was probably meant, apart from
// reported problems.
const maxGuesses = 1_000

// guessName returns the name that was probably meant, or "".
func guessName[T any](c *graphWarner, name string, names map[string]T) string {
	if c.guessCount++; c.guessCount > maxGuesses {
		return ""
	}
	return guessNode(name, names).Nearest()
}

// endAction is an action that a node can end with, and where it is written.
type endAction struct {
	action string
	at     *definition.Place
}

// actionsOf returns the actions that a node can end with, apart from default and error. open means
// that there may be others.
func actionsOf(n *definition.Node, kind flow.Kind, at *definition.Place) (all []endAction, open bool) {
	post := at.Key("post")
	static := []endAction{{n.Post.ActionStatic, post.Key("action_static")}}
	switch key := n.Post.ActionKey; kind {
	case flow.KindChoice:
		for i, c := range n.ChoiceCases {
			all = append(all, endAction{c.Action, at.Key("choice_cases").Index(i).Key("action")})
		}
		all = append(append(all, static...), endAction{n.DefaultAction, at.Key("default_action")})
		open = key != ""
	case flow.KindApproval:
		if key != "" && key != "approval" {
			return nil, false
		}
		return append(static, endAction{"approved", at}, endAction{"rejected", at}), true
	case flow.KindWaitEvent:
		all, open = static, key == "signal"
	case flow.KindExecutor, flow.KindSubflow:
		all, open = static, key != "" && n.Post.ActionStatic == ""
	default:
		all = static
	}
	return slices.DeleteFunc(all, func(s endAction) bool { return s.action == "" }), open
}

// Actions for which any node may have an edge: all actions without an edge of their own, and a
// failure.
const (
	anyAction   = "default"
	errorAction = "error"
)

// edgesOf returns the indexes of the edges of each existing node.
func edgesOf(g *flow.PlanScope, edges []definition.Edge) map[string][]int {
	of := map[string][]int{}
	for i, e := range edges {
		if g.Nodes[e.From] != nil && e.Action != "" {
			of[e.From] = append(of[e.From], i)
		}
	}
	return of
}

// checkActions compares the actions of nodes with those of their edges.
func (c *graphWarner) checkActions(s *scopeSource, g *flow.PlanScope, at *definition.Place) {
	of := edgesOf(g, s.edges)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		n := orEmpty(s.nodes[key])
		if _, known := graphKind(n); !known {
			continue
		}
		all, open := actionsOf(n, g.Nodes[key].Kind, at.Key("nodes").Key(key))
		left := c.neverTaken(s, of[key], actionNames(all), open, at.Key("edges"))
		if g.Nodes[key].Kind != flow.KindApproval { // other decisions end the flow on purpose
			c.neverFollowed(s, of[key], all, left)
		}
	}
}

func actionNames(all []endAction) (list []string) {
	for _, s := range all {
		list = append(list, s.action)
	}
	return list
}

// neverTaken warns of edges for actions that their node never ends with. It returns the actions
// that such an edge was probably meant for.
func (c *graphWarner) neverTaken(s *scopeSource, edges []int, actions []string, open bool, at *definition.Place) (met map[string]bool) {
	met = map[string]bool{}
	known := map[string]bool{anyAction: true, errorAction: true}
	for _, action := range actions {
		known[action] = true
	}
	for _, i := range edges {
		e := s.edges[i]
		if known[e.Action] {
			continue
		}
		meant := guessName(c, e.Action, known)
		met[meant] = true
		switch place := at.Index(i).Key("action"); {
		case meant != "":
			c.Warnf(place, "node %.80q does not end with the action %.80q: did you mean %s?", e.From, e.Action, meant)
		case open:
		case len(actions) == 0:
			c.Warnf(place, "node %.80q never ends with the action %.80q: write default, or "+
				"error for what follows a failure", e.From, e.Action)
		default:
			c.Warnf(place, "node %.80q never ends with the action %.80q: it ends with %.200s",
				e.From, e.Action, strings.Join(actions, ", "))
		}
	}
	return met
}

// neverFollowed warns of actions without an edge. After such an action the flow ends although the
// node has edges for other actions.
func (c *graphWarner) neverFollowed(s *scopeSource, edges []int, all []endAction, met map[string]bool) {
	var served []string
	for _, i := range edges {
		served = append(served, s.edges[i].Action)
	}
	if slices.Contains(served, anyAction) || !slices.ContainsFunc(served, func(a string) bool { return a != errorAction }) {
		return
	}
	for _, a := range all {
		if !slices.Contains(served, a.action) && !met[a.action] {
			c.Warnf(a.at, "no edge has the action %.80q, so the flow ends after it%s (if that "+
				"is meant, write an edge with to: \"\")", a.action, guessFrom(a.action, served))
		}
	}
}

// checkReachable warns of unreachable nodes. A misspelled name counts as the node that was probably
// meant.
func (c *graphWarner) checkReachable(s *scopeSource, g *flow.PlanScope, at *definition.Place) {
	meant := func(key string) string {
		if key == "" || g.Nodes[key] != nil {
			return key
		}
		return guessName(c, key, g.Nodes)
	}
	start := meant(s.start)
	if start == "" || hasDependencies(s.nodes) {
		return
	}
	next, entered := map[string][]string{}, map[string]bool{}
	for _, e := range s.edges {
		if e.Action == "" { // the edge is never taken
			continue
		}
		from, to := meant(e.From), meant(e.To)
		next[from] = append(next[from], to)
	}
	seen := reachableFrom(start, next)
	for from, to := range next {
		for _, key := range to {
			entered[key] = entered[key] || !seen[from] && from != key
		}
	}
	lost := slices.DeleteFunc(slices.Sorted(maps.Keys(g.Nodes)), func(key string) bool { return seen[key] })
	heads := slices.DeleteFunc(slices.Clone(lost), func(key string) bool { return entered[key] })
	if len(heads) == 0 { // they form a cycle
		heads = lost
	}
	for _, key := range heads {
		c.Warnf(at.Key("nodes").Key(key), "is never reached from %.80q: add an edge to it, or leave it out", start)
	}
}

// hasDependencies reports whether nodes have dependencies, which are reported separately.
func hasDependencies(nodes map[string]*definition.Node) bool {
	for _, n := range nodes {
		if n != nil && len(n.DependsOn) > 0 {
			return true
		}
	}
	return false
}

// reachableFrom returns the nodes that are reachable from a start.
func reachableFrom(start string, next map[string][]string) map[string]bool {
	seen := map[string]bool{start: true}
	for todo := []string{start}; len(todo) > 0; {
		key := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, to := range next[key] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return seen
}
