package flow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Compile checks a definition and turns it into a plan. It tells all problems at once, those of the
// text that the definition was read from included; the plan is nil if there is an error among them.
func Compile(d *Definition, limits Limits) (*Plan, Problems) {
	c := &compiler{reporter: d.source.fork(), limits: limits.OrDefault(), endOnFail: d.OnError == onErrorFail}
	var root *place
	plan := &Plan{TimeoutMS: c.milliseconds(d.TimeoutMS, root.key("timeout_ms")), Result: d.Result, Finally: d.Finally, Window: c.limits.Window}
	plan.Profile = c.profile(d, root)
	c.seconds = plan.Profile != ProfileNone
	if !d.Timeout.IsZero() {
		plan.TimeoutMS = c.duration(d.Timeout, root.key("timeout"))
	}
	c.target(d.Result, root.key("result"))
	c.name(d.Name, root.key("name"))
	if len(d.Description) > maxDescription {
		c.errorf(root.key("description"), "has %d bytes, more than the limit of %d", len(d.Description), maxDescription)
	}
	plan.Root = c.root(d, plan, root)
	plan.Closing = c.closing
	problems := c.all()
	if problems.Err() != nil {
		return nil, problems
	}
	return plan, problems
}

type compiler struct {
	*reporter
	limits    Limits
	endOnFail bool   // on_error of the flow
	closing   *Graph // the nodes that run when the task is over
	seconds   bool   // a duration may be a number of seconds, because the profile has it so

	expressions expressions
}

// Words of mode.
const (
	modeGraph = "graph"
	modeDag   = "dag"
)

// modeOf is a definition's mode: what it says, else what it has of one mode alone: a start or edges, a
// dependency, or anything else of graph mode. Nodes that could be of either are a dag.
func modeOf(d *Definition) string {
	switch {
	case d.Mode != "":
		return d.Mode
	case d.Profile != "":
		return modeDag
	case d.Start != "" || len(d.Edges) > 0 || len(d.Nodes) == 0:
		return modeGraph
	}
	mode := modeDag
	for _, n := range d.Nodes {
		switch {
		case n == nil:
		case len(n.DependsOn) > 0:
			return modeDag
		case n.ofGraph():
			mode = modeGraph
		}
	}
	return mode
}

func (n *Node) ofGraph() bool {
	return Kind(n.Kind) == KindChoice || len(n.ChoiceCases) > 0 || n.Post.OutputKey != "" || len(n.Post.OutputMap) > 0 ||
		n.Post.ActionStatic != "" || n.Post.ActionKey != "" || len(n.ParallelExecs) > 0 || len(n.ParallelServices) > 0
}

func (c *compiler) root(d *Definition, plan *Plan, at *place) *Graph {
	switch mode := modeOf(d); mode {
	case modeDag:
		if d.Result != "" {
			c.warnf(at.key("result"), "has no effect in a dag: write a node of kind output")
		}
		return c.dag(d, plan.Profile, 0, "", at)
	case modeGraph:
	default:
		c.errorf(at.key("mode"), "unknown mode %.80q: write graph or dag", mode)
	}
	c.onError(d.OnError, at)
	if d.Start == "" {
		c.errorf(at.key("start"), "no start")
	}
	return c.graph(scopeSource{start: d.Start, nodes: d.Nodes, edges: d.Edges, finally: d.Finally}, at)
}

func (c *compiler) profile(d *Definition, at *place) Profile {
	switch p := Profile(d.Profile); p {
	case ProfileNone, ProfileOrk, ProfilePgflow:
		return p
	}
	c.errorf(at.key("profile"), "unknown profile %.80q: write ork or pgflow, or leave it out", d.Profile)
	return ProfileNone
}

// scopeSource is what a scope is compiled from.
type scopeSource struct {
	start string
	nodes map[string]*Node
	edges []Edge

	finally string // of the whole flow
	prefix  string // of the keys that the closing scope has for its nodes

	// Of a subflow.
	depth    int
	plain    bool       // references mean what they do at the root
	defaults Exec       // what children take from the node that holds them
	specs    []ExecSpec // subflow_execs of that node
	specsAt  *place
}

func (s *scopeSource) flat() bool { return s.depth > 0 && !s.plain }

