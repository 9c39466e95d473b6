package compile

import (
	"slices"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// dagLowerer lowers one scope of dag mode. The nodes of a branch become nodes of the surrounding
// scope with slugs such as `review/gate:legal`. So one set of counters covers all nodes.
type dagLowerer struct {
	*lowerer
	g             *flow.PlanScope
	profile       flow.Profile
	defaults      nodeDefaults
	depth         int
	closingPrefix string // prefix of its node keys in the closing scope
}

// dagScope holds the data shared by the nodes of one definition within the scope.
type dagScope struct {
	prefix string
	entry  []int       // nodes that roots wait for: the last gate, cond and prep of a branch
	run    int         // node whose output is `run`
	sees   []flow.Seen // outputs from outside the branch that roots see

	names   map[string]int // nodes that other nodes may name, with the index of their value
	order   []*dagSource
	output  int // index of the output node; -1 if there is none
	leaves  []flow.Seen
	nodes   map[string]*definition.Node // nodes of the definition, unfolded
	special map[string]bool             // nodes that compensate, and the finally
	by      *dagLowerer
}

// dagSource is a node of a definition with the nodes generated from it.
type dagSource struct {
	key    string
	source *definition.Node
	guards []*flow.PlanNode // in the order in which they run
	node   *flow.PlanNode   // the node itself, or the join of a branch
	inner  *dagScope        // scope of a branch
	sees   []flow.Seen      // outputs that its references may name
}

// lowerDag lowers a scope of dag mode.
func (l *lowerer) lowerDag(d *definition.Definition, profile flow.Profile, depth int, under string) *flow.PlanScope {
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

func failFastOf(d *definition.Definition, profile flow.Profile) (failFast, known bool) {
	switch d.OnError {
	case "":
		return profile == flow.ProfilePgflow, true
	case definition.OnErrorFailFast, definition.OnErrorFail:
		return true, true
	}
	return false, d.OnError == definition.OnErrorContinue
}

// declareNodes adds every node of a definition, and the nodes generated for it, to the list.
func (l *dagLowerer) declareNodes(d *definition.Definition, s *dagScope) *dagScope {
	s.names, s.output = map[string]int{}, -1
	s.nodes = unfoldNodes(d.Nodes)
	s.special = l.lowerSpecials(s.nodes, l.finallyOf(d, s), l.closingPrefix+s.prefix, l.closingNode)
	for _, key := range definition.InOrder(s.nodes) {
		if s.special[key] {
			continue
		}
		src := &dagSource{key: key, source: orEmpty(s.nodes[key])}
		s.order = append(s.order, src)
		l.declareNode(s, src)
	}
	return s
}

// finallyOf returns the finally of the whole flow. A nested flow has no finally.
func (l *dagLowerer) finallyOf(d *definition.Definition, s *dagScope) string {
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
		by := l.withSettings(inner)
		src.inner = by.declareNodes(inner, &dagScope{prefix: s.prefix + src.key + "/", by: by})
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

// innerDag returns the flow of a branch if the flow is a dag, whose nodes become nodes of this
// scope.
func innerDag(n *definition.Node, branch bool) *definition.Definition {
	if f := n.Flow; branch && f != nil && f.Definition != nil && ModeOf(f.Definition) == flow.ModeDag {
		return f.Definition
	}
	return nil
}

// outputSlug is the slug of the output node of a scope. It does not depend on the key of the node.
const outputSlug = "output"

// addGuard adds a node that is generated for another one.
func (l *dagLowerer) addGuard(s *dagScope, src *dagSource, kind flow.Kind) {
	src.guards = append(src.guards, l.addNode(s.prefix+string(kind)+":"+src.key, kind))
}

func (l *dagLowerer) addNode(key string, kind flow.Kind) *flow.PlanNode {
	n := &flow.PlanNode{Key: key, Kind: kind, Dag: &flow.PlanDag{Index: len(l.g.Dag.List), For: -1, Run: -1, Entry: -1}}
	l.g.Dag.List = append(l.g.Dag.List, n)
	l.g.Nodes[key] = n
	return n
}

// dagKind returns the kind of a node in dag mode, and false for an unknown word. A plain node with
// each is a fanout.
func dagKind(n *definition.Node) (k flow.Kind, known bool) {
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

// linkDependents adds the reverse direction of the dependencies.
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

// nodeDefaults are the defaults for nodes that do not set these fields.
type nodeDefaults struct {
	shape flow.Shape
	def   definition.Defaults
	// flows that set each of these fields, by the name of the field
	origins map[string][]*definition.Definition

	timeoutUnset bool // the timeout comes from the profile
}

// Fields of the defaults of a flow.
const (
	defaultRetry    = "retry"
	defaultTimeout  = "timeout"
	defaultExecType = "exec_type"
	defaultRoute    = "route"
	defaultSkipMode = "skip_mode"
)

// obeyDefault notes that a node obeys a field of the defaults.
func (l *dagLowerer) obeyDefault(field string) {
	for _, d := range l.defaults.origins[field] {
		if l.obeyed[d] == nil {
			l.obeyed[d] = map[string]bool{}
		}
		l.obeyed[d][field] = true
	}
}

// withSettings returns the lowerer for the nodes of a branch whose nodes are in this scope.
// Settings that the flow of the branch does not have are taken from the surrounding flow.
func (l *dagLowerer) withSettings(inner *definition.Definition) *dagLowerer {
	if profile := profileOf(inner); inner.Profile != "" && profile != l.profile {
		own := *l
		own.profile, own.defaults = profile, settingsOf(inner, profile)
		return &own
	}
	if inner.Defaults == (definition.Defaults{}) && inner.InputShape == "" {
		return l
	}
	own, around := *l, l.defaults
	s := settingsOf(inner, l.profile)
	s.shape, _ = shapeOf(inner.InputShape, around.shape)
	switch {
	case inner.Defaults.Retry == nil:
		s.def.Retry = around.def.Retry
		s.inheritOrigins(&around, defaultRetry)
	case l.profile == flow.ProfilePgflow:
		s.def.Retry = retryOr(inner.Defaults.Retry, around.def.Retry)
		if *s.def.Retry != *inner.Defaults.Retry {
			s.inheritOrigins(&around, defaultRetry)
		}
	}
	if inner.Defaults.Timeout.IsZero() {
		s.def.Timeout, s.timeoutUnset = around.def.Timeout, around.timeoutUnset
		s.inheritOrigins(&around, defaultTimeout)
	}
	if inner.Defaults.ExecType == "" && inner.Defaults.Route == "" {
		s.def.ExecType, s.def.Route = around.def.ExecType, around.def.Route
		s.inheritOrigins(&around, defaultExecType, defaultRoute)
	}
	if inner.Defaults.SkipMode == "" {
		s.def.SkipMode = around.def.SkipMode
		s.inheritOrigins(&around, defaultSkipMode)
	}
	own.defaults = s
	return &own
}

// inheritOrigins adds, for some fields, the flows that set them in the defaults of the surrounding
// flow.
func (s *nodeDefaults) inheritOrigins(around *nodeDefaults, fields ...string) {
	for _, field := range fields {
		s.origins[field] = append(s.origins[field], around.origins[field]...)
	}
}

// writtenDefaults returns the fields that the defaults of a flow set.
func writtenDefaults(def *definition.Defaults) (fields []string) {
	for _, field := range []struct {
		name    string
		written bool
	}{
		{defaultRetry, def.Retry != nil}, {defaultTimeout, !def.Timeout.IsZero()}, {defaultExecType, def.ExecType != ""},
		{defaultRoute, def.Route != ""}, {defaultSkipMode, def.SkipMode != ""},
	} {
		if field.written {
			fields = append(fields, field.name)
		}
	}
	return fields
}

// settingsOf returns the settings of a flow, completed by its profile.
func settingsOf(d *definition.Definition, profile flow.Profile) nodeDefaults {
	s := nodeDefaults{shape: flow.ShapeRunDeps, def: d.Defaults, origins: map[string][]*definition.Definition{}}
	for _, field := range writtenDefaults(&d.Defaults) {
		s.origins[field] = []*definition.Definition{d}
	}
	if !knownExec(flow.ExecType(s.def.ExecType)) { // invalid values are not passed on to nodes
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
		s.def.Retry = retryOr(s.def.Retry, &definition.RetrySpec{MaxAttempts: 3,
			Delay: definition.Duration{MS: 5_000}, Backoff: definition.BackoffExponential})
	}
	if s.timeoutUnset = s.def.Timeout.IsZero(); s.timeoutUnset {
		switch profile {
		case flow.ProfilePgflow:
			s.def.Timeout = definition.Duration{MS: 60_000}
		case flow.ProfileOrk:
			s.def.Timeout = definition.Duration{MS: 3_600_000}
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
