package compile

import (
	"cmp"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/types"
)

// connect says for each node of a scope what it waits for, what it sees and how it is carried out.
func (l *dagLowerer) connect(s *dagScope) {
	waited := map[string]bool{}
	for _, src := range s.order {
		for _, dep := range src.n.DependsOn {
			waited[dep] = true
		}
	}
	for _, src := range s.order {
		if _, named := s.names[src.key]; named && !waited[src.key] {
			s.leaves = append(s.leaves, flow.Seen{Name: src.key, As: src.n.Name, Index: src.node.Dag.Index})
		}
	}
	for _, src := range s.order {
		l.connectNode(s, src)
	}
	if s.output >= 0 {
		out := l.g.Dag.List[s.output].Dag
		out.Sees = s.leaves
		out.Deps = s.always(out, indexes(s.leaves))
	}
}

func indexes(seen []flow.Seen) []int {
	list := make([]int, len(seen))
	for i := range seen {
		list[i] = seen[i].Index
	}
	return list
}

func (l *dagLowerer) connectNode(s *dagScope, src *dagSource) {
	if src.node.Kind == flow.KindOutput {
		l.outputNode(s, src)
		return
	}
	src.node.Name = src.n.Name
	deps, sees, run := slices.Clone(s.entry), s.sees, s.run
	if len(src.n.DependsOn) > 0 {
		deps, sees = nil, nil
		for _, name := range src.n.DependsOn {
			if i, ok := s.names[name]; ok && name != src.key {
				deps, sees = append(deps, i), append(sees, flow.Seen{Name: name, As: orEmpty(s.nodes[name]).Name, Index: i})
			}
		}
	}
	first := src.first()
	if src.n.RunOn == runAlways {
		deps = s.always(first.Dag, deps)
	}
	mode := l.skipMode(src.n)
	src.sees, src.node.Dag.Sees, src.node.Dag.Run = sees, sees, run
	for _, g := range src.ghosts {
		g.Dag.Deps, g.Dag.Sees, g.Dag.Run, g.Dag.Shape = deps, sees, run, l.set.shape
		deps = []int{g.Dag.Index}
		src.node.Dag.Guards = append(src.node.Dag.Guards, g.Dag.Index)
		g.Dag.Mode = flow.SkipPropagate
		l.ghostNode(src, g)
	}
	l.when(src.n.When, first)
	if mode == flow.SkipFail {
		first.Dag.Mode = flow.SkipFail
		for _, g := range src.ghosts {
			g.Dag.Mode = flow.SkipFail
		}
	}
	p := src.node.Dag
	p.Deps, p.Mode = deps, mode
	if src.n.Compensate != "" {
		src.node.Undo = l.under + s.prefix + src.n.Compensate
	}
	if src.inner != nil {
		l.join(src, deps, sees, run)
		return
	}
	l.workNode(s, src)
}

// first is what begins with a node: itself, or what was made for it.
func (src *dagSource) first() *flow.PlanNode {
	if len(src.ghosts) > 0 {
		return src.ghosts[0]
	}
	return src.node
}

// always has a node run however its dependencies end, unless the whole branch around it does not.
func (s *dagScope) always(p *flow.PlanDag, deps []int) []int {
	p.Always = true
	if len(s.entry) > 0 {
		p.Entry = s.entry[0]
	}
	return append(deps, s.entry...)
}

// Words of run_on.
const (
	runAlways    = "always"
	runOnSuccess = "success"
)

