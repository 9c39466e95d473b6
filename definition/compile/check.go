package compile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// checker reports the problems of a definition. It walks through the definition together with its
// plan, because some problems are only visible in the plan.
type checker struct {
	*definition.Reporter
	fieldChecker
	programChecker
	graphWarner
	paramChecker

	site          Site
	lowered       *lowerer
	plan          *flow.Plan
	limits        flow.Limits
	allowsSeconds bool // a duration may be a number of seconds, as the profile allows
}

// fieldChecker checks fields that need no other fields for the check.
type fieldChecker struct{ *definition.Reporter }

// programChecker checks the fields of programs and containers.
type programChecker struct{ fieldChecker }

// graphWarner warns of graphs that are allowed and probably unintended.
type graphWarner struct {
	*definition.Reporter
	guessCount int // number of searches for the name that was probably meant
}

// paramChecker checks references to params.
type paramChecker struct {
	*definition.Reporter
	scopeParams, rootParams knownParams // known `params` in this scope, and in the whole flow
	paramUses               map[string][]paramUse
}

// checkAndLower returns the plan of a definition and all its problems.
func (s Site) checkAndLower(d *definition.Definition, limits flow.Limits) (*flow.Plan, definition.Problems) {
	r := d.Reporter()
	c := &checker{Reporter: r, fieldChecker: fieldChecker{r}, programChecker: programChecker{fieldChecker{r}},
		graphWarner: graphWarner{Reporter: r}, paramChecker: paramChecker{Reporter: r, paramUses: map[string][]paramUse{}},
		site: s, limits: limits.OrDefault()}
	if nodes := definition.CountNodes(d.Nodes); nodes > definition.MaxNodes {
		c.Errorf(definition.At("nodes"), "the flow has %d nodes, more than the limit of %d", nodes, definition.MaxNodes)
		return nil, c.All()
	}
	c.lowered = newLowerer(d, limits)
	c.lowered.withoutCEL = !c.checkExpressionCount(d)
	c.lowered.lowerDefinition(d)
	c.plan = c.lowered.plan
	c.checkDefinition(d, nil)
	c.warnDoubtfulParams()
	return c.plan, c.All()
}

func (c *checker) checkDefinition(d *definition.Definition, at *definition.Place) {
	c.checkRootInputs(d)
	c.keyRefs(&d.KeyFields, nil, at)
	c.checkMilliseconds(d.TimeoutMS, at.Key("timeout_ms"))
	c.checkProfile(d, at)
	c.allowsSeconds = profileOf(d) == flow.ProfileOrk || profileOf(d) == flow.ProfilePgflow
	c.checkDuration(d.Timeout, at.Key("timeout"))
	c.flowKeys(d, at)
	c.checkSchedule(d.Schedule, at.Key("schedule"))
	c.checkTarget(d.Result, at.Key("result"))
	c.checkName(d.Name, at.Key("name"))
	if len(d.Description) > flow.MaxDescription {
		c.Errorf(at.Key("description"), "has %d bytes, more than the limit of %d", len(d.Description), flow.MaxDescription)
	}
	c.checkFlowFields(d, false, c.plan.Root.Pocketflow, at)
	switch mode := ModeOf(d); mode {
	case flow.ModeDag:
		c.checkDag(d, c.plan.Root, at)
		return
	case flow.ModeCode:
		checkCode(c, d, at)
		return
	case flow.ModeGraph:
	default:
		c.Errorf(at.Key("mode"), "unknown mode %.80q: write graph, dag or code", mode)
	}
	c.onError(d.OnError, at)
	c.onMissing(d.OnMissing, at)
	if d.Start == "" {
		c.Errorf(at.Key("start"), "no start")
	}
	c.checkGraph(&scopeSource{start: d.Start, nodes: d.Nodes, edges: d.Edges, finally: d.Finally,
		pocketflow: c.lowered.pocketflow}, c.plan.Root, nil, at)
}

