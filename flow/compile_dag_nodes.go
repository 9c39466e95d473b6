package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// connect says for each node of a scope what it waits for, what it sees and how it is carried out.
func (c *dagCompiler) connect(s *dagScope) {
	waited := map[string]*dagSource{} // by whom, last
	for _, src := range s.order {
		for i, dep := range src.n.DependsOn {
			c.dependency(s, src, i, waited[dep] == src)
			waited[dep] = src
		}
	}
	for _, src := range s.order {
		if _, named := s.names[src.key]; named && waited[src.key] == nil {
			s.leaves = append(s.leaves, Seen{src.key, src.node.Dag.Index})
		}
	}
	for _, src := range s.order {
		c.connectNode(s, src)
	}
	if s.output >= 0 {
		out := c.g.Dag.List[s.output].Dag
		out.Sees = s.leaves
		out.Deps = s.always(out, indexes(s.leaves))
	}
}

func indexes(seen []Seen) []int {
	list := make([]int, len(seen))
	for i := range seen {
		list[i] = seen[i].Index
	}
	return list
}

// dependency checks one entry of depends_on.
func (c *dagCompiler) dependency(s *dagScope, src *dagSource, i int, again bool) {
	dep, at := src.n.DependsOn[i], src.at.key("depends_on").index(i)
	switch _, known := s.names[dep]; {
	case dep == src.key:
		c.errorf(at, "a node cannot wait for itself")
	case again:
		c.errorf(at, "%.80q is there twice", dep)
	case s.special[dep]:
		c.errorf(at, "%.80q compensates or runs finally: nobody can wait for it", dep)
	case !known && strings.ContainsAny(dep, "/:"):
		c.errorf(at, "%.80q is in another scope: a node waits only for nodes beside it", dep)
	case !known:
		c.errorf(at, "unknown node %.80q", dep)
	}
}

func (c *dagCompiler) connectNode(s *dagScope, src *dagSource) {
	c.idleInDag(src.n, src.at)
	if src.node.Kind == KindOutput {
		c.outputNode(s, src)
		return
	}
	deps, sees, run := slices.Clone(s.entry), s.sees, s.run
	if len(src.n.DependsOn) > 0 {
		deps, sees = nil, nil
		for _, name := range src.n.DependsOn {
			if i, ok := s.names[name]; ok && name != src.key {
				deps, sees = append(deps, i), append(sees, Seen{name, i})
			}
		}
	}
	first := src.node
	if len(src.ghosts) > 0 {
		first = src.ghosts[0]
	}
	if c.always(src.n.RunOn, src.at) {
		deps = s.always(first.Dag, deps)
	}
	mode := c.skipMode(src)
	src.node.Dag.Sees, src.node.Dag.Run = sees, run // what references of its ghosts may name
	for _, g := range src.ghosts {
		g.Dag.Deps, g.Dag.Sees, g.Dag.Run, g.Dag.Shape = deps, sees, run, c.set.shape
		deps = []int{g.Dag.Index}
		src.node.Dag.Guards = append(src.node.Dag.Guards, g.Dag.Index)
		g.Dag.Mode = SkipPropagate
		c.ghostNode(src, g)
	}
	c.when(src, first)
	if mode == SkipFail {
		first.Dag.Mode = SkipFail
		for _, g := range src.ghosts {
			g.Dag.Mode = SkipFail
		}
	}
	p := src.node.Dag
	p.Deps, p.Mode = deps, mode
	if src.n.Compensate != "" {
		src.node.Undo = c.under + s.prefix + src.n.Compensate
	}
	if src.inner != nil {
		c.join(src, deps, sees, run)
		return
	}
	c.workNode(s, src)
}

// always has a node run however its dependencies end, unless the whole branch around it does not.
func (s *dagScope) always(p *PlanDag, deps []int) []int {
	p.Always = true
	if len(s.entry) > 0 {
		p.Entry = s.entry[0]
	}
	return append(deps, s.entry...)
}

