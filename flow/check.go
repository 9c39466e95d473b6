package flow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// checker tells what is wrong with a definition. It goes through it together with the plan that it would
// become, because some of what is wrong is seen in what it means.
type checker struct {
	*reporter
	lowered *lowerer
	plan    *Plan
	limits  Limits
	seconds bool // a duration may be a number of seconds, because the profile has it so
}

// checked is the plan of a definition, and everything that is wrong with it.
func checked(d *Definition, limits Limits) (*Plan, Problems) {
	c := &checker{reporter: d.source.fork(), limits: limits.OrDefault()}
	if nodes := countNodes(d.Nodes); nodes > maxNodes {
		c.errorf((*place)(nil).key("nodes"), "the flow has %d nodes, more than the limit of %d", nodes, maxNodes)
		return nil, c.all()
	}
	c.lowered = newLowerer(d, limits)
	c.lowered.withoutCEL = !c.expressions(d)
	c.lowered.whole(d)
	c.plan = c.lowered.plan
	c.whole(d, nil)
	return c.plan, c.all()
}

func (c *checker) whole(d *Definition, at *place) {
	c.milliseconds(d.TimeoutMS, at.key("timeout_ms"))
	c.profile(d, at)
	c.seconds = profileOf(d) != ProfileNone
	c.duration(d.Timeout, at.key("timeout"))
	c.target(d.Result, at.key("result"))
	c.name(d.Name, at.key("name"))
	if len(d.Description) > maxDescription {
		c.errorf(at.key("description"), "has %d bytes, more than the limit of %d", len(d.Description), maxDescription)
	}
	switch mode := modeOf(d); mode {
	case modeDag:
		if d.Result != "" {
			c.warnf(at.key("result"), "has no effect in a dag: write a node of kind output")
		}
		c.dag(d, c.plan.Root, at)
		return
	case modeGraph:
	default:
		c.errorf(at.key("mode"), "unknown mode %.80q: write graph or dag", mode)
	}
	c.onError(d.OnError, at)
	if d.Start == "" {
		c.errorf(at.key("start"), "no start")
	}
	c.graph(&scopeSource{start: d.Start, nodes: d.Nodes, edges: d.Edges, finally: d.Finally}, c.plan.Root, nil, at)
}

func (c *checker) profile(d *Definition, at *place) {
	if d.Profile != "" && profileOf(d) == ProfileNone {
		c.errorf(at.key("profile"), "unknown profile %.80q: write ork or pgflow, or leave it out", d.Profile)
	}
}

// graph checks a scope of graph mode. SpecsAt is where subflow_execs are.
func (c *checker) graph(s *scopeSource, g *Graph, specsAt, at *place) {
	nodes := at.key("nodes")
	c.childSpecs(s, specsAt)
	special := c.specials(s.nodes, s.finally, s.prefix, c.closingNode, at)
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		c.nodeKey(key, nodes.key(key))
		if !special[key] {
			c.node(s.nodes[key].orEmpty(), g.Nodes[key], s, nodes.key(key))
		}
	}
	switch {
	case special[s.start]:
		c.errorf(at.key("start"), "node %.80q only runs when the task is over", s.start)
	case s.start != "" && g.Nodes[s.start] == nil:
		c.errorf(at.key("start"), "unknown node %.80q", s.start)
	}
	c.edges(g, s.edges, at.key("edges"))
}

func (c *checker) edges(g *Graph, edges []Edge, at *place) {
	type turn struct{ from, action string }
	taken := map[turn]bool{}
	for i, e := range edges {
		at := at.index(i)
		if g.Nodes[e.From] == nil {
			c.errorf(at.key("from"), "unknown node %.80q", e.From)
		}
		if e.To != "" && g.Nodes[e.To] == nil {
			c.errorf(at.key("to"), "unknown node %.80q", e.To)
		}
		switch t := (turn{e.From, e.Action}); {
		case e.Action == "":
			c.warnf(at, "an edge without an action is never taken: write default")
		case g.Nodes[e.From] == nil:
		case taken[t]:
			c.warnf(at, "node %.80q has an edge for the action %.80q already: this one is never taken", e.From, e.Action)
		default:
			taken[t] = true
		}
	}
}

// node checks one node of any kind.
func (c *checker) node(n *Node, p *PlanNode, s *scopeSource, at *place) {
	c.kind(n, at)
	c.params(n.Params, at.key("params"))
	c.prep(n.Prep, s.flat(), at.key("prep"))
	c.milliseconds(n.TimeoutMS, at.key("timeout_ms"))
	c.onError(n.OnError, at)
	c.idleInGraph(n, at)
	c.post(n.Post, at.key("post"))
	c.duration(n.Timeout, at.key("timeout"))
	c.routed(n, at)
	if _, known := strategyOf(p.Kind, n.FailureStrategy); !known {
		c.warnf(at.key("failure_strategy"), "unknown word %.80q for %s: errors are collected", n.FailureStrategy, p.Kind)
	}
	c.exec(routed(n), at)
	c.graphRetry(n, p, at)
	c.window(n, at)
	switch p.Kind {
	case KindExecutor:
		c.settled(&p.Exec, at, true)
	case KindChoice:
		c.choice(n, p, at)
	case KindParallel:
		c.settled(&p.Exec, at, false)
		c.branches(n, p, at)
	case KindForeach:
		c.settled(&p.Exec, at, false)
		c.items(n, p, at)
	case KindSubflow:
		c.subflow(n, p.Sub, s, p.Key, at)
	}
	c.waits(p, at)
}

