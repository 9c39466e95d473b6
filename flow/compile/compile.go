package compile

import (
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// Definition checks a definition and, if there is no error, turns it into a plan. It tells all
// problems at once, those of the text that the definition was read from included; the plan is nil
// if there is an error among them.
//
// What is published goes through both parts. What was published is only lowered: a rule or a limit
// that came later is no concern of a version that tasks run by.
func Definition(d *define.Definition, limits flow.Limits) (*flow.Plan, define.Problems) {
	return Site{}.Definition(d, limits)
}

// Site is what a flow finds where it is to be carried out. The zero value knows nothing of that,
// and refuses nothing.
type Site struct {
	Secret func(name string) error // refuses a secret that programs of the member are not given; nil = nobody knows
	Func   func(name string) error // says that the member does not have a function; nil = it is not known
}

// Definition is the function Definition, with what the site refuses.
func (s Site) Definition(d *define.Definition, limits flow.Limits) (*flow.Plan, define.Problems) {
	plan, problems := s.checkAndLower(d, limits)
	if problems.Err() != nil {
		return nil, problems
	}
	return plan, problems
}

// Text parses and compiles a definition, so that all of its problems are told at once. The
// plan is nil if there is an error among them.
func Text(text []byte, limits flow.Limits) (*flow.Plan, define.Problems) {
	d, err := define.Parse(text)
	if d == nil {
		return nil, err.(define.Problems)
	}
	return Definition(d, limits)
}

// Check tells everything that is wrong with a definition, and where.
func Check(d *define.Definition, limits flow.Limits) define.Problems {
	_, problems := Site{}.checkAndLower(d, limits)
	return problems
}

// Lower turns a definition into the plan that it means. It judges nothing: every definition has a
// plan, and an expression that cannot be compiled is one that fails when it is evaluated. Of the
// limits it takes those that are no matter of right or wrong.
func Lower(d *define.Definition, limits flow.Limits) *flow.Plan {
	l := newLowerer(d, limits)
	l.lowerDefinition(d)
	return l.plan
}

// ModeOf is a definition's mode: what it says, else what it has of one mode alone: a start or
// edges, a dependency, or anything else of graph mode. Nodes that could be of either are a dag.
func ModeOf(d *define.Definition) flow.Mode {
	switch {
	case d.Mode != "":
		return flow.Mode(d.Mode)
	case d.Profile == define.ProfilePocketflow:
		return flow.ModeGraph
	case d.Profile != "" && d.Profile != define.ProfileTroupe:
		return flow.ModeDag
	case d.Start != "" || len(d.Edges) > 0 || len(d.Nodes) == 0:
		return flow.ModeGraph
	}
	mode := flow.ModeDag
	for _, n := range d.Nodes {
		switch {
		case n == nil:
		case len(n.DependsOn) > 0:
			return flow.ModeDag
		case ofGraph(n):
			mode = flow.ModeGraph
		}
	}
	return mode
}

// ofGraph reports whether a node has what only graph mode knows.
func ofGraph(n *define.Node) bool {
	return flow.Kind(n.Kind) == flow.KindChoice || len(n.ChoiceCases) > 0 || n.Post.OutputKey != "" || len(n.Post.OutputMap) > 0 ||
		n.Post.ActionStatic != "" || n.Post.ActionKey != "" || len(n.ParallelExecs) > 0 || len(n.ParallelServices) > 0
}

// scopeSource is what a scope of graph mode is made from.
type scopeSource struct {
	start string
	nodes map[string]*define.Node
	edges []define.Edge

	coerce     bool   // comparisons take what is missing for null
	pocketflow bool   // the profile of the flow
	finally    string // of the whole flow
	prefix     string // of the keys that the closing scope has for its nodes

	// Of a subflow.
	depth    int
	plain    bool              // references mean what they do at the root
	defaults flow.Exec         // what children take from the node that holds them
	specs    []define.ExecSpec // subflow_execs of that node
}

// namedEdges returns the edges of a scope with an action for each: default for one that names none.
// In the profile pocketflow such an edge is never taken, so it stays as it is.
func namedEdges(edges []define.Edge, pocketflow bool) []define.Edge {
	if pocketflow {
		return edges
	}
	named := slices.Clone(edges)
	for i := range named {
		named[i].Action = cmp.Or(named[i].Action, anyAction)
	}
	return named
}

func (s *scopeSource) isFlat() bool { return s.depth > 0 && !s.plain }

// subflowSource is the scope of a node's subflow, a flow of graph mode inside it, or nil for a dag.
func subflowSource(n *define.Node, defaults flow.Exec, s *scopeSource, key string) *scopeSource {
	depth, prefix := s.depth+1, s.prefix+key+"/"
	if n.Flow == nil {
		defaults.Service = ""
		return &scopeSource{start: n.Subflow.Start, nodes: n.Subflow.Nodes, edges: n.Subflow.Edges, prefix: prefix,
			depth: depth, defaults: defaults, specs: n.SubflowExecs, coerce: s.coerce, pocketflow: s.pocketflow}
	}
	return &scopeSource{start: n.Flow.Start, nodes: n.Flow.Nodes, edges: n.Flow.Edges, prefix: prefix, depth: depth, plain: true,
		coerce: coercesMissing(n.Flow.Definition, s.coerce), pocketflow: hasPocketflowProfile(n.Flow.Definition, s.pocketflow)}
}

// coercesMissing reports whether comparisons of a flow take a missing value for null. Outer is the
// answer of the flow around it, which counts if the flow says nothing and was not published by
// itself.
func coercesMissing(d *define.Definition, outer bool) bool {
	switch {
	case d.OnMissing != "":
		return d.OnMissing == define.OnMissingCoerce
	case d.Profile != "" || d.Embedded != "":
		return d.Profile == define.ProfilePocketflow
	}
	return outer
}

// hasPocketflowProfile reports whether a flow of graph mode has the profile pocketflow. Outer is
// the answer of the flow around it, which counts if the flow names no profile and was not published
// by itself.
func hasPocketflowProfile(d *define.Definition, outer bool) bool {
	if d.Profile != "" || d.Embedded != "" {
		return d.Profile == define.ProfilePocketflow
	}
	return outer
}

// followsFailures reports whether failed nodes of a whole flow of graph mode take the edges of a
// success.
func followsFailures(d *define.Definition) bool {
	return d.OnError == define.OnErrorFollow || d.OnError == "" && d.Profile == define.ProfilePocketflow
}

// orEmpty is a node of which something may be asked.
func orEmpty(n *define.Node) *define.Node {
	if n == nil {
		return &define.Node{}
	}
	return n
}