// always reads run_on.
func (c *dagCompiler) always(word string, at *place) bool {
	switch word {
	case "", "success":
	case "always":
		return true
	default:
		c.errorf(at.key("run_on"), "unknown word %.80q: write success or always", word)
	}
	return false
}

// join connects a branch: its inner nodes begin behind its ghosts, and the join is behind all of them.
func (c *dagCompiler) join(src *dagSource, entry []int, sees []Seen, run int) {
	inner := src.inner
	inner.entry, inner.sees, inner.run = entry, sees, run
	if src.n.Flow.Embedded != "" {
		inner.sees = nil
	}
	if i := slices.IndexFunc(src.ghosts, func(g *PlanNode) bool { return g.Kind == KindPrep }); i >= 0 {
		inner.run = src.ghosts[i].Dag.Index
	}
	c.connect(inner)
	p := src.node.Dag
	p.Always, p.Sees = true, inner.leaves
	if inner.output >= 0 {
		p.Sees = []Seen{{"", inner.output}}
	}
	p.Deps = slices.Clone(entry)
	for _, in := range inner.order {
		p.Deps = append(p.Deps, in.node.Dag.Index)
	}
}

// ghostNode says how a gate, cond or prep is carried out.
func (c *dagCompiler) ghostNode(src *dagSource, g *PlanNode) {
	switch g.Kind {
	case KindCond:
		c.handler(g, *src.n.When.Cond, src, src.at.key("when").key("cond"))
	case KindPrep:
		switch {
		case src.node.Kind == KindFanout:
			c.handler(g, src.n.Each.Items.Handler, src, src.at.key("each").key("items"))
		case src.n.Prep.given():
			c.handler(g, src.n.Prep.Handler, src, src.at.key("prep"))
		default:
			c.mapping(g, src)
		}
	}
}

// handler makes a node one that somebody carries out.
func (c *dagCompiler) handler(g *PlanNode, h Handler, src *dagSource, at *place) {
	n := &Node{Service: h.Service, ExecType: h.ExecType, Func: h.Func, Script: h.Script, Labels: src.n.Labels, DagNode: DagNode{Route: h.Route}}
	g.Single = true
	g.Exec = c.dagExec(n, g.Key, at)
	c.tries(g, src.n, src.at)
	c.times(g, src.n, src.at)
}

// when reads a node's condition, which is looked at before anything is made for it.
func (c *dagCompiler) when(src *dagSource, first *PlanNode) {
	w := src.n.When
	if w == nil {
		return
	}
	at := src.at.key("when")
	first.Dag.If, first.Dag.Has = c.pattern(w.If, at.key("if"))
	first.Dag.IfNot, first.Dag.Not = c.pattern(w.IfNot, at.key("if_not"))
	if w.Expr != "" {
		first.Dag.Expr = c.condition(w.Expr, true, at.key("expr"))
	}
}

// pattern reads what an input has to contain, or must not.
func (c *dagCompiler) pattern(raw json.RawMessage, at *place) (json.RawMessage, *expr.Pattern) {
	if len(raw) == 0 {
		return nil, nil
	}
	p, problems := expr.ParsePattern(raw)
	for _, problem := range problems {
		c.errorf(at.inside(problem.Path), "%s", problem.Msg)
	}
	return expr.Compact(raw), p
}

// skipMode reads skip_mode, or the same in pgflow's words.
func (c *dagCompiler) skipMode(src *dagSource) SkipMode {
	n := src.n
	word, at := n.SkipMode, src.at.key("skip_mode")
	if n.WhenUnmet != "" {
		if word != "" {
			c.errorf(src.at.key("whenUnmet"), "says the same as skip_mode: give one of them")
		}
		word, at = n.WhenUnmet, src.at.key("whenUnmet")
		if n.When == nil {
			c.errorf(at, "has no effect without a condition: add when, or leave it out")
		}
		switch word {
		case "skip":
			word = string(SkipOptional)
		case "skip-cascade":
			word = string(SkipPropagate)
		}
	}
	m := c.skipWord(word, at)
	if m != "" && n.SkipMode != "" && n.When == nil {
		c.warnf(at, "has no effect without a condition: add when, or leave it out")
	}
	return cmp.Or(m, SkipMode(c.set.def.SkipMode), SkipPropagate)
}

