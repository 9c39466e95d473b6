package compile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// checker tells what is wrong with a definition. It goes through it together with the plan that it would
// become, because some of what is wrong is seen in what it means.
type checker struct {
	*define.Reporter
	site    Site
	lowered *lowerer
	plan    *flow.Plan
	limits  flow.Limits
	seconds bool // a duration may be a number of seconds, because the profile has it so
	guessed int  // how often it was looked for what another name was meant to be

	given, root given // what `params` are here, and in the whole flow
	uses        map[string][]use
}

// checked is the plan of a definition, and everything that is wrong with it.
func (s Site) checked(d *define.Definition, limits flow.Limits) (*flow.Plan, define.Problems) {
	c := &checker{Reporter: d.Reporter(), site: s, limits: limits.OrDefault(), uses: map[string][]use{}}
	if nodes := define.CountNodes(d.Nodes); nodes > define.MaxNodes {
		c.Errorf(define.At("nodes"), "the flow has %d nodes, more than the limit of %d", nodes, define.MaxNodes)
		return nil, c.All()
	}
	c.lowered = newLowerer(d, limits)
	c.lowered.withoutCEL = !c.expressions(d)
	c.lowered.whole(d)
	c.plan = c.lowered.plan
	c.whole(d, nil)
	c.doubtful()
	return c.plan, c.All()
}

func (c *checker) whole(d *define.Definition, at *define.Place) {
	c.inputsOfRoot(d)
	c.keyRefs(&d.KeyFields, nil, at)
	c.milliseconds(d.TimeoutMS, at.Key("timeout_ms"))
	c.profile(d, at)
	c.seconds = profileOf(d) == flow.ProfileOrk || profileOf(d) == flow.ProfilePgflow
	c.duration(d.Timeout, at.Key("timeout"))
	c.flowKeys(d, at)
	c.schedule(d.Schedule, at.Key("schedule"))
	c.target(d.Result, at.Key("result"))
	c.name(d.Name, at.Key("name"))
	if len(d.Description) > flow.MaxDescription {
		c.Errorf(at.Key("description"), "has %d bytes, more than the limit of %d", len(d.Description), flow.MaxDescription)
	}
	c.checkFlowFields(d, false, c.plan.Root.Pocketflow, at)
	switch mode := ModeOf(d); mode {
	case flow.ModeDag:
		c.dag(d, c.plan.Root, at)
		return
	case flow.ModeGraph:
	default:
		c.Errorf(at.Key("mode"), "unknown mode %.80q: write graph or dag", mode)
	}
	c.onError(d.OnError, at)
	c.onMissing(d.OnMissing, at)
	if d.Start == "" {
		c.Errorf(at.Key("start"), "no start")
	}
	c.graph(&scopeSource{start: d.Start, nodes: d.Nodes, edges: d.Edges, finally: d.Finally, pocketflow: c.lowered.pocketflow}, c.plan.Root, nil, at)
}

func (c *checker) profile(d *define.Definition, at *define.Place) {
	switch at, p := at.Key("profile"), profileOf(d); {
	case d.Profile == "" || d.Profile == define.ProfileTroupe:
	case p == flow.ProfileNone:
		c.Errorf(at, "unknown profile %.80q: write troupe, pocketflow, ork or pgflow, or leave it out", d.Profile)
	case (p == flow.ProfilePocketflow) != (ModeOf(d) == flow.ModeGraph):
		c.Errorf(at, "%s is no profile of a %s: pocketflow is for graphs, ork and pgflow are for dags", p, ModeOf(d))
	}
}

// graph checks a scope of graph mode. SpecsAt is where subflow_execs are.
func (c *checker) graph(s *scopeSource, g *flow.PlanScope, specsAt, at *define.Place) {
	nodes := at.Key("nodes")
	s.edges = namedEdges(s.edges, s.pocketflow)
	c.childSpecs(s, g, specsAt)
	special := c.specials(s.nodes, s.finally, s.prefix, c.closingNode, at)
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		c.nodeKey(key, nodes.Key(key))
		if !special[key] {
			n := orEmpty(s.nodes[key])
			c.node(n, g.Nodes[key], g, s, nodes.Key(key))
			c.ownInput(n.Prep, nodes.Key(key).Key("prep"))
		}
	}
	switch {
	case special[s.start]:
		c.Errorf(at.Key("start"), "node %.80q only runs when the task is over", s.start)
	case s.start != "" && g.Nodes[s.start] == nil:
		c.Errorf(at.Key("start"), "unknown node %.80q%s", s.start, guessNode(s.start, g.Nodes))
	}
	c.edges(g, s.edges, special, at.Key("edges"))
	c.reached(s, g, at)
	c.actions(s, g, at)
	c.sharedKeys(s, g, at)
	c.endlessLoops(g, at)
	if !s.pocketflow {
		c.unheardWrites(s, g, at)
	}
}