func (c fieldChecker) checkProfile(d *definition.Definition, at *definition.Place) {
	switch at, p := at.Key("profile"), profileOf(d); {
	case d.Profile == "" || d.Profile == definition.ProfileTroupe:
	case p == flow.ProfileNone:
		c.Errorf(at, "unknown profile %.80q: write troupe, pocketflow, ork or pgflow, or leave it out", d.Profile)
	case (p == flow.ProfilePocketflow) != (ModeOf(d) == flow.ModeGraph):
		c.Errorf(at, "%s is no profile of a %s: pocketflow is for graphs, ork and pgflow are for dags", p, ModeOf(d))
	}
}

// checkGraph checks a scope of graph mode. specsAt is the place of subflow_execs.
func (c *checker) checkGraph(s *scopeSource, g *flow.PlanScope, specsAt, at *definition.Place) {
	nodes := at.Key("nodes")
	s.edges = namedEdges(s.edges, s.pocketflow)
	c.childSpecs(s, g, specsAt)
	special := c.checkSpecials(s.nodes, s.finally, s.prefix, c.closingNode, at)
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		c.checkNodeKey(key, nodes.Key(key))
		if !special[key] {
			n := orEmpty(s.nodes[key])
			c.checkNode(n, g.Nodes[key], g, s, nodes.Key(key))
			c.warnOwnInput(n.Prep, nodes.Key(key).Key("prep"))
		}
	}
	switch {
	case special[s.start]:
		c.Errorf(at.Key("start"), "node %.80q only runs when the task is over", s.start)
	case s.start != "" && g.Nodes[s.start] == nil:
		c.Errorf(at.Key("start"), "unknown node %.80q%s", s.start, guessNode(s.start, g.Nodes))
	}
	c.checkEdges(g, s.edges, special, at.Key("edges"))
	c.checkReachable(s, g, at)
	c.checkActions(s, g, at)
	c.sharedKeys(s, g, at)
	c.endlessLoops(g, at)
	if !s.pocketflow {
		c.unheardWrites(s, g, at)
	}
}

