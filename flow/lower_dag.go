package flow

import "slices"

// dagLowerer lowers one scope of dag mode. Branches are laid out flat: their nodes become nodes of the scope
// around them, under slugs such as `review/gate:legal`, so that one set of counters serves all.
type dagLowerer struct {
	*lowerer
	g       *Graph
	profile Profile
	set     settings
	depth   int
	under   string // what the keys of its nodes begin with in the closing scope
}

// dagScope is what nodes of one definition within the scope have in common.
type dagScope struct {
	prefix string
	entry  []int  // that roots wait for: the last of a branch's gate, cond and prep
	run    int    // whose output is `run`
	sees   []Seen // what roots see of the world around the branch

	names   map[string]int // of the nodes other nodes may name: where their value is
	order   []*dagSource
	output  int // -1 = none
	leaves  []Seen
	nodes   map[string]*Node // of the definition, unfolded
	special map[string]bool  // nodes that compensate, or run finally
	by      *dagLowerer
}

// dagSource is a node of a definition and what was made of it.
type dagSource struct {
	key    string
	n      *Node
	ghosts []*PlanNode // in the order in which they run
	node   *PlanNode   // itself, or the join of a branch
	inner  *dagScope   // of a branch
	sees   []Seen      // what its references may name
}

// dag lowers a scope of dag mode.
func (l *lowerer) dag(d *Definition, profile Profile, depth int, under string) *Graph {
	dl := &dagLowerer{lowerer: l, profile: profile, depth: depth, under: under, set: settingsOf(d, profile)}
	failFast, _ := failFastOf(d, profile)
	dl.g = &Graph{Nodes: map[string]*PlanNode{}, Dag: &Dag{Output: -1, FailFast: failFast}}
	s := dl.declare(d, &dagScope{run: -1, by: dl})
	dl.connect(s)
	dl.wire()
	dl.g.Dag.Output, dl.g.Dag.Leaves = s.output, s.leaves
	l.scopes[dl.g] = s
	return dl.g
}

// Words of on_error in dag mode.
const (
	onErrorContinue = "continue"
	onErrorFailFast = "fail_fast"
)

func failFastOf(d *Definition, profile Profile) (failFast, known bool) {
	switch d.OnError {
	case "":
		return profile == ProfilePgflow, true
	case onErrorFailFast, onErrorFail:
		return true, true
	}
	return false, d.OnError == onErrorContinue
}

// declare gives every node of a definition, and what is made for it, a place in the list.
func (l *dagLowerer) declare(d *Definition, s *dagScope) *dagScope {
	s.names, s.output = map[string]int{}, -1
	s.nodes = unfolded(d.Nodes)
	s.special = l.specials(s.nodes, l.finallyOf(d, s), l.under+s.prefix, l.closingNode)
	for _, key := range inOrder(s.nodes) {
		if s.special[key] {
			continue
		}
		src := &dagSource{key: key, n: s.nodes[key].orEmpty()}
		s.order = append(s.order, src)
		l.declareNode(s, src)
	}
	return s
}

// finallyOf is the finally of the whole flow; an inner one has none.
func (l *dagLowerer) finallyOf(d *Definition, s *dagScope) string {
	if s.prefix == "" && l.depth == 0 {
		return d.Finally
	}
	return ""
}

func (l *dagLowerer) declareNode(s *dagScope, src *dagSource) {
	kind, _ := dagKind(src.n)
	if kind == KindOutput {
		src.node = l.add(s.prefix+outputSlug, KindOutput)
		s.output = src.node.Dag.Index
		return
	}
	branch := kind == KindBranch
	inner := innerDag(src.n, branch)
	if branch {
		l.ghost(s, src, KindGate)
	}
	if src.n.When != nil && src.n.When.Cond != nil {
		l.ghost(s, src, KindCond)
	}
	switch {
	case branch && !src.n.Prep.empty():
		l.ghost(s, src, KindPrep)
	case kind == KindFanout && src.n.Each != nil && src.n.Each.Items.Handler.given():
		l.ghost(s, src, KindPrep)
	}
	switch {
	case inner != nil:
		src.inner = l.declare(inner, &dagScope{prefix: s.prefix + src.key + "/", by: l})
		kind = KindJoin
	case branch:
		kind = KindSubflow
	}
	src.node = l.add(s.prefix+src.key, kind)
	s.names[src.key] = src.node.Dag.Index
	for _, g := range src.ghosts {
		g.Dag.For = src.node.Dag.Index
	}
}