// graph compiles a scope.
func (c *compiler) graph(s scopeSource, at *place) *Graph {
	g := &Graph{Start: s.start, Nodes: make(map[string]*PlanNode, len(s.nodes)), Flat: s.flat()}
	nodes := at.key("nodes")
	overrides := c.childSpecs(&s)
	special := c.specials(s.nodes, s.finally, s.prefix, c.closingNode, at)
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		c.nodeKey(key, nodes.key(key))
		if special[key] {
			continue
		}
		n := s.nodes[key]
		if n == nil {
			n = &Node{}
		}
		g.Nodes[key] = c.node(key, n, overrides[key], &s, nodes.key(key))
	}
	switch {
	case special[s.start]:
		c.errorf(at.key("start"), "node %.80q only runs when the task is over", s.start)
	case s.start != "" && g.Nodes[s.start] == nil:
		c.errorf(at.key("start"), "unknown node %.80q", s.start)
	}
	c.edges(g, s.edges, at.key("edges"))
	return g
}

// edges gives the nodes their edges. The first one of a node and an action counts; one that leads
// nowhere is kept, because it ends the scope where `default` would go on.
func (c *compiler) edges(g *Graph, edges []Edge, at *place) {
	for i, e := range edges {
		at := at.index(i)
		from := g.Nodes[e.From]
		if from == nil {
			c.errorf(at.key("from"), "unknown node %.80q", e.From)
		}
		if e.To != "" && g.Nodes[e.To] == nil {
			c.errorf(at.key("to"), "unknown node %.80q", e.To)
		}
		if e.Action == "" {
			c.warnf(at, "an edge without an action is never taken: write default")
			continue
		}
		if from == nil {
			continue
		}
		if _, dup := from.Edges[e.Action]; dup {
			c.warnf(at, "node %.80q has an edge for the action %.80q already: this one is never taken", e.From, e.Action)
			continue
		}
		if from.Edges == nil {
			from.Edges = map[string]string{}
		}
		from.Edges[e.Action] = e.To
	}
}

// node compiles one node of any kind.
func (c *compiler) node(key string, n *Node, spec *childSpec, s *scopeSource, at *place) *PlanNode {
	p := &PlanNode{
		Key:       key,
		Kind:      c.kind(n, at),
		Params:    c.params(n.Params, at.key("params")),
		Prep:      c.prep(n.Prep, s.flat(), at.key("prep")),
		Post:      n.Post,
		TimeoutMS: c.milliseconds(n.TimeoutMS, at.key("timeout_ms")),
		EndOnFail: n.OnError == onErrorFail || n.OnError == "" && c.endOnFail,
	}
	c.onError(n.OnError, at)
	c.idleInGraph(n, at)
	c.post(n.Post, at.key("post"))
	if n.Compensate != "" {
		p.Undo = s.prefix + n.Compensate
	}
	if !n.Timeout.IsZero() {
		p.TimeoutMS = c.duration(n.Timeout, at.key("timeout"))
	}
	n = c.routed(n, at)
	p.Strategy = c.strategy(p.Kind, n.FailureStrategy, at.key("failure_strategy"))
	base := c.exec(n, s.defaults, at)
	if spec != nil {
		base = c.overlay(base, spec.ExecSpec, spec.at)
		if spec.Service != "" {
			base.Service = spec.Service
		}
		if len(base.Params) > 0 {
			p.Params = expr.Merge(p.Params, base.Params)
		}
		base.Params = nil
	}
	c.retry(n, p, at)
	window := c.window(n, at)
	switch p.Kind {
	case KindExecutor:
		p.Single = true
		p.Exec = c.settle(base, at, true)
	case KindChoice:
		c.choice(n, p, at)
	case KindParallel:
		p.Exec = c.unitsExec(base, at)
		p.Each = &Each{Branches: c.branches(n, base, at), Window: window}
	case KindForeach:
		p.Exec = c.settle(base, at, false)
		p.Each = &Each{Items: c.items(n, base, at), Window: window}
	case KindSubflow:
		p.Sub = c.subflow(n, base, s, key, at)
	case KindTimer:
		c.numberParam("delay_ms", p.Params, at)
	case KindWaitEvent:
		c.waitKey("signal_key", p.Params, at)
		c.numberParam("timeout_ms", p.Params, at)
	case KindApproval:
		c.waitKey("approval_key", p.Params, at)
	}
	return p
}