func (c fieldChecker) checkEdges(g *flow.PlanScope, edges []definition.Edge, special map[string]bool, at *definition.Place) {
	type turn struct{ from, action string }
	taken := map[turn]bool{}
	for i, e := range edges {
		at := at.Index(i)
		c.checkEdgeEnd(g, e.From, special, at.Key("from"))
		if e.To != "" {
			c.checkEdgeEnd(g, e.To, special, at.Key("to"))
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

// checkEdgeEnd checks the name of a node at either end of an edge.
func (c fieldChecker) checkEdgeEnd(g *flow.PlanScope, key string, special map[string]bool, at *definition.Place) {
	switch {
	case special[key]:
		c.Errorf(at, "node %.80q compensates or runs finally: no edge leads there, or on from it", key)
	case g.Nodes[key] == nil:
		c.Errorf(at, "unknown node %.80q%s", key, guessNode(key, g.Nodes))
	}
}

// checkNode checks one node of any kind.
func (c *checker) checkNode(n *definition.Node, p *flow.PlanNode, g *flow.PlanScope, s *scopeSource, at *definition.Place) {
	c.checkGraphKind(n, at)
	if _, known := graphKind(n); known {
		c.checkNodeFields(graphSpot(n, p, s.depth > 0, g == c.plan.Closing), g.Pocketflow, at)
	}
	c.checkParams(n.Params, at.Key("params"))
	if !isLocalProgram(n) {
		c.checkProgram(n, at)
		n = asServiceNode(n)
	}
	c.checkPrep(n.Prep, s.isFlat(), at.Key("prep"))
	c.checkMilliseconds(n.TimeoutMS, at.Key("timeout_ms"))
	c.onError(n.OnError, at)
	c.checkPost(n.Post, at.Key("post"))
	c.checkDuration(n.Timeout, at.Key("timeout"))
	c.checkGraphRoute(n, g.Pocketflow, at)
	if _, known := strategyOf(p.Kind, n.FailureStrategy); !known {
		c.Warnf(at.Key("failure_strategy"), "unknown word %.80q for %s: errors are collected", n.FailureStrategy, p.Kind)
	}
	c.checkExec(withRouteType(n), s.pocketflow, at)
	c.checkInnerTries(n, g.Pocketflow, at)
	c.graphRetry(n, s.pocketflow, at)
	c.checkWindow(n, at)
	switch p.Kind {
	case flow.KindExecutor:
		c.checkExecComplete(&p.Exec, at, true, s.pocketflow)
	case flow.KindChoice:
		c.checkChoice(n, p, at)
	case flow.KindParallel:
		c.checkExecComplete(&p.Exec, at, false, s.pocketflow)
		c.checkBranches(n, p, s.pocketflow, at)
	case flow.KindForeach:
		c.checkItems(n, p, s.pocketflow, at)
		c.checkForeachList(n, s.pocketflow, at)
	case flow.KindSubflow:
		c.checkSubflow(n, p.Sub, s, p.Key, at)
	}
	c.checkWaits(p, s, at)
	c.checkNodeKeyFields(n, p, at)
	c.graphRefs(n, p, at)
	c.checkEnv(n, p.Kind, nil, at)
}

// checkQuestion checks the question of an approval.
func (c fieldChecker) checkQuestion(params []byte, at *definition.Place) {
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

// checkSubflow checks the scope inside a node. Its plan is nil if it has no start.
func (c *checker) checkSubflow(n *definition.Node, g *flow.PlanScope, s *scopeSource, key string, at *definition.Place) {
	switch {
	case n.Flow == nil && n.Subflow == nil:
	case s.depth+1 > c.limits.Depth:
		c.Errorf(at.Key("subflow"), "scopes are nested deeper than %d", c.limits.Depth)
	case n.Flow != nil:
		c.withParams(c.insideFlow(n, s), func() { c.checkInnerFlow(n, g, s, key, at.Key("flow")) })
	default:
		if g == nil { // checks the nodes although they never run
			g = c.lowered.unused[n]
		}
		c.withParams(c.insideGraph(n), func() {
			c.checkGraph(subflowSource(n, flow.Exec{}, s, key), g, at.Key("subflow_execs"), at.Key("subflow"))
		})
	}
}

// checkInnerFlow checks a nested flow of either mode.
func (c *checker) checkInnerFlow(n *definition.Node, g *flow.PlanScope, s *scopeSource, key string, at *definition.Place) {
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
		c.Mute(at.Key("nodes").Key(d.Finally)) // suppresses the problem that no edge leads to it
	}
	c.checkFlowFields(d, true, g != nil && g.Pocketflow, at)
	c.checkInnerInputs(d, at)
	c.checkProfile(d, at)
	switch ModeOf(d) {
	case flow.ModeDag:
		c.checkDag(d, g, at)
		return
	case flow.ModeCode:
		checkCode(c, d, at)
		return
	}
	c.onMissing(d.OnMissing, at)
	if d.Start == "" {
		c.Errorf(at.Key("start"), "no start")
	}
	c.checkGraph(subflowSource(n, flow.Exec{}, s, key), g, nil, at)
}

func (c fieldChecker) checkChoice(n *definition.Node, p *flow.PlanNode, at *definition.Place) {
	for i, ch := range n.ChoiceCases {
		at := at.Key("choice_cases").Index(i).Key("expr")
		switch {
		case len(ch.Expr) == 0:
			c.Errorf(at, "is missing")
		case p.Cases[i].CEL != nil:
			c.checkCondition(p.Cases[i].CEL, at)
		default:
			_, problems := expr.ParseCond(ch.Expr)
			c.reportProblems(problems, at)
		}
	}
}

// reportProblems reports the problems of a JSON value.
func (c fieldChecker) reportProblems(problems []expr.Problem, at *definition.Place) {
	for _, problem := range problems {
		c.Errorf(at.Inside(problem.Path), "%s", problem.Msg)
	}
}

func (c fieldChecker) checkPrep(p definition.Prep, flat bool, at *definition.Place) {
	if p.InputMap == nil {
		c.warnLiteralRef(p.InputKey, flat, at.Key("input_key"))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(p.InputMap)) {
		c.warnLiteralRef(p.InputMap[key], flat, at.Key("input_map").Key(key))
	}
}

// warnLiteralRef warns of a text that looks like a reference but is a literal.
func (c fieldChecker) warnLiteralRef(text string, flat bool, at *definition.Place) {
	if strings.HasPrefix(text, "$") && parseRef(text).Literal() && !flat {
		c.Warnf(at, "%.80q is no reference but a text: references begin with $params., $shared. or $input", text)
	}
}

// warnOwnInput warns of a prep that refers to the input of its own node. The prep has not built
// that input yet.
func (c *graphWarner) warnOwnInput(p definition.Prep, at *definition.Place) {
	findOwnInputs(p, at, func(text string, at *definition.Place) {
		c.Warnf(at, "%.80q is null here, because prep is what makes the node's input: write $params. or $shared.", text)
	})
}

// findOwnInputs finds the places where a prep refers to the input of its own node.
func findOwnInputs(p definition.Prep, at *definition.Place, found func(text string, at *definition.Place)) {
	one := func(text string, at *definition.Place) {
		if strings.HasPrefix(text, "$input") && !parseRef(text).Literal() {
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

// checkParams checks that params are an object.
func (c fieldChecker) checkParams(raw json.RawMessage, at *definition.Place) {
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

// checkSpecials checks the nodes of a scope that only run during the closing.
func (c *checker) checkSpecials(nodes map[string]*definition.Node, finally, prefix string,
	closing func(*definition.Node, *flow.PlanNode, *definition.Place), at *definition.Place) map[string]bool {
	for _, key := range definition.InOrder(nodes) {
		if n := nodes[key]; n != nil && n.Compensate != "" {
			c.checkSpecial(nodes, n.Compensate, at.Key("nodes").Key(key).Key("compensate"))
			c.muteGuessed(nodes, n.Compensate, at)
		}
	}
	if finally != "" {
		c.checkSpecial(nodes, finally, at.Key("finally"))
		c.muteGuessed(nodes, finally, at)
	}
	named := specialKeys(nodes, finally)
	for _, key := range definition.InOrder(nodes) {
		if n := nodes[key]; named[key] && n != nil {
			closing(n, c.plan.Closing.Nodes[prefix+key], at.Key("nodes").Key(key))
		}
	}
	return named
}

// muteGuessed handles an unknown name of a node that only runs during the closing. It suppresses
// two problems of the node that was probably meant, because they are consequences: no edge leads to
// the node, and it has no input.
func (c *graphWarner) muteGuessed(nodes map[string]*definition.Node, name string, at *definition.Place) {
	if nodes[name] != nil {
		return
	}
	if meant := guessName(c, name, nodes); meant != "" {
		node := at.Key("nodes").Key(meant)
		c.Mute(node)
		findOwnInputs(orEmpty(nodes[meant]).Prep, node.Key("prep"), func(_ string, at *definition.Place) { c.Mute(at) })
	}
}

// checkSpecial checks a name in compensate or finally.
func (c fieldChecker) checkSpecial(nodes map[string]*definition.Node, key string, at *definition.Place) {
	n := nodes[key]
	switch {
	case n == nil:
		c.Errorf(at, "unknown node %.80q%s", key, guessNode(key, nodes))
	case n.Compensate != "":
		c.Errorf(at, "node %.80q has a compensate itself: nothing undoes what undoes", key)
	}
}

func (c *checker) closingNode(n *definition.Node, p *flow.PlanNode, at *definition.Place) {
	c.withParams(c.rootParams, func() { c.checkNode(n, p, c.plan.Closing, &scopeSource{pocketflow: c.lowered.pocketflow}, at) })
}
