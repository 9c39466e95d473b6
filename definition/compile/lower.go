package compile

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// lowerer builds the plan of a definition.
type lowerer struct {
	plan       *flow.Plan
	follow     bool            // on_error of the flow
	coerce     bool            // on_missing of the flow
	pocketflow bool            // the flow has the pocketflow profile
	priority   json.RawMessage // priority of the flow
	languages  map[bool]*expr.Language
	compiled   map[knownCEL]*expr.CEL

	withoutCEL bool // no expression is compiled, because there are too many

	scopes map[*flow.PlanScope]*dagScope              // sources of the scopes of dag mode
	unused map[*definition.Node]*flow.PlanScope       // scopes of subflows without a start
	obeyed map[*definition.Definition]map[string]bool // for each flow, the defaults that nodes obey
}

func newLowerer(d *definition.Definition, limits flow.Limits) *lowerer {
	return &lowerer{follow: followsFailures(d), coerce: coercesMissing(d, false),
		pocketflow: hasPocketflowProfile(d, false), priority: d.Priority,
		scopes: map[*flow.PlanScope]*dagScope{}, unused: map[*definition.Node]*flow.PlanScope{}, compiled: map[knownCEL]*expr.CEL{},
		obeyed: map[*definition.Definition]map[string]bool{},
		plan: &flow.Plan{TimeoutMS: orDuration(d.Timeout, d.TimeoutMS), Finally: d.Finally,
			Profile: profileOf(d), Keys: planKeys(&d.KeyFields, nil),
			Window: limits.OrDefault().Window}}
}

func (l *lowerer) lowerDefinition(d *definition.Definition) {
	switch ModeOf(d) {
	case flow.ModeDag:
		l.plan.Root = l.lowerDag(d, l.plan.Profile, 0, "")
	case flow.ModeCode:
		l.plan.Root = lowerCode(d)
	default:
		l.plan.Root = l.lowerGraph(&scopeSource{start: d.Start, nodes: d.Nodes, edges: d.Edges,
			finally: d.Finally, coerce: l.coerce, pocketflow: l.pocketflow})
		l.plan.Root.Result = d.Result
	}
	l.plan.Root.Inputs = inputsOf(d)
}

// inputsOf returns the declared inputs of a definition. It returns nil if there are none or they
// are invalid.
func inputsOf(d *definition.Definition) *types.Inputs {
	in, _ := d.Inputs.Read()
	return in
}

// orDuration returns a duration that has two notations.
func orDuration(d definition.Duration, ms int64) int64 {
	if d.IsZero() {
		return ms
	}
	return d.MS
}

func profileOf(d *definition.Definition) flow.Profile {
	switch p := flow.Profile(d.Profile); p {
	case flow.ProfileOrk, flow.ProfilePgflow, flow.ProfilePocketflow:
		return p
	}
	return flow.ProfileNone
}

// lowerGraph lowers a scope of graph mode.
func (l *lowerer) lowerGraph(s *scopeSource) *flow.PlanScope {
	g := &flow.PlanScope{Start: s.start, Nodes: make(map[string]*flow.PlanNode, len(s.nodes)), Flat: s.isFlat(), Pocketflow: s.pocketflow}
	specs := childSpecs(s)
	special := l.lowerSpecials(s.nodes, s.finally, s.prefix, l.closingNode)
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		if !special[key] {
			g.Nodes[key] = l.lowerNode(key, orEmpty(s.nodes[key]), specs[key], s)
		}
	}
	for _, e := range namedEdges(s.edges, s.pocketflow) {
		addEdge(g, e)
	}
	return g
}

// addEdge adds an edge. The first edge for a node and an action applies. An edge to nowhere is
// kept, because it ends the scope where `default` would continue.
func addEdge(g *flow.PlanScope, e definition.Edge) {
	from := g.Nodes[e.From]
	if from == nil || e.Action == "" {
		return
	}
	if _, there := from.Edges[e.Action]; there {
		return
	}
	if from.Edges == nil {
		from.Edges = map[string]string{}
	}
	from.Edges[e.Action] = e.To
}