// subflow compiles the scope inside a node; nil if it has no start and so ends at once.
func (c *compiler) subflow(n *Node, defaults Exec, s *scopeSource, key string, at *place) *Graph {
	depth, prefix := s.depth+1, s.prefix+key+"/"
	if n.Flow == nil && n.Subflow == nil {
		return nil
	}
	if depth > c.limits.Depth {
		c.errorf(at.key("subflow"), "scopes are nested deeper than %d", c.limits.Depth)
		return nil
	}
	if n.Flow != nil {
		return c.inner(n.Flow, depth, prefix, at.key("flow"))
	}
	sub := n.Subflow
	defaults.Service = ""
	g := c.graph(scopeSource{
		start: sub.Start, nodes: sub.Nodes, edges: sub.Edges, prefix: prefix,
		depth: depth, defaults: defaults, specs: n.SubflowExecs, specsAt: at.key("subflow_execs"),
	}, at.key("subflow"))
	if sub.Start == "" {
		return nil
	}
	return g
}

// inner compiles a whole flow of either mode inside a node.
func (c *compiler) inner(f *Inner, depth int, prefix string, at *place) *Graph {
	d := f.Definition
	if d == nil {
		c.errorf(at, "unknown flow %.80q: publish it first", f.Name)
		return nil
	}
	if d.Finally != "" {
		c.errorf(at.key("finally"), "only the whole flow has one")
	}
	if modeOf(d) == modeDag {
		return c.dag(d, c.profile(d, at), depth, prefix, at)
	}
	if d.Start == "" {
		c.errorf(at.key("start"), "no start")
	}
	g := c.graph(scopeSource{start: d.Start, nodes: d.Nodes, edges: d.Edges, prefix: prefix, depth: depth, plain: true}, at)
	g.Result = d.Result
	return g
}

func (c *compiler) choice(n *Node, p *PlanNode, at *place) {
	p.Default = n.DefaultAction
	for i, ch := range n.ChoiceCases {
		at := at.key("choice_cases").index(i).key("expr")
		if len(ch.Expr) == 0 {
			c.errorf(at, "is missing")
			continue
		}
		if source, ok := expr.String(ch.Expr); ok {
			p.Cases = append(p.Cases, PlanCase{Action: ch.Action, Text: ch.Expr, CEL: c.condition(source, false, at)})
			continue
		}
		cond, problems := expr.ParseCond(ch.Expr)
		for _, problem := range problems {
			c.errorf(at.inside(problem.Path), "%s", problem.Msg)
		}
		p.Cases = append(p.Cases, PlanCase{Action: ch.Action, Text: ch.Expr, Cond: cond})
	}
}

func (c *compiler) prep(p Prep, flat bool, at *place) PlanPrep {
	if p.InputMap == nil {
		return PlanPrep{Key: p.InputKey, Ref: c.ref(p.InputKey, flat, at.key("input_key"))}
	}
	out := PlanPrep{HasMap: true}
	for _, key := range slices.Sorted(maps.Keys(p.InputMap)) {
		text := p.InputMap[key]
		ref := c.ref(text, flat, at.key("input_map").key(key))
		out.Map = append(out.Map, PrepEntry{Key: key, Text: text, Ref: ref})
	}
	return out
}

// ref parses a text that begins with $; others are keys or literals, depending on the scope.
func (c *compiler) ref(text string, flat bool, at *place) expr.Ref {
	if !strings.HasPrefix(text, "$") {
		return expr.Ref{}
	}
	ref := expr.ParseRef(text)
	if ref.Literal() && !flat {
		c.warnf(at, "%.80q is no reference but a text: references begin with $params., $shared. or $input", text)
	}
	return ref
}

// params checks that params are an object and drops the space between their parts.
func (c *compiler) params(raw json.RawMessage, at *place) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	compact := expr.Compact(raw)
	switch kind := expr.KindOf(compact); {
	case compact == nil:
		c.errorf(at, "is not valid JSON")
	case string(compact) == "null":
	case kind != expr.KindObject:
		c.errorf(at, "must be an object, is %s", kindName(kind))
	default:
		return compact
	}
	return nil
}
