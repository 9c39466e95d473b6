package compile

import (
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/types"
)

// connectNodes sets the dependencies, visible outputs and execution of each node of a scope.
func (l *dagLowerer) connectNodes(s *dagScope) {
	waited := map[string]bool{}
	for _, src := range s.order {
		for _, dep := range src.source.DependsOn {
			waited[dep] = true
		}
	}
	for _, src := range s.order {
		if _, named := s.names[src.key]; named && !waited[src.key] {
			s.leaves = append(s.leaves, flow.Seen{Name: src.key, As: src.source.Name, Index: src.node.Dag.Index})
		}
	}
	for _, src := range s.order {
		l.connectNode(s, src)
	}
	if s.output >= 0 {
		out := l.g.Dag.List[s.output].Dag
		out.Sees = s.leaves
		out.Deps = s.makeAlways(out, seenIndexes(s.leaves))
	}
}

func seenIndexes(seen []flow.Seen) []int {
	list := make([]int, len(seen))
	for i := range seen {
		list[i] = seen[i].Index
	}
	return list
}

func (l *dagLowerer) connectNode(s *dagScope, src *dagSource) {
	if src.node.Kind == flow.KindOutput {
		l.lowerOutputNode(s, src)
		return
	}
	src.node.Name = src.source.Name
	deps, sees, run := slices.Clone(s.entry), s.sees, s.run
	if len(src.source.DependsOn) > 0 {
		deps, sees = nil, nil
		for _, name := range src.source.DependsOn {
			if i, ok := s.names[name]; ok && name != src.key {
				deps, sees = append(deps, i), append(sees, flow.Seen{Name: name, As: orEmpty(s.nodes[name]).Name, Index: i})
			}
		}
	}
	first := src.firstNode()
	if src.source.RunOn == runAlways {
		deps = s.makeAlways(first.Dag, deps)
	}
	mode := l.skipMode(src.source)
	src.sees, src.node.Dag.Sees, src.node.Dag.Run = sees, sees, run
	for _, g := range src.guards {
		g.Dag.Deps, g.Dag.Sees, g.Dag.Run, g.Dag.Shape = deps, sees, run, l.defaults.shape
		deps = []int{g.Dag.Index}
		src.node.Dag.Guards = append(src.node.Dag.Guards, g.Dag.Index)
		g.Dag.Mode = flow.SkipPropagate
		l.lowerGuardNode(src, g)
	}
	l.lowerWhen(src.source.When, first)
	if mode == flow.SkipFail {
		first.Dag.Mode = flow.SkipFail
		for _, g := range src.guards {
			g.Dag.Mode = flow.SkipFail
		}
	}
	p := src.node.Dag
	p.Deps, p.Mode = deps, mode
	if src.source.Compensate != "" {
		src.node.Undo = l.closingPrefix + s.prefix + src.source.Compensate
	}
	if src.inner != nil {
		l.connectBranch(src, deps, sees, run)
		return
	}
	l.lowerWorkNode(s, src)
}

// firstNode returns the first node that runs for a source: its first guard, or the node itself.
func (src *dagSource) firstNode() *flow.PlanNode {
	if len(src.guards) > 0 {
		return src.guards[0]
	}
	return src.node
}

// makeAlways makes a node run regardless of how its dependencies end, unless the whole surrounding
// branch does not run.
func (s *dagScope) makeAlways(p *flow.PlanDag, deps []int) []int {
	p.Always = true
	if len(s.entry) > 0 {
		p.Entry = s.entry[0]
	}
	return append(deps, s.entry...)
}

// Values of run_on.
const (
	runAlways    = "always"
	runOnSuccess = "success"
)