// lowerNode lowers one node of any kind. spec is the override from the node that contains the
// scope, or nil.
func (l *lowerer) lowerNode(key string, n *definition.Node, spec *definition.ExecSpec, s *scopeSource) *flow.PlanNode {
	kind, _ := graphKind(n)
	n = asServiceNode(n)
	p := &flow.PlanNode{
		Key: key, Kind: kind, Params: compactParams(n.Params), Prep: planPrep(n.Prep), Post: n.Post,
		TimeoutMS: orDuration(n.Timeout, n.TimeoutMS),
		Follow:    s.depth == 0 && (n.OnError == definition.OnErrorFollow || n.OnError == "" && l.follow),
	}
	if n.Compensate != "" {
		p.Undo = s.prefix + n.Compensate
	}
	p.Strategy, _ = strategyOf(kind, n.FailureStrategy)
	base := nodeExec(withRouteType(n), s.defaults)
	base.Vars = programVars(n, nil)
	if spec != nil {
		base = overlayExec(base, spec)
		if spec.Service != "" {
			base.Service = spec.Service
		}
		if len(base.Params) > 0 {
			p.Params = expr.Merge(p.Params, base.Params)
		}
		base.Params = nil
	}
	p.Retry = graphRetry(n, p)
	l.lowerKindFields(n, p, base, s)
	l.nodeKeys(n, p)
	return p
}

// lowerKindFields sets the fields that only some kinds have.
func (l *lowerer) lowerKindFields(n *definition.Node, p *flow.PlanNode, base flow.Exec, s *scopeSource) {
	switch p.Kind {
	case flow.KindExecutor:
		p.Single, p.Deferred = true, n.Deferred
		p.Exec = resolveExecType(base)
	case flow.KindChoice:
		l.lowerChoice(n, p)
		p.Coerce = s.coerce
	case flow.KindParallel:
		p.Deferred = n.Deferred
		p.Exec = unitExec(base)
		p.Each = &flow.Each{Branches: parallelBranches(n, base), Window: unitWindow(n)}
	case flow.KindForeach:
		p.Deferred = n.Deferred
		p.Exec = resolveExecType(base)
		p.Each = &flow.Each{Items: foreachItems(n, base), Window: unitWindow(n)}
	case flow.KindSubflow:
		if p.Sub = l.lowerSubflow(n, base, s, p.Key); p.Sub != nil && n.Flow != nil {
			p.Sub.Inputs = inputsOf(n.Flow.Definition)
		}
	}
}

// graphKind returns the kind of a node in graph mode, and false for an unknown word.
func graphKind(n *definition.Node) (k flow.Kind, known bool) {
	switch k := flow.Kind(n.Kind); k {
	case "", "remote", flow.KindExecutor:
		return flow.KindExecutor, true
	case flow.KindChoice, flow.KindParallel, flow.KindTimer, flow.KindForeach, flow.KindWaitEvent, flow.KindApproval, flow.KindSubflow:
		return k, true
	}
	return "", false
}

// lowerSubflow lowers the scope inside a node. It returns nil if the scope has no start and so ends
// at once.
func (l *lowerer) lowerSubflow(n *definition.Node, defaults flow.Exec, s *scopeSource, key string) *flow.PlanScope {
	switch {
	case n.Flow == nil && n.Subflow == nil, n.Flow != nil && n.Flow.Definition == nil:
		return nil
	case n.Flow != nil && ModeOf(n.Flow.Definition) == flow.ModeDag:
		return l.lowerDag(n.Flow.Definition, profileOf(n.Flow.Definition), s.depth+1, s.prefix+key+"/")
	case n.Flow != nil && ModeOf(n.Flow.Definition) == flow.ModeCode:
		return lowerCode(n.Flow.Definition)
	}
	g := l.lowerGraph(subflowSource(n, defaults, s, key))
	switch {
	case n.Flow != nil:
		g.Result = n.Flow.Result
	case n.Subflow.Start == "":
		l.unused[n] = g
		return nil
	}
	return g
}