func (c *checker) edges(g *flow.PlanScope, edges []define.Edge, special map[string]bool, at *define.Place) {
	type turn struct{ from, action string }
	taken := map[turn]bool{}
	for i, e := range edges {
		at := at.Index(i)
		c.end(g, e.From, special, at.Key("from"))
		if e.To != "" {
			c.end(g, e.To, special, at.Key("to"))
		}
		switch t := (turn{e.From, e.Action}); {
		case e.Action == "":
			c.Warnf(at, "an edge without an action is never taken in the profile pocketflow: write action: default")
		case g.Nodes[e.From] == nil:
		case taken[t]:
			c.Warnf(at, "node %.80q has an edge for the action %.80q already: this one is never taken", e.From, e.Action)
		default:
			taken[t] = true
		}
	}
}

// end checks the name of a node that an edge leads from, or to.
func (c *checker) end(g *flow.PlanScope, key string, special map[string]bool, at *define.Place) {
	switch {
	case special[key]:
		c.Errorf(at, "node %.80q compensates or runs finally: no edge leads there, or on from it", key)
	case g.Nodes[key] == nil:
		c.Errorf(at, "unknown node %.80q%s", key, guessNode(key, g.Nodes))
	}
}

// node checks one node of any kind.
func (c *checker) node(n *define.Node, p *flow.PlanNode, g *flow.PlanScope, s *scopeSource, at *define.Place) {
	c.kind(n, at)
	if _, known := graphKind(n); known {
		c.checkNodeFields(graphSpot(n, p, s.depth > 0, g == c.plan.Closing), g.Pocketflow, at)
	}
	c.params(n.Params, at.Key("params"))
	if !local(n) {
		c.program(n, at)
		n = served(n)
	}
	c.prep(n.Prep, s.flat(), at.Key("prep"))
	c.milliseconds(n.TimeoutMS, at.Key("timeout_ms"))
	c.onError(n.OnError, at)
	c.post(n.Post, at.Key("post"))
	c.duration(n.Timeout, at.Key("timeout"))
	c.routed(n, g.Pocketflow, at)
	if _, known := strategyOf(p.Kind, n.FailureStrategy); !known {
		c.Warnf(at.Key("failure_strategy"), "unknown word %.80q for %s: errors are collected", n.FailureStrategy, p.Kind)
	}
	c.exec(routed(n), at)
	c.checkInnerTries(n, g.Pocketflow, at)
	c.graphRetry(n, at)
	c.window(n, at)
	switch p.Kind {
	case flow.KindExecutor:
		c.settled(&p.Exec, at, true, s.pocketflow)
	case flow.KindChoice:
		c.choice(n, p, at)
	case flow.KindParallel:
		c.settled(&p.Exec, at, false, s.pocketflow)
		c.branches(n, p, s.pocketflow, at)
	case flow.KindForeach:
		c.items(n, p, s.pocketflow, at)
		c.listOf(n, s.pocketflow, at)
	case flow.KindSubflow:
		c.subflow(n, p.Sub, s, p.Key, at)
	}
	c.waits(p, s, at)
	c.keyed(n, p, at)
	c.graphRefs(n, p, at)
	c.env(n, p.Kind, nil, at)
}

// question checks what an approval asks.
func (c *checker) question(params []byte, at *define.Place) {
	_, faults := flow.ReadQuestion(params)
	for _, f := range faults {
		place := at.Below(f.Path)
		if f.Warning {
			c.Warnf(place, "%s", f.Msg)
		} else {
			c.Errorf(place, "%s", f.Msg)
		}
	}
}

// subflow checks the scope inside a node, whose plan is nil if it has no start.
func (c *checker) subflow(n *define.Node, g *flow.PlanScope, s *scopeSource, key string, at *define.Place) {
	switch {
	case n.Flow == nil && n.Subflow == nil:
	case s.depth+1 > c.limits.Depth:
		c.Errorf(at.Key("subflow"), "scopes are nested deeper than %d", c.limits.Depth)
	case n.Flow != nil:
		c.within(c.insideFlow(n, s), func() { c.inner(n, g, s, key, at.Key("flow")) })
	default:
		if g == nil { // what is in it is checked although it never runs
			g = c.lowered.unused[n]
		}
		c.within(c.insideGraph(n), func() {
			c.graph(subflowSource(n, flow.Exec{}, s, key), g, at.Key("subflow_execs"), at.Key("subflow"))
		})
	}
}

// inner checks a whole flow of either mode inside a node.
func (c *checker) inner(n *define.Node, g *flow.PlanScope, s *scopeSource, key string, at *define.Place) {
	d := n.Flow.Definition
	if n.Flow.Elsewhere() {
		c.Notef(at, "not checked: whether there is a flow %.80q, and what is in it", n.Flow.Name)
		return
	}
	if d == nil {
		c.Errorf(at, "unknown flow %.80q: publish it first", n.Flow.Name)
		return
	}
	if d.Finally != "" {
		c.Mute(at.Key("nodes").Key(d.Finally)) // that nothing leads to it
	}
	c.checkFlowFields(d, true, g != nil && g.Pocketflow, at)
	c.inputsInside(d, at)
	c.profile(d, at)
	if ModeOf(d) == flow.ModeDag {
		c.dag(d, g, at)
		return
	}
	c.onMissing(d.OnMissing, at)
	if d.Start == "" {
		c.Errorf(at.Key("start"), "no start")
	}
	c.graph(subflowSource(n, flow.Exec{}, s, key), g, nil, at)
}