// connectBranch connects a branch: its inner nodes begin after its guards, and the join comes after
// all of them.
func (l *dagLowerer) connectBranch(src *dagSource, entry []int, sees []flow.Seen, run int) {
	inner := src.inner
	inner.entry, inner.sees, inner.run = entry, sees, run
	if src.source.Flow.Embedded != "" {
		inner.sees = nil
	}
	if i := slices.IndexFunc(src.guards, func(g *flow.PlanNode) bool { return g.Kind == flow.KindPrep }); i >= 0 {
		inner.run = src.guards[i].Dag.Index
	}
	inner.by.connectNodes(inner)
	p := src.node.Dag
	p.Always, p.Sees = true, inner.leaves
	if inner.output >= 0 {
		p.Sees = []flow.Seen{{Index: inner.output}}
	}
	p.Deps = slices.Clone(entry)
	for _, in := range inner.order {
		p.Deps = append(p.Deps, in.node.Dag.Index)
	}
}

// lowerGuardNode lowers a gate, cond or prep.
func (l *dagLowerer) lowerGuardNode(src *dagSource, g *flow.PlanNode) {
	if f := src.source.Flow; g.Kind == flow.KindPrep && src.node.Kind != flow.KindFanout && f != nil && f.Definition != nil {
		g.Dag.Takes = inputsOf(f.Definition)
	}
	if h, ok := src.guardHandler(g); ok {
		l.lowerWork(g, handlerNode(h, src.source), src.source, g.Key)
		return
	}
	if g.Kind == flow.KindPrep {
		l.lowerMapping(g, src)
	}
}

// guardHandler returns the handler of a guard. A gate and a mapping have no handler.
func (src *dagSource) guardHandler(g *flow.PlanNode) (h definition.Handler, ok bool) {
	switch {
	case g.Kind == flow.KindCond:
		return *src.source.When.Cond, true
	case g.Kind == flow.KindPrep && src.node.Kind == flow.KindFanout:
		return src.source.Each.Items.Handler, true
	case g.Kind == flow.KindPrep && src.source.Prep.Given():
		return src.source.Prep.Handler, true
	}
	return definition.Handler{}, false
}

// lowerWhen sets a node's condition, which is evaluated before its guards run.
func (l *dagLowerer) lowerWhen(w *definition.When, first *flow.PlanNode) {
	if w == nil {
		return
	}
	first.Dag.If, first.Dag.Has = parsePattern(w.If)
	first.Dag.IfNot, first.Dag.Not = parsePattern(w.IfNot)
	if w.Expr != "" {
		first.Dag.Expr = l.compileCEL(w.Expr, true)
	}
}

// skipMode returns the skip mode of a node, from skip_mode or whenUnmet.
func (l *dagLowerer) skipMode(n *definition.Node) flow.SkipMode {
	own := cmp.Or(pgflowSkips[n.WhenUnmet], n.WhenUnmet, n.SkipMode)
	if own == "" && n.When != nil {
		l.obeyDefault(defaultSkipMode)
	}
	m, _ := skipWord(own)
	of, _ := skipWord(l.defaults.def.SkipMode)
	return cmp.Or(m, of, flow.SkipPropagate)
}

// pgflowSkips maps words of whenUnmet that skip_mode does not have.
var pgflowSkips = map[string]string{"skip": string(flow.SkipOptional), "skip-cascade": string(flow.SkipPropagate)}

// skipWord returns the skip mode of a word, or "" if it is empty or unknown.
func skipWord(word string) (m flow.SkipMode, known bool) {
	switch m := flow.SkipMode(word); m {
	case "", flow.SkipPropagate, flow.SkipOptional, flow.SkipFail:
		return m, true
	}
	return "", false
}

// exhaustedMode returns the mode of on_exhausted.
func exhaustedMode(word string) (m flow.SkipMode, known bool) {
	switch word {
	case "", "fail":
		return flow.SkipFail, true
	case "skip", string(flow.SkipOptional):
		return flow.SkipOptional, true
	case "skip-cascade", string(flow.SkipPropagate):
		return flow.SkipPropagate, true
	}
	return flow.SkipFail, false
}