func (l *lowerer) lowerChoice(n *definition.Node, p *flow.PlanNode) {
	p.Default = n.DefaultAction
	for _, ch := range n.ChoiceCases {
		c := flow.PlanCase{Action: ch.Action, Text: ch.Expr}
		if source, ok := expr.String(ch.Expr); ok {
			c.CEL = l.compileCEL(source, false)
		} else {
			c.Cond, _ = expr.ParseCond(ch.Expr)
		}
		p.Cases = append(p.Cases, c)
	}
}

func planPrep(p definition.Prep) flow.PlanPrep {
	if p.InputMap == nil {
		return flow.PlanPrep{Key: p.InputKey, Ref: parseRef(p.InputKey)}
	}
	out := flow.PlanPrep{HasMap: true}
	for _, key := range slices.Sorted(maps.Keys(p.InputMap)) {
		out.Map = append(out.Map, flow.PrepEntry{Key: key, Text: p.InputMap[key], Ref: parseRef(p.InputMap[key])})
	}
	return out
}

// parseRef parses a text that begins with $. Other texts are keys or literals, depending on the
// scope.
func parseRef(text string) expr.Ref {
	if !strings.HasPrefix(text, "$") {
		return expr.Ref{}
	}
	return expr.ParseRef(text)
}

// compactParams returns an object without whitespace between its parts, or nil.
func compactParams(raw json.RawMessage) json.RawMessage {
	if compact := expr.Compact(raw); expr.KindOf(compact) == expr.KindObject {
		return compact
	}
	return nil
}

// knownCEL identifies an expression that is compiled only once.
type knownCEL struct {
	source string
	dag    bool
}

// Variables of expressions.
var (
	caseVars = []string{"params", "input", "shared"}
	dagVars  = []string{"run", "params", "deps", "input", "shared"}
)

var errNotCompiled = errors.New("it was not compiled")

// compileCEL compiles an expression. An invalid expression returns its error when it is evaluated.
func (l *lowerer) compileCEL(source string, dag bool) *expr.CEL {
	if l.withoutCEL {
		return expr.BrokenCEL(source, errNotCompiled)
	}
	key := knownCEL{source, dag}
	if c := l.compiled[key]; c != nil {
		return c
	}
	if l.languages == nil {
		l.languages = map[bool]*expr.Language{}
	}
	if l.languages[dag] == nil {
		vars := caseVars
		if dag {
			vars = dagVars
		}
		l.languages[dag] = expr.NewLanguage(vars...)
	}
	c, err := l.languages[dag].Compile(source)
	if err != nil {
		c = expr.BrokenCEL(source, err)
	}
	l.compiled[key] = c
	return c
}

// lowerSpecials lowers the nodes of a scope that only run during the closing: compensating nodes
// and the flow's finally. They get a separate scope, in graph mode. It returns their keys.
func (l *lowerer) lowerSpecials(nodes map[string]*definition.Node, finally, prefix string,
	closing func(string, *definition.Node) *flow.PlanNode) map[string]bool {
	named := specialKeys(nodes, finally)
	for _, key := range definition.InOrder(nodes) {
		if n := nodes[key]; named[key] && n != nil {
			if l.plan.Closing == nil {
				l.plan.Closing = &flow.PlanScope{Nodes: map[string]*flow.PlanNode{}, Pocketflow: l.pocketflow}
			}
			l.plan.Closing.Nodes[prefix+key] = closing(prefix+key, n)
		}
	}
	return named
}

// specialKeys returns the keys in compensate and finally.
func specialKeys(nodes map[string]*definition.Node, finally string) map[string]bool {
	named := map[string]bool{}
	for _, n := range nodes {
		if n != nil && n.Compensate != "" {
			named[n.Compensate] = true
		}
	}
	if finally != "" {
		named[finally] = true
	}
	return named
}

func (l *lowerer) closingNode(key string, n *definition.Node) *flow.PlanNode {
	return l.lowerNode(key, n, nil, &scopeSource{coerce: l.coerce, pocketflow: l.pocketflow})
}