// waits checks the params of what waits.
func (c *checker) waits(p *PlanNode, at *place) {
	switch p.Kind {
	case KindTimer:
		c.numberParam("delay_ms", p.Params, at)
	case KindWaitEvent:
		c.waitKey("signal_key", p.Params, at)
		c.numberParam("timeout_ms", p.Params, at)
	case KindApproval:
		c.waitKey("approval_key", p.Params, at)
	}
}

// subflow checks the scope inside a node, whose plan is nil if it has no start.
func (c *checker) subflow(n *Node, g *Graph, s *scopeSource, key string, at *place) {
	switch {
	case n.Flow == nil && n.Subflow == nil:
	case s.depth+1 > c.limits.Depth:
		c.errorf(at.key("subflow"), "scopes are nested deeper than %d", c.limits.Depth)
	case n.Flow != nil:
		c.inner(n, g, s, key, at.key("flow"))
	default:
		if g == nil { // what is in it is checked although it never runs
			g = c.lowered.unused[n]
		}
		c.graph(subflowSource(n, Exec{}, s, key), g, at.key("subflow_execs"), at.key("subflow"))
	}
}

// inner checks a whole flow of either mode inside a node.
func (c *checker) inner(n *Node, g *Graph, s *scopeSource, key string, at *place) {
	d := n.Flow.Definition
	if d == nil {
		c.errorf(at, "unknown flow %.80q: publish it first", n.Flow.Name)
		return
	}
	if d.Finally != "" {
		c.errorf(at.key("finally"), "only the whole flow has one")
	}
	if modeOf(d) == modeDag {
		c.profile(d, at)
		c.dag(d, g, at)
		return
	}
	if d.Start == "" {
		c.errorf(at.key("start"), "no start")
	}
	c.graph(subflowSource(n, Exec{}, s, key), g, nil, at)
}

func (c *checker) choice(n *Node, p *PlanNode, at *place) {
	for i, ch := range n.ChoiceCases {
		at := at.key("choice_cases").index(i).key("expr")
		switch {
		case len(ch.Expr) == 0:
			c.errorf(at, "is missing")
		case p.Cases[i].CEL != nil:
			c.condition(p.Cases[i].CEL, at)
		default:
			_, problems := expr.ParseCond(ch.Expr)
			c.inside(problems, at)
		}
	}
}

// inside tells the problems of a part of JSON.
func (c *checker) inside(problems []expr.Problem, at *place) {
	for _, problem := range problems {
		c.errorf(at.inside(problem.Path), "%s", problem.Msg)
	}
}

func (c *checker) prep(p Prep, flat bool, at *place) {
	if p.InputMap == nil {
		c.ref(p.InputKey, flat, at.key("input_key"))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(p.InputMap)) {
		c.ref(p.InputMap[key], flat, at.key("input_map").key(key))
	}
}

// ref warns of a text that looks like a reference and is none.
func (c *checker) ref(text string, flat bool, at *place) {
	if strings.HasPrefix(text, "$") && ref(text).Literal() && !flat {
		c.warnf(at, "%.80q is no reference but a text: references begin with $params., $shared. or $input", text)
	}
}

// params checks that params are an object.
func (c *checker) params(raw json.RawMessage, at *place) {
	if len(raw) == 0 {
		return
	}
	switch kind := expr.KindOf(raw); {
	case !json.Valid(raw):
		c.errorf(at, "is not valid JSON")
	case kind != expr.KindObject && kind != expr.KindNull:
		c.errorf(at, "must be an object, is %s", kind)
	}
}

// specials checks the nodes of a scope that only run when the task is over.
func (c *checker) specials(nodes map[string]*Node, finally, prefix string, closing func(*Node, *PlanNode, *place), at *place) map[string]bool {
	for _, key := range inOrder(nodes) {
		if n := nodes[key]; n != nil && n.Compensate != "" {
			c.special(nodes, n.Compensate, at.key("nodes").key(key).key("compensate"))
		}
	}
	if finally != "" {
		c.special(nodes, finally, at.key("finally"))
	}
	named := specialKeys(nodes, finally)
	for _, key := range inOrder(nodes) {
		if n := nodes[key]; named[key] && n != nil {
			closing(n, c.plan.Closing.Nodes[prefix+key], at.key("nodes").key(key))
		}
	}
	return named
}

// special checks a name that compensate or finally gives.
func (c *checker) special(nodes map[string]*Node, key string, at *place) {
	n := nodes[key]
	switch {
	case n == nil:
		c.errorf(at, "unknown node %.80q", key)
	case len(n.DependsOn) > 0 || n.When != nil || n.Each != nil:
		c.errorf(at, "node %.80q only runs when the task is over: it has no depends_on, when or each", key)
	case n.Compensate != "":
		c.errorf(at, "node %.80q has a compensate itself: nothing undoes what undoes", key)
	}
}

func (c *checker) closingNode(n *Node, p *PlanNode, at *place) {
	c.node(n, p, &scopeSource{}, at)
}