// lowerWorkNode lowers the work of a node.
func (l *dagLowerer) lowerWorkNode(s *dagScope, src *dagSource) {
	n, p := src.source, src.node
	p.Params = compactParams(n.Params)
	p.Out, _ = types.ReadForm(n.OutputType)
	p.Dag.Exhausted, _ = exhaustedMode(n.Exhausted)
	p.Dag.StartDelayMS = n.StartDelay.MS
	l.lowerInput(src)
	l.lowerRetry(p, n)
	switch p.Kind {
	case flow.KindExecutor:
		p.Single, p.Deferred = true, l.canDefer(n)
		p.Exec = l.lowerExec(n, src.key)
	case flow.KindFanout:
		p.Deferred = l.canDefer(n)
		p.Exec = l.lowerExec(n, src.key)
		l.lowerEach(src)
	case flow.KindSubflow:
		p.Sub = l.lowerSubflow(n, flow.Exec{}, l.branchSource(s), src.key)
		p.Retry = flow.Retry{}
		if n.Retry != nil {
			p.Retry = retryOfScope(n.Retry)
		}
	}
	l.noteRetry(p, n)
	p.Exec.Vars = programVars(n, src.sees)
	l.lowerTimes(p, n)
	l.nodeKeys(n, p)
}

// branchSource returns the source around a flow of graph mode in a branch.
func (l *dagLowerer) branchSource(s *dagScope) *scopeSource {
	return &scopeSource{depth: l.depth, prefix: l.closingPrefix + s.prefix}
}

// lowerEach sets the source of the units of a fanout.
func (l *dagLowerer) lowerEach(src *dagSource) {
	n, p := src.source, src.node
	e := eachOf(n)
	p.Each = &flow.Each{Window: e.Concurrency}
	p.Strategy, _ = l.eachStrategy(e.OnError)
	switch {
	case e.Items.Handler.Given():
		prep := src.guards[len(src.guards)-1]
		p.Dag.Items = &flow.PlanRef{From: flow.FromDep, Dep: prep.Dag.Index, Text: prep.Key}
	case e.Items.Ref != "":
		p.Dag.Items = src.parseReference(e.Items.Ref)
	case e.Count.IsZero() && n.Kind == "map":
		l.mapItems(src)
	}
	switch {
	case e.Count.Literal:
		p.Dag.Repeats = e.Count.Number
	case e.Count.Ref != "":
		p.Dag.Count = src.parseReference(e.Count.Ref)
	}
}

// eachOf returns the each of a node, or an empty EachOf.
func eachOf(n *definition.Node) *definition.EachOf {
	if n.Each == nil {
		return &definition.EachOf{}
	}
	return n.Each
}

// mapItems makes a map without a source work on its only dependency or on the run's input.
func (l *dagLowerer) mapItems(src *dagSource) {
	p := src.node.Dag
	switch {
	case len(src.source.DependsOn) > 0:
		if len(p.Sees) == 1 {
			p.Items = &flow.PlanRef{From: flow.FromDep, Dep: p.Sees[0].Index, Text: "$deps." + p.Sees[0].Name}
		}
	default:
		p.Items = &flow.PlanRef{From: flow.FromRun, Text: "$run"}
		if p.Run == -1 && l.depth == 0 && l.g.Dag.RootMap == "" {
			l.g.Dag.RootMap = src.node.Key
		}
	}
}

func (l *dagLowerer) eachStrategy(word string) (s flow.Strategy, known bool) {
	switch word {
	case "":
		if l.profile == flow.ProfilePgflow {
			return flow.FailFast, true
		}
		return flow.Collect, true
	case "fail_fast":
		return flow.FailFast, true
	case "collect", "collect_errors":
		return flow.Collect, true
	case "continue", "ignore", "ignore_errors":
		return flow.Continue, true
	}
	return flow.Collect, false
}

// lowerOutputNode sets the source of a scope's output: the work of a handler, a mapping, or the
// outputs of the leaves.
func (l *dagLowerer) lowerOutputNode(s *dagScope, src *dagSource) {
	p := src.node
	p.Dag.Run, p.Dag.Exhausted, p.Dag.Shape = s.run, flow.SkipFail, l.defaults.shape
	if hasHandler(src.source) {
		l.lowerWork(p, src.source, src.source, src.key)
		l.nodeKeys(src.source, p)
		return
	}
	src.sees, p.Dag.Sees = s.leaves, s.leaves
	l.lowerMapping(p, src)
}