func (p Prep) empty() bool {
	return !p.given() && p.Expr == "" && p.InputMap == nil && p.InputKey == ""
}

// innerDag is the flow of a branch if it is of dag mode, so that it is laid out in this scope.
func innerDag(n *Node, branch bool) *Definition {
	if f := n.Flow; branch && f != nil && f.Definition != nil && modeOf(f.Definition) == modeDag {
		return f.Definition
	}
	return nil
}

// outputSlug is where a scope's output node is found, whatever it was called.
const outputSlug = "output"

// ghost adds a node that is made for another one.
func (l *dagLowerer) ghost(s *dagScope, src *dagSource, kind Kind) {
	src.ghosts = append(src.ghosts, l.add(s.prefix+string(kind)+":"+src.key, kind))
}

func (l *dagLowerer) add(key string, kind Kind) *PlanNode {
	n := &PlanNode{Key: key, Kind: kind, Dag: &PlanDag{Index: len(l.g.Dag.List), For: -1, Run: -1, Entry: -1}}
	l.g.Dag.List = append(l.g.Dag.List, n)
	l.g.Nodes[key] = n
	return n
}

// dagKind is a node's kind in dag mode; each makes a fanout of a plain node. Known is false for a word that means none.
func dagKind(n *Node) (k Kind, known bool) {
	switch k := Kind(n.Kind); k {
	case "", KindExecutor, "remote", "single":
		if n.Each != nil {
			return KindFanout, true
		}
		return KindExecutor, true
	case KindFanout, "map", KindForeach, KindParallel:
		return KindFanout, true
	case KindBranch, KindOutput, KindTimer, KindWaitEvent, KindApproval:
		return k, true
	case KindSubflow:
		return KindBranch, true
	}
	return KindExecutor, false
}

// wire makes the counters' side of the dependencies.
func (l *dagLowerer) wire() {
	list := l.g.Dag.List
	for _, n := range list {
		slices.Sort(n.Dag.Deps)
		n.Dag.Deps = slices.Compact(n.Dag.Deps)
		for _, dep := range n.Dag.Deps {
			list[dep].Dag.Dependents = append(list[dep].Dag.Dependents, n.Dag.Index)
		}
	}
}

// settings are what nodes take that say nothing themselves.
type settings struct {
	shape Shape
	def   Defaults
}

func settingsOf(d *Definition, profile Profile) settings {
	s := settings{shape: ShapeRunDeps, def: d.Defaults}
	if !ExecType(s.def.ExecType).known() { // nodes do not take over what means nothing
		s.def.ExecType = ""
	}
	if routes[s.def.Route] == "" {
		s.def.Route = ""
	}
	if profile == ProfileOrk {
		s.shape = ShapeMerged
	}
	s.shape, _ = shapeOf(d.InputShape, s.shape)
	if profile == ProfilePgflow {
		s.def.Retry = s.def.Retry.or(&RetrySpec{MaxAttempts: 3, Delay: Duration{MS: 5_000}, Backoff: backoffExponential})
	}
	if s.def.Timeout.IsZero() {
		switch profile {
		case ProfilePgflow:
			s.def.Timeout = Duration{MS: 60_000}
		case ProfileOrk:
			s.def.Timeout = Duration{MS: 3_600_000}
		}
	}
	if s.def.Route == "" && s.def.ExecType == "" && profile == ProfilePgflow {
		s.def.Route = routeQueue
	}
	return s
}

func shapeOf(word string, otherwise Shape) (s Shape, known bool) {
	switch s := Shape(word); s {
	case ShapeRunDeps, ShapeDeps, ShapeMerged, ShapeMapped:
		return s, true
	}
	return otherwise, word == ""
}
