package compile

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// dagLowerer lowers one scope of dag mode. Branches are laid out flat: their nodes become nodes of
// the scope around them, under slugs such as `review/gate:legal`, so that one set of counters
// serves all.
type dagLowerer struct {
	*lowerer
	g             *flow.PlanScope
	profile       flow.Profile
	defaults      nodeDefaults
	depth         int
	closingPrefix string // what the keys of its nodes begin with in the closing scope
}

// dagScope is what nodes of one definition within the scope have in common.
type dagScope struct {
	prefix string
	entry  []int       // that roots wait for: the last of a branch's gate, cond and prep
	run    int         // whose output is `run`
	sees   []flow.Seen // what roots see of the world around the branch

	names   map[string]int // of the nodes other nodes may name: where their value is
	order   []*dagSource
	output  int // -1 = none
	leaves  []flow.Seen
	nodes   map[string]*define.Node // of the definition, unfolded
	special map[string]bool         // nodes that compensate, or run finally
	by      *dagLowerer
}

// dagSource is a node of a definition and what was made of it.
type dagSource struct {
	key    string
	source *define.Node
	guards []*flow.PlanNode // in the order in which they run
	node   *flow.PlanNode   // itself, or the join of a branch
	inner  *dagScope        // of a branch
	sees   []flow.Seen      // what its references may name
}

// lowerDag lowers a scope of dag mode.
func (l *lowerer) lowerDag(d *define.Definition, profile flow.Profile, depth int, under string) *flow.PlanScope {
	dl := &dagLowerer{lowerer: l, profile: profile, depth: depth, closingPrefix: under, defaults: settingsOf(d, profile)}
	failFast, _ := failFastOf(d, profile)
	dl.g = &flow.PlanScope{Nodes: map[string]*flow.PlanNode{}, Dag: &flow.Dag{Output: -1, FailFast: failFast}}
	s := dl.declareNodes(d, &dagScope{run: -1, by: dl})
	dl.connectNodes(s)
	dl.linkDependents()
	dl.g.Dag.Output, dl.g.Dag.Leaves = s.output, s.leaves
	l.scopes[dl.g] = s
	return dl.g
}

func failFastOf(d *define.Definition, profile flow.Profile) (failFast, known bool) {
	switch d.OnError {
	case "":
		return profile == flow.ProfilePgflow, true
	case define.OnErrorFailFast, define.OnErrorFail:
		return true, true
	}
	return false, d.OnError == define.OnErrorContinue
}

// declareNodes gives every node of a definition, and what is made for it, a place in the list.
func (l *dagLowerer) declareNodes(d *define.Definition, s *dagScope) *dagScope {
	s.names, s.output = map[string]int{}, -1
	s.nodes = unfoldNodes(d.Nodes)
	s.special = l.lowerSpecials(s.nodes, l.finallyOf(d, s), l.closingPrefix+s.prefix, l.closingNode)
	for _, key := range define.InOrder(s.nodes) {
		if s.special[key] {
			continue
		}
		src := &dagSource{key: key, source: orEmpty(s.nodes[key])}
		s.order = append(s.order, src)
		l.declareNode(s, src)
	}
	return s
}

// finallyOf is the finally of the whole flow; an inner one has none.
func (l *dagLowerer) finallyOf(d *define.Definition, s *dagScope) string {
	if s.prefix == "" && l.depth == 0 {
		return d.Finally
	}
	return ""
}

func (l *dagLowerer) declareNode(s *dagScope, src *dagSource) {
	kind, _ := dagKind(src.source)
	if kind == flow.KindOutput {
		src.node = l.addNode(s.prefix+outputSlug, flow.KindOutput)
		s.output = src.node.Dag.Index
		return
	}
	branch := kind == flow.KindBranch
	inner := innerDag(src.source, branch)
	if branch {
		l.addGuard(s, src, flow.KindGate)
	}
	if src.source.When != nil && src.source.When.Cond != nil {
		l.addGuard(s, src, flow.KindCond)
	}
	switch {
	case branch && !src.source.Prep.Empty():
		l.addGuard(s, src, flow.KindPrep)
	case kind == flow.KindFanout && src.source.Each != nil && src.source.Each.Items.Handler.Given():
		l.addGuard(s, src, flow.KindPrep)
	}
	switch {
	case inner != nil:
		src.inner = l.declareNodes(inner, &dagScope{prefix: s.prefix + src.key + "/", by: l})
		kind = flow.KindJoin
	case branch:
		kind = flow.KindSubflow
	}
	src.node = l.addNode(s.prefix+src.key, kind)
	s.names[src.key] = src.node.Dag.Index
	for _, g := range src.guards {
		g.Dag.For = src.node.Dag.Index
	}
}