// skipWord is "" when nothing is said, or nothing that has a meaning.
func (c *compiler) skipWord(word string, at *place) SkipMode {
	switch m := SkipMode(word); m {
	case "", SkipPropagate, SkipOptional, SkipFail:
		return m
	}
	c.errorf(at, "unknown word %.80q: write propagate, optional or fail", word)
	return ""
}

// exhausted reads on_exhausted.
func (c *dagCompiler) exhausted(n *Node, at *place) SkipMode {
	switch n.Exhausted {
	case "", "fail":
		return SkipFail
	case "skip", string(SkipOptional):
		return SkipOptional
	case "skip-cascade", string(SkipPropagate):
		return SkipPropagate
	}
	c.errorf(at.key("on_exhausted"), "unknown word %.80q: write fail, skip or skip-cascade", n.Exhausted)
	return SkipFail
}

// workNode says how a node of a definition does its work.
func (c *dagCompiler) workNode(s *dagScope, src *dagSource) {
	n, p, at := src.n, src.node, src.at
	p.Params = c.params(n.Params, at.key("params"))
	p.Dag.Exhausted = c.exhausted(n, at)
	p.Dag.StartDelayMS = c.duration(n.StartDelay, at.key("start_delay"))
	c.input(src)
	c.tries(p, n, at)
	switch p.Kind {
	case KindExecutor:
		p.Single = true
		p.Exec = c.dagExec(n, src.key, at)
	case KindFanout:
		p.Exec = c.dagExec(n, src.key, at)
		c.each(src)
	case KindSubflow:
		c.inside(s, src)
	case KindTimer:
		c.numberParam("delay_ms", p.Params, at)
	case KindWaitEvent:
		c.waitKey("signal_key", p.Params, at)
		c.numberParam("timeout_ms", p.Params, at)
	case KindApproval:
		c.waitKey("approval_key", p.Params, at)
	}
	c.times(p, n, at)
}

// inside compiles a flow of graph mode in a branch.
func (c *dagCompiler) inside(s *dagScope, src *dagSource) {
	n, at := src.n, src.at
	if n.Flow == nil && n.Subflow == nil {
		c.errorf(at.key("flow"), "is missing: say what the branch consists of")
		return
	}
	src.node.Sub = c.subflow(n, Exec{}, &scopeSource{depth: c.depth, prefix: c.under + s.prefix}, src.key, at)
}

// each says where the units of a fanout come from.
func (c *dagCompiler) each(src *dagSource) {
	n, p, at := src.n, src.node, src.at.key("each")
	e := n.Each
	if e == nil {
		e = &EachOf{}
	}
	p.Each = &Each{Window: c.count(e.Concurrency, at.key("concurrency"))}
	p.Strategy = c.eachStrategy(e.OnError, at.key("on_error"))
	switch {
	case e.Items.Handler.given():
		prep := src.ghosts[len(src.ghosts)-1]
		p.Dag.Items = &PlanRef{From: FromDep, Dep: prep.Dag.Index, Text: prep.Key}
	case e.Items.Literal:
		c.errorf(at.key("items"), "must be a reference or a handler: for a number of units write count")
	case e.Items.Ref != "":
		p.Dag.Items = c.reference(src, e.Items.Ref, at.key("items"))
	case e.Count.IsZero():
		c.mapItems(src)
	}
	if p.Dag.Items != nil {
		const whole = "has no effect: a unit gets its item; with input_shape: merged it gets the item as item, beside the rest"
		for _, f := range []idle{{"inputs", len(n.Inputs) > 0, whole}, {"prep", !n.Prep.empty(), whole}} {
			if f.written {
				c.warnf(src.at.key(f.name), "%s", f.instead)
			}
		}
	}
	switch {
	case e.Count.Handler.given():
		c.errorf(at.key("count"), "must be a number or a reference")
	case e.Count.Literal:
		p.Dag.Repeats = e.Count.Number
		switch {
		case e.Count.Number < 1:
			c.errorf(at.key("count"), "must be 1 at least")
		case e.Count.Number > c.limits.Units:
			c.errorf(at.key("count"), "is more than the %d units a step may have", c.limits.Units)
		}
	case e.Count.Ref != "":
		p.Dag.Count = c.reference(src, e.Count.Ref, at.key("count"))
	}
}

