package compile

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// guessFrom asks whether another one of some names was meant.
func guessFrom(word string, names []string) define.Guess {
	return define.Guess{Word: word, Names: func() []string { return names }}
}

// guessNode asks whether another node was meant.
func guessNode[T any](word string, nodes map[string]T) define.Guess {
	return define.Guess{Word: word, Names: func() []string { return slices.Collect(maps.Keys(nodes)) }}
}

// maxGuesses bounds how often it is looked for what a name was meant to be, apart from problems
// that are told.
const maxGuesses = 1_000

// guessName is what a name was probably meant to be, or "".
func guessName[T any](c *checker, name string, names map[string]T) string {
	if c.guessCount++; c.guessCount > maxGuesses {
		return ""
	}
	return guessNode(name, names).Nearest()
}

// endAction is an action that a node can end with, and where that is written.
type endAction struct {
	action string
	at     *define.Place
}

// actionsOf are the actions that a node can end with, apart from default and error. Open means that
// it can be any other text, too.
func actionsOf(n *define.Node, kind flow.Kind, at *define.Place) (all []endAction, open bool) {
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

// Actions that every node has an edge for if it wants: after whatever has no edge of its own, and
// after a failure.
const (
	anyAction   = "default"
	errorAction = "error"
)

// edgesOf are the edges of each node that exists, by their place in the list.
func edgesOf(g *flow.PlanScope, edges []define.Edge) map[string][]int {
	of := map[string][]int{}
	for i, e := range edges {
		if g.Nodes[e.From] != nil && e.Action != "" {
			of[e.From] = append(of[e.From], i)
		}
	}
	return of
}

// checkActions compares the actions that nodes end with and those of their edges.
func (c *checker) checkActions(s *scopeSource, g *flow.PlanScope, at *define.Place) {
	of := edgesOf(g, s.edges)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		n := orEmpty(s.nodes[key])
		if _, known := graphKind(n); !known {
			continue
		}
		all, open := actionsOf(n, g.Nodes[key].Kind, at.Key("nodes").Key(key))
		left := c.neverTaken(s, of[key], actionNames(all), open, at.Key("edges"))
		if g.Nodes[key].Kind != flow.KindApproval { // who decides something else ends the flow on purpose
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

// neverTaken warns of edges for actions that their node does not end with. Met are the actions that
// such an edge was probably meant for.
func (c *checker) neverTaken(s *scopeSource, edges []int, actions []string, open bool, at *define.Place) (met map[string]bool) {
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
			c.Warnf(place, "node %.80q never ends with the action %.80q: write default, or error for what follows a failure", e.From, e.Action)
		default:
			c.Warnf(place, "node %.80q never ends with the action %.80q: it ends with %.200s", e.From, e.Action, strings.Join(actions, ", "))
		}
	}
	return met
}

// neverFollowed warns of actions after which the flow ends although the node has edges for others.
func (c *checker) neverFollowed(s *scopeSource, edges []int, all []endAction, met map[string]bool) {
	var served []string
	for _, i := range edges {
		served = append(served, s.edges[i].Action)
	}
	if slices.Contains(served, anyAction) || !slices.ContainsFunc(served, func(a string) bool { return a != errorAction }) {
		return
	}
	for _, a := range all {
		if !slices.Contains(served, a.action) && !met[a.action] {
			c.Warnf(a.at, "no edge has the action %.80q, so the flow ends after it%s (if that is meant, write an edge with to: \"\")", a.action, guessFrom(a.action, served))
		}
	}
}

// checkReachable warns of nodes that no way leads to. Names that are misspelled count as what they
// are probably meant to be.
func (c *checker) checkReachable(s *scopeSource, g *flow.PlanScope, at *define.Place) {
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
		if e.Action == "" { // it is never taken
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
	if len(heads) == 0 { // they lead to each other in a circle
		heads = lost
	}
	for _, key := range heads {
		c.Warnf(at.Key("nodes").Key(key), "is never reached from %.80q: add an edge to it, or leave it out", start)
	}
}

// hasDependencies reports whether nodes have dependencies, which is told as what it is.
func hasDependencies(nodes map[string]*define.Node) bool {
	for _, n := range nodes {
		if n != nil && len(n.DependsOn) > 0 {
			return true
		}
	}
	return false
}

// reachableFrom are the nodes that edges lead to from one on.
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