// join connects a branch: its inner nodes begin behind its ghosts, and the join is behind all of them.
func (l *dagLowerer) join(src *dagSource, entry []int, sees []flow.Seen, run int) {
	inner := src.inner
	inner.entry, inner.sees, inner.run = entry, sees, run
	if src.n.Flow.Embedded != "" {
		inner.sees = nil
	}
	if i := slices.IndexFunc(src.ghosts, func(g *flow.PlanNode) bool { return g.Kind == flow.KindPrep }); i >= 0 {
		inner.run = src.ghosts[i].Dag.Index
	}
	l.connect(inner)
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

// ghostNode says how a gate, cond or prep is carried out.
func (l *dagLowerer) ghostNode(src *dagSource, g *flow.PlanNode) {
	if f := src.n.Flow; g.Kind == flow.KindPrep && src.node.Kind != flow.KindFanout && f != nil && f.Definition != nil {
		g.Dag.Takes = inputsOf(f.Definition)
	}
	if h, ok := src.handler(g); ok {
		l.worked(g, handlerNode(h, src.n), src.n, g.Key)
		return
	}
	if g.Kind == flow.KindPrep {
		l.mapping(g, src)
	}
}

// handler is who carries out what was made for a node; a gate and a mapping have none.
func (src *dagSource) handler(g *flow.PlanNode) (h define.Handler, ok bool) {
	switch {
	case g.Kind == flow.KindCond:
		return *src.n.When.Cond, true
	case g.Kind == flow.KindPrep && src.node.Kind == flow.KindFanout:
		return src.n.Each.Items.Handler, true
	case g.Kind == flow.KindPrep && src.n.Prep.Given():
		return src.n.Prep.Handler, true
	}
	return define.Handler{}, false
}

// when reads a node's condition, which is looked at before anything is made for it.
func (l *dagLowerer) when(w *define.When, first *flow.PlanNode) {
	if w == nil {
		return
	}
	first.Dag.If, first.Dag.Has = pattern(w.If)
	first.Dag.IfNot, first.Dag.Not = pattern(w.IfNot)
	if w.Expr != "" {
		first.Dag.Expr = l.cel(w.Expr, true)
	}
}

// skipMode reads skip_mode, or the same in pgflow's words.
func (l *dagLowerer) skipMode(n *define.Node) flow.SkipMode {
	m, _ := skipWord(cmp.Or(pgflowSkips[n.WhenUnmet], n.WhenUnmet, n.SkipMode))
	of, _ := skipWord(l.set.def.SkipMode)
	return cmp.Or(m, of, flow.SkipPropagate)
}

// pgflowSkips are words of whenUnmet that skip_mode does not have.
var pgflowSkips = map[string]string{"skip": string(flow.SkipOptional), "skip-cascade": string(flow.SkipPropagate)}

// skipWord is "" when nothing is said, or nothing that has a meaning.
func skipWord(word string) (m flow.SkipMode, known bool) {
	switch m := flow.SkipMode(word); m {
	case "", flow.SkipPropagate, flow.SkipOptional, flow.SkipFail:
		return m, true
	}
	return "", false
}

// exhausted reads on_exhausted.
func exhausted(word string) (m flow.SkipMode, known bool) {
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

// workNode says how a node of a definition does its work.
func (l *dagLowerer) workNode(s *dagScope, src *dagSource) {
	n, p := src.n, src.node
	p.Params = params(n.Params)
	p.Out, _ = types.ReadForm(n.OutputType)
	p.Dag.Exhausted, _ = exhausted(n.Exhausted)
	p.Dag.StartDelayMS = n.StartDelay.MS
	l.input(src)
	l.tries(p, n)
	switch p.Kind {
	case flow.KindExecutor:
		p.Single, p.Deferred = true, l.defers(n)
		p.Exec = l.exec(n, src.key)
	case flow.KindFanout:
		p.Deferred = l.defers(n)
		p.Exec = l.exec(n, src.key)
		l.each(src)
	case flow.KindSubflow:
		p.Sub = l.subflow(n, flow.Exec{}, l.inside(s), src.key)
		p.Retry = flow.Retry{}
		if n.Retry != nil {
			p.Retry = retryOfScope(n.Retry)
		}
	}
	p.Exec.Vars = vars(n, src.sees)
	l.times(p, n)
	l.nodeKeys(n, p)
}

// inside is what a flow of graph mode in a branch is a part of.
func (l *dagLowerer) inside(s *dagScope) *scopeSource {
	return &scopeSource{depth: l.depth, prefix: l.under + s.prefix}
}

// each says where the units of a fanout come from.
func (l *dagLowerer) each(src *dagSource) {
	n, p := src.n, src.node
	e := eachOf(n)
	p.Each = &flow.Each{Window: e.Concurrency}
	p.Strategy, _ = l.eachStrategy(e.OnError)
	switch {
	case e.Items.Handler.Given():
		prep := src.ghosts[len(src.ghosts)-1]
		p.Dag.Items = &flow.PlanRef{From: flow.FromDep, Dep: prep.Dag.Index, Text: prep.Key}
	case e.Items.Ref != "":
		p.Dag.Items = src.reference(e.Items.Ref)
	case e.Count.IsZero() && n.Kind == "map":
		l.mapItems(src)
	}
	switch {
	case e.Count.Literal:
		p.Dag.Repeats = e.Count.Number
	case e.Count.Ref != "":
		p.Dag.Count = src.reference(e.Count.Ref)
	}
}

// eachOf is a node's each, or one that says nothing.
func eachOf(n *define.Node) *define.EachOf {
	if n.Each == nil {
		return &define.EachOf{}
	}
	return n.Each
}

// mapItems has a map, which names no source, work on its one dependency or on the run's input.
func (l *dagLowerer) mapItems(src *dagSource) {
	p := src.node.Dag
	switch {
	case len(src.n.DependsOn) > 0:
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

// outputNode says what a scope's output is made of: a handler's work, a mapping, or the leaves as they are.
func (l *dagLowerer) outputNode(s *dagScope, src *dagSource) {
	p := src.node
	p.Dag.Run, p.Dag.Exhausted, p.Dag.Shape = s.run, flow.SkipFail, l.set.shape
	if handled(src.n) {
		l.worked(p, src.n, src.n, src.key)
		l.nodeKeys(src.n, p)
		return
	}
	src.sees, p.Dag.Sees = s.leaves, s.leaves
	l.mapping(p, src)
}