// mapItems has a map, which names no source, work on its one dependency or on the run's input.
func (c *dagCompiler) mapItems(src *dagSource) {
	p := src.node.Dag
	switch {
	case src.n.Kind != "map":
		c.errorf(src.at.key("each").key("items"), "is missing: say where the items come from")
	case len(src.n.DependsOn) > 1:
		c.errorf(src.at.key("depends_on"), "a map works on one list: it has one dependency at most")
	case len(src.n.DependsOn) == 1:
		if len(p.Sees) == 1 {
			p.Items = &PlanRef{From: FromDep, Dep: p.Sees[0].Index, Text: "$deps." + p.Sees[0].Name}
		}
	default:
		p.Items = &PlanRef{From: FromRun, Text: "$run"}
		if p.Run == -1 && c.depth == 0 && c.g.Dag.RootMap == "" {
			c.g.Dag.RootMap = src.node.Key
		}
	}
}

func (c *dagCompiler) eachStrategy(word string, at *place) Strategy {
	switch word {
	case "":
		if c.profile == ProfilePgflow {
			return FailFast
		}
		return Collect
	case "fail_fast":
		return FailFast
	case "collect", "collect_errors":
		return Collect
	case "continue", "ignore", "ignore_errors":
		return Continue
	}
	c.errorf(at, "unknown word %.80q: write fail_fast, collect or continue", word)
	return Collect
}

// outputNode says what a scope's output is made of: a handler's work, a mapping, or the leaves as they are.
func (c *dagCompiler) outputNode(s *dagScope, src *dagSource) {
	p, n := src.node, src.n
	p.Dag.Run, p.Dag.Exhausted = s.run, SkipFail
	p.Dag.Shape = c.set.shape
	if (Handler{Service: n.Service, Func: n.Func, Script: n.Script, Route: n.Route}).given() {
		p.Single = true
		p.Exec = c.dagExec(n, src.key, src.at)
		c.tries(p, n, src.at)
		c.times(p, n, src.at)
		return
	}
	p.Dag.Sees = s.leaves
	c.mapping(p, src)
}

// input says what a node's handler gets.
func (c *dagCompiler) input(src *dagSource) {
	n, p := src.n, src.node.Dag
	mapped := len(n.Inputs) > 0 || !n.Prep.empty()
	if shape := c.shape(n.InputShape, "", src.at); mapped && src.node.Kind != KindSubflow && shape != "" && shape != ShapeMapped {
		c.warnf(src.at.key("input_shape"), "has no effect: the input is said by inputs or prep")
	}
	if len(n.Inputs) > 0 && !n.Prep.empty() && src.node.Kind != KindSubflow {
		c.errorf(src.at.key("prep"), "the input is said by inputs already: give one of them")
	}
	p.Shape = c.shape(n.InputShape, c.set.shape, src.at)
	p.Static = c.jsonObject(n.Input, src.at.key("input"))
	if n.Prep.given() && src.node.Kind != KindSubflow {
		c.errorf(src.at.key("prep"), "only a branch has a handler for its input; a fanout names one in each.items")
	}
	if src.node.Kind != KindSubflow {
		c.mapping(src.node, src)
	}
	p.Fixed = p.MapExpr == nil && (p.Map == nil || p.Map.From != FromShared) &&
		!slices.ContainsFunc(p.Bindings, func(b PlanBinding) bool { return b.Ref != nil && b.Ref.From == FromShared })
	for _, seen := range p.Sees {
		if _, clash := expr.Field(p.Static, seen.Name); clash {
			c.warnf(src.at.key("input").key(seen.Name), "is never seen: the output of the dependency lies over it")
		}
	}
	if p.Static != nil && p.Shape != ShapeMerged {
		c.errorf(src.at.key("input"), "has an effect in input_shape merged alone: for a mapped input write inputs")
	}
}