func (c *checker) choice(n *define.Node, p *flow.PlanNode, at *define.Place) {
	for i, ch := range n.ChoiceCases {
		at := at.Key("choice_cases").Index(i).Key("expr")
		switch {
		case len(ch.Expr) == 0:
			c.Errorf(at, "is missing")
		case p.Cases[i].CEL != nil:
			c.condition(p.Cases[i].CEL, at)
		default:
			_, problems := expr.ParseCond(ch.Expr)
			c.inside(problems, at)
		}
	}
}

// inside tells the problems of a part of JSON.
func (c *checker) inside(problems []expr.Problem, at *define.Place) {
	for _, problem := range problems {
		c.Errorf(at.Inside(problem.Path), "%s", problem.Msg)
	}
}

func (c *checker) prep(p define.Prep, flat bool, at *define.Place) {
	if p.InputMap == nil {
		c.ref(p.InputKey, flat, at.Key("input_key"))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(p.InputMap)) {
		c.ref(p.InputMap[key], flat, at.Key("input_map").Key(key))
	}
}

// ref warns of a text that looks like a reference and is none.
func (c *checker) ref(text string, flat bool, at *define.Place) {
	if strings.HasPrefix(text, "$") && ref(text).Literal() && !flat {
		c.Warnf(at, "%.80q is no reference but a text: references begin with $params., $shared. or $input", text)
	}
}

// ownInput warns of a prep that asks for the input of its node: it is what makes it.
func (c *checker) ownInput(p define.Prep, at *define.Place) {
	ownInputs(p, at, func(text string, at *define.Place) {
		c.Warnf(at, "%.80q is null here, because prep is what makes the node's input: write $params. or $shared.", text)
	})
}

// ownInputs finds where a prep asks for the input of its node.
func ownInputs(p define.Prep, at *define.Place, found func(text string, at *define.Place)) {
	one := func(text string, at *define.Place) {
		if strings.HasPrefix(text, "$input") && !ref(text).Literal() {
			found(text, at)
		}
	}
	if p.InputMap == nil {
		one(p.InputKey, at.Key("input_key"))
	}
	for _, key := range slices.Sorted(maps.Keys(p.InputMap)) {
		one(p.InputMap[key], at.Key("input_map").Key(key))
	}
}

// params checks that params are an object.
func (c *checker) params(raw json.RawMessage, at *define.Place) {
	if len(raw) == 0 {
		return
	}
	switch kind := expr.KindOf(raw); {
	case !json.Valid(raw):
		c.Errorf(at, "is not valid JSON")
	case kind != expr.KindObject && kind != expr.KindNull:
		c.Errorf(at, "must be an object, is %s", kind)
	}
}

// specials checks the nodes of a scope that only run when the task is over.
func (c *checker) specials(nodes map[string]*define.Node, finally, prefix string, closing func(*define.Node, *flow.PlanNode, *define.Place), at *define.Place) map[string]bool {
	for _, key := range define.InOrder(nodes) {
		if n := nodes[key]; n != nil && n.Compensate != "" {
			c.special(nodes, n.Compensate, at.Key("nodes").Key(key).Key("compensate"))
			c.missed(nodes, n.Compensate, at)
		}
	}
	if finally != "" {
		c.special(nodes, finally, at.Key("finally"))
		c.missed(nodes, finally, at)
	}
	named := specialKeys(nodes, finally)
	for _, key := range define.InOrder(nodes) {
		if n := nodes[key]; named[key] && n != nil {
			closing(n, c.plan.Closing.Nodes[prefix+key], at.Key("nodes").Key(key))
		}
	}
	return named
}

// missed is about the node that a name which is none was probably meant to be: that nothing else leads to it goes without saying, and it would have an input.
func (c *checker) missed(nodes map[string]*define.Node, name string, at *define.Place) {
	if nodes[name] != nil {
		return
	}
	if meant := near(c, name, nodes); meant != "" {
		node := at.Key("nodes").Key(meant)
		c.Mute(node)
		ownInputs(orEmpty(nodes[meant]).Prep, node.Key("prep"), func(_ string, at *define.Place) { c.Mute(at) })
	}
}

// special checks a name that compensate or finally gives.
func (c *checker) special(nodes map[string]*define.Node, key string, at *define.Place) {
	n := nodes[key]
	switch {
	case n == nil:
		c.Errorf(at, "unknown node %.80q%s", key, guessNode(key, nodes))
	case n.Compensate != "":
		c.Errorf(at, "node %.80q has a compensate itself: nothing undoes what undoes", key)
	}
}

func (c *checker) closingNode(n *define.Node, p *flow.PlanNode, at *define.Place) {
	c.within(c.root, func() { c.node(n, p, c.plan.Closing, &scopeSource{pocketflow: c.lowered.pocketflow}, at) })
}