// innerDag is the flow of a branch if it is of dag mode, so that it is laid out in this scope.
func innerDag(n *define.Node, branch bool) *define.Definition {
	if f := n.Flow; branch && f != nil && f.Definition != nil && ModeOf(f.Definition) == flow.ModeDag {
		return f.Definition
	}
	return nil
}

// outputSlug is where a scope's output node is found, whatever it was called.
const outputSlug = "output"

// addGuard adds a node that is made for another one.
func (l *dagLowerer) addGuard(s *dagScope, src *dagSource, kind flow.Kind) {
	src.guards = append(src.guards, l.addNode(s.prefix+string(kind)+":"+src.key, kind))
}

func (l *dagLowerer) addNode(key string, kind flow.Kind) *flow.PlanNode {
	n := &flow.PlanNode{Key: key, Kind: kind, Dag: &flow.PlanDag{Index: len(l.g.Dag.List), For: -1, Run: -1, Entry: -1}}
	l.g.Dag.List = append(l.g.Dag.List, n)
	l.g.Nodes[key] = n
	return n
}

// dagKind is a node's kind in dag mode; each makes a fanout of a plain node. Known is false for a
// word that means none.
func dagKind(n *define.Node) (k flow.Kind, known bool) {
	switch k := flow.Kind(n.Kind); k {
	case "", flow.KindExecutor, "remote", "single":
		if n.Each != nil {
			return flow.KindFanout, true
		}
		return flow.KindExecutor, true
	case flow.KindFanout, "map", flow.KindForeach, flow.KindParallel:
		return flow.KindFanout, true
	case flow.KindBranch, flow.KindOutput, flow.KindTimer, flow.KindWaitEvent, flow.KindApproval:
		return k, true
	case flow.KindSubflow:
		return flow.KindBranch, true
	}
	return flow.KindExecutor, false
}

// linkDependents makes the counters' side of the dependencies.
func (l *dagLowerer) linkDependents() {
	list := l.g.Dag.List
	for _, n := range list {
		slices.Sort(n.Dag.Deps)
		n.Dag.Deps = slices.Compact(n.Dag.Deps)
		for _, dep := range n.Dag.Deps {
			list[dep].Dag.Dependents = append(list[dep].Dag.Dependents, n.Dag.Index)
		}
	}
}

// nodeDefaults are what nodes take that say nothing themselves.
type nodeDefaults struct {
	shape flow.Shape
	def   define.Defaults

	timeoutUnset bool // the timeout there is the profile's
}

func settingsOf(d *define.Definition, profile flow.Profile) nodeDefaults {
	s := nodeDefaults{shape: flow.ShapeRunDeps, def: d.Defaults}
	if !knownExec(flow.ExecType(s.def.ExecType)) { // nodes do not take over what means nothing
		s.def.ExecType = ""
	}
	if routes[s.def.Route] == "" {
		s.def.Route = ""
	}
	if profile == flow.ProfileOrk {
		s.shape = flow.ShapeMerged
	}
	s.shape, _ = shapeOf(d.InputShape, s.shape)
	if profile == flow.ProfilePgflow {
		s.def.Retry = retryOr(s.def.Retry, &define.RetrySpec{MaxAttempts: 3, Delay: define.Duration{MS: 5_000}, Backoff: define.BackoffExponential})
	}
	if s.timeoutUnset = s.def.Timeout.IsZero(); s.timeoutUnset {
		switch profile {
		case flow.ProfilePgflow:
			s.def.Timeout = define.Duration{MS: 60_000}
		case flow.ProfileOrk:
			s.def.Timeout = define.Duration{MS: 3_600_000}
		}
	}
	if s.def.Route == "" && s.def.ExecType == "" && profile == flow.ProfilePgflow {
		s.def.Route = flow.RouteQueue
	}
	return s
}

func shapeOf(word string, otherwise flow.Shape) (s flow.Shape, known bool) {
	switch s := flow.Shape(word); s {
	case flow.ShapeRunDeps, flow.ShapeDeps, flow.ShapeMerged, flow.ShapeMapped:
		return s, true
	}
	return otherwise, word == ""
}