// mapping reads an input, or the value of a prep or output, that is put together of parts.
func (c *dagCompiler) mapping(p *PlanNode, src *dagSource) {
	n, d := src.n, p.Dag
	switch {
	case len(n.Inputs) > 0:
		d.Shape = ShapeMapped
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			b, at := n.Inputs[name], src.at.key("inputs").key(name)
			if (b.Ref == "") == (len(b.Const) == 0) {
				c.errorf(at, "needs exactly one of const and ref")
				continue
			}
			binding := PlanBinding{Name: name, Const: expr.Compact(b.Const)}
			if b.Ref != "" {
				binding.Ref = c.reference(src, b.Ref, at.key("ref"))
			}
			d.Bindings = append(d.Bindings, binding)
		}
	case n.Prep.Expr != "":
		d.Shape, d.MapExpr = ShapeMapped, c.expressions.compile(n.Prep.Expr, true, src.at.key("prep").key("expr"), c.reporter)
	case n.Prep.InputMap != nil:
		d.Shape, d.Bindings = ShapeMapped, []PlanBinding{}
		for _, name := range slices.Sorted(maps.Keys(n.Prep.InputMap)) {
			text := n.Prep.InputMap[name]
			b := PlanBinding{Name: name, Const: expr.Quote(text)}
			if strings.HasPrefix(text, "$") {
				b = PlanBinding{Name: name, Ref: c.reference(src, text, src.at.key("prep").key("input_map").key(name))}
			}
			d.Bindings = append(d.Bindings, b)
		}
	case n.Prep.InputKey != "":
		d.Shape, d.Map = ShapeMapped, c.reference(src, n.Prep.InputKey, src.at.key("prep").key("input_key"))
	}
}

// reference reads a reference of dag mode: $run.x, $params.x, $deps.a.x, $shared.x, $input.x, and the
// spellings tasks.a.output.x and a.x.
func (c *dagCompiler) reference(src *dagSource, text string, at *place) *PlanRef {
	r := &PlanRef{Text: text}
	head, path, _ := strings.Cut(text, ".")
	switch head {
	case "$run", "$params":
		r.From, r.Path = FromRun, path
		return r
	case "$input":
		r.From, r.Path = FromInput, path
		return r
	case "$shared":
		r.From, r.Ref = FromShared, expr.ParseRef(text)
		return r
	case "$item":
		c.errorf(at, "%.80q cannot be referred to: a unit gets its item as it is", text)
		return r
	case "$deps":
		head, path, _ = strings.Cut(path, ".")
	case "tasks":
		head, path, _ = strings.Cut(path, ".")
		path = strings.TrimPrefix(strings.TrimPrefix(path, "output"), ".")
	}
	head, bracket, indexed := strings.Cut(head, "[")
	if indexed {
		path = strings.TrimSuffix("["+bracket+"."+path, ".")
	}
	for _, seen := range src.node.Dag.Sees {
		if seen.Name == head {
			r.From, r.Dep, r.Path = FromDep, seen.Index, path
			return r
		}
	}
	if strings.HasPrefix(head, "$") {
		c.errorf(at, "%.80q begins with %.80q: references begin with $run, $deps, $shared or $params", text, head)
		return r
	}
	c.errorf(at, "%.80q refers to %.80q, which is not among depends_on", text, head)
	return r
}
