package compile

import (
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// Definition checks a definition and, if there is no error, lowers it to a plan. It reports all
// problems at once, including those of the text from which the definition was read. The plan is nil
// if there is an error.
//
// A new version goes through both parts. A published version is only lowered, because later rules
// and limits must not affect versions that tasks already run.
func Definition(d *definition.Definition, limits flow.Limits) (*flow.Plan, definition.Problems) {
	return Site{}.Definition(d, limits)
}

// Site describes the place where a flow runs. The zero value rejects nothing.
type Site struct {
	// Secret returns an error for a secret that programs of the member may not get. If Secret is
	// nil, secrets are not checked.
	Secret func(name string) error
	// Func returns an error for a function that the member does not have. If Func is nil, functions
	// are not checked.
	Func func(name string) error
}

// Definition is the function Definition with the additional checks of the site.
func (s Site) Definition(d *definition.Definition, limits flow.Limits) (*flow.Plan, definition.Problems) {
	plan, problems := s.checkAndLower(d, limits)
	if problems.Err() != nil {
		return nil, problems
	}
	return plan, problems
}

// Text parses and compiles a definition, so that all its problems are reported at once. The plan is
// nil if there is an error.
func Text(text []byte, limits flow.Limits) (*flow.Plan, definition.Problems) {
	d, err := definition.Parse(text)
	if d == nil {
		return nil, err.(definition.Problems)
	}
	return Definition(d, limits)
}

// Check returns all problems of a definition with their places.
func Check(d *definition.Definition, limits flow.Limits) definition.Problems {
	_, problems := Site{}.checkAndLower(d, limits)
	return problems
}

// Lower converts a definition to its plan without checking it. Every definition has a plan; an
// expression that cannot be compiled fails when it is evaluated. Lower only uses the limits that do
// not decide about validity.
func Lower(d *definition.Definition, limits flow.Limits) *flow.Plan {
	l := newLowerer(d, limits)
	l.lowerDefinition(d)
	return l.plan
}

// ModeOf returns the mode of a definition. Without an explicit mode it derives the mode from
// features of one mode: a start or edges, a dependency, or any other feature of graph mode. Nodes
// that fit both modes are a dag.
func ModeOf(d *definition.Definition) flow.Mode {
	switch {
	case d.Mode != "":
		return flow.Mode(d.Mode)
	case d.Code != "":
		return flow.ModeCode
	case d.Profile == definition.ProfilePocketflow:
		return flow.ModeGraph
	case d.Profile != "" && d.Profile != definition.ProfileTroupe:
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

// ofGraph reports whether a node has features that only graph mode has.
func ofGraph(n *definition.Node) bool {
	return flow.Kind(n.Kind) == flow.KindChoice || len(n.ChoiceCases) > 0 || n.Post.OutputKey != "" || len(n.Post.OutputMap) > 0 ||
		n.Post.ActionStatic != "" || n.Post.ActionKey != "" || len(n.ParallelExecs) > 0 || len(n.ParallelServices) > 0
}

// scopeSource is the source of a scope of graph mode.
type scopeSource struct {
	start string
	nodes map[string]*definition.Node
	edges []definition.Edge

	coerce     bool   // comparisons treat missing values as null
	pocketflow bool   // the flow has the pocketflow profile
	finally    string // finally of the whole flow
	prefix     string // prefix of its node keys in the closing scope

	// For a subflow:
	depth    int
	plain    bool                  // references have the same meaning as at the root
	defaults flow.Exec             // defaults for children from the node that contains them
	specs    []definition.ExecSpec // subflow_execs of the containing node
}

// namedEdges returns the edges of a scope with the action default for edges without one. With the
// pocketflow profile such an edge is never taken, so it stays unchanged.
func namedEdges(edges []definition.Edge, pocketflow bool) []definition.Edge {
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

// subflowSource returns the scope of a node's subflow, or of a nested flow of graph mode.
func subflowSource(n *definition.Node, defaults flow.Exec, s *scopeSource, key string) *scopeSource {
	depth, prefix := s.depth+1, s.prefix+key+"/"
	if n.Flow == nil {
		defaults.Service = ""
		return &scopeSource{start: n.Subflow.Start, nodes: n.Subflow.Nodes, edges: n.Subflow.Edges, prefix: prefix,
			depth: depth, defaults: defaults, specs: n.SubflowExecs, coerce: s.coerce, pocketflow: s.pocketflow}
	}
	return &scopeSource{start: n.Flow.Start, nodes: n.Flow.Nodes, edges: n.Flow.Edges, prefix: prefix, depth: depth, plain: true,
		coerce: coercesMissing(n.Flow.Definition, s.coerce), pocketflow: hasPocketflowProfile(n.Flow.Definition, s.pocketflow)}
}

// coercesMissing reports whether comparisons of a flow treat a missing value as null. outer is the
// result for the surrounding flow. It applies if the flow does not set on_missing and was not
// published separately.
func coercesMissing(d *definition.Definition, outer bool) bool {
	switch {
	case d.OnMissing != "":
		return d.OnMissing == definition.OnMissingCoerce
	case d.Profile != "" || d.Embedded != "":
		return d.Profile == definition.ProfilePocketflow
	}
	return outer
}

// hasPocketflowProfile reports whether a flow of graph mode has the pocketflow profile. outer is
// the result for the surrounding flow. It applies if the flow names no profile and was not
// published separately.
func hasPocketflowProfile(d *definition.Definition, outer bool) bool {
	if d.Profile != "" || d.Embedded != "" {
		return d.Profile == definition.ProfilePocketflow
	}
	return outer
}

// followsFailures reports whether failed nodes of a whole flow of graph mode take the edges for
// success.
func followsFailures(d *definition.Definition) bool {
	return d.OnError == definition.OnErrorFollow || d.OnError == "" && d.Profile == definition.ProfilePocketflow
}

// orEmpty returns the node, or an empty node for nil.
func orEmpty(n *definition.Node) *definition.Node {
	if n == nil {
		return &definition.Node{}
	}
	return n
}
