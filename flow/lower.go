package flow

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// lowerer makes a plan of a definition.
type lowerer struct {
	plan      *Plan
	endOnFail bool // on_error of the flow
	languages map[bool]*expr.Language
	known     map[knownCEL]*expr.CEL

	withoutCEL bool // no expression is compiled: it is known that there are too many

	scopes map[*Graph]*dagScope // what scopes of dag mode were made from
	unused map[*Node]*Graph     // the scopes of subflows without a start
}

func newLowerer(d *Definition, limits Limits) *lowerer {
	return &lowerer{endOnFail: d.OnError == onErrorFail, scopes: map[*Graph]*dagScope{}, unused: map[*Node]*Graph{}, known: map[knownCEL]*expr.CEL{},
		plan: &Plan{TimeoutMS: orDuration(d.Timeout, d.TimeoutMS), Result: d.Result, Finally: d.Finally, Profile: profileOf(d),
			Window: limits.OrDefault().Window}}
}

func (l *lowerer) whole(d *Definition) {
	if modeOf(d) == modeDag {
		l.plan.Root = l.dag(d, l.plan.Profile, 0, "")
	} else {
		l.plan.Root = l.graph(&scopeSource{start: d.Start, nodes: d.Nodes, edges: d.Edges, finally: d.Finally})
	}
}

// orDuration is a time that may be written in two ways.
func orDuration(d Duration, ms int64) int64 {
	if d.IsZero() {
		return ms
	}
	return d.MS
}

func profileOf(d *Definition) Profile {
	switch p := Profile(d.Profile); p {
	case ProfileOrk, ProfilePgflow:
		return p
	}
	return ProfileNone
}

// graph lowers a scope of graph mode.
func (l *lowerer) graph(s *scopeSource) *Graph {
	g := &Graph{Start: s.start, Nodes: make(map[string]*PlanNode, len(s.nodes)), Flat: s.flat()}
	specs := childSpecs(s)
	special := l.specials(s.nodes, s.finally, s.prefix, l.closingNode)
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		if !special[key] {
			g.Nodes[key] = l.node(key, s.nodes[key].orEmpty(), specs[key], s)
		}
	}
	for _, e := range s.edges {
		g.edge(e)
	}
	return g
}

// edge adds an edge. The first one of a node and an action counts; one that leads nowhere is kept, because it
// ends the scope where `default` would go on.
func (g *Graph) edge(e Edge) {
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

// node lowers one node of any kind. Spec is what the node that holds the scope says of it, or nil.
func (l *lowerer) node(key string, n *Node, spec *ExecSpec, s *scopeSource) *PlanNode {
	kind, _ := graphKind(n)
	p := &PlanNode{
		Key: key, Kind: kind, Params: params(n.Params), Prep: prep(n.Prep), Post: n.Post,
		TimeoutMS: orDuration(n.Timeout, n.TimeoutMS),
		EndOnFail: n.OnError == onErrorFail || n.OnError == "" && l.endOnFail,
	}
	if n.Compensate != "" {
		p.Undo = s.prefix + n.Compensate
	}
	p.Strategy, _ = strategyOf(kind, n.FailureStrategy)
	base := exec(routed(n), s.defaults)
	if spec != nil {
		base = base.overlaid(spec)
		if spec.Service != "" {
			base.Service = spec.Service
		}
		if len(base.Params) > 0 {
			p.Params = expr.Merge(p.Params, base.Params)
		}
		base.Params = nil
	}
	p.Retry = graphRetry(n, p)
	l.ofKind(n, p, base, s)
	return p
}

// ofKind fills in what only some kinds have.
func (l *lowerer) ofKind(n *Node, p *PlanNode, base Exec, s *scopeSource) {
	switch p.Kind {
	case KindExecutor:
		p.Single = true
		p.Exec = base.settled()
	case KindChoice:
		l.choice(n, p)
	case KindParallel:
		p.Exec = base.ofUnits()
		p.Each = &Each{Branches: branches(n, base), Window: window(n)}
	case KindForeach:
		p.Exec = base.settled()
		p.Each = &Each{Items: items(n, base), Window: window(n)}
	case KindSubflow:
		p.Sub = l.subflow(n, base, s, p.Key)
	}
}

// graphKind is a node's kind in graph mode; known is false for a word that means none.
func graphKind(n *Node) (k Kind, known bool) {
	switch k := Kind(n.Kind); k {
	case "", "remote", KindExecutor:
		return KindExecutor, true
	case KindChoice, KindParallel, KindTimer, KindForeach, KindWaitEvent, KindApproval, KindSubflow:
		return k, true
	}
	return "", false
}

// subflow lowers the scope inside a node; nil if it has no start and so ends at once.
func (l *lowerer) subflow(n *Node, defaults Exec, s *scopeSource, key string) *Graph {
	switch {
	case n.Flow == nil && n.Subflow == nil, n.Flow != nil && n.Flow.Definition == nil:
		return nil
	case n.Flow != nil && modeOf(n.Flow.Definition) == modeDag:
		return l.dag(n.Flow.Definition, profileOf(n.Flow.Definition), s.depth+1, s.prefix+key+"/")
	}
	g := l.graph(subflowSource(n, defaults, s, key))
	switch {
	case n.Flow != nil:
		g.Result = n.Flow.Result
	case n.Subflow.Start == "":
		l.unused[n] = g
		return nil
	}
	return g
}

func (l *lowerer) choice(n *Node, p *PlanNode) {
	p.Default = n.DefaultAction
	for _, ch := range n.ChoiceCases {
		c := PlanCase{Action: ch.Action, Text: ch.Expr}
		if source, ok := expr.String(ch.Expr); ok {
			c.CEL = l.cel(source, false)
		} else {
			c.Cond, _ = expr.ParseCond(ch.Expr)
		}
		p.Cases = append(p.Cases, c)
	}
}

func prep(p Prep) PlanPrep {
	if p.InputMap == nil {
		return PlanPrep{Key: p.InputKey, Ref: ref(p.InputKey)}
	}
	out := PlanPrep{HasMap: true}
	for _, key := range slices.Sorted(maps.Keys(p.InputMap)) {
		out.Map = append(out.Map, PrepEntry{Key: key, Text: p.InputMap[key], Ref: ref(p.InputMap[key])})
	}
	return out
}

// ref parses a text that begins with $; others are keys or literals, depending on the scope.
func ref(text string) expr.Ref {
	if !strings.HasPrefix(text, "$") {
		return expr.Ref{}
	}
	return expr.ParseRef(text)
}

// params are an object without the space between its parts, or nil.
func params(raw json.RawMessage) json.RawMessage {
	if compact := expr.Compact(raw); expr.KindOf(compact) == expr.KindObject {
		return compact
	}
	return nil
}

// knownCEL is an expression of which one program is enough.
type knownCEL struct {
	source string
	dag    bool
}

// What expressions may name.
var (
	caseVars = []string{"params", "input", "shared"}
	dagVars  = []string{"run", "params", "deps", "input", "shared"}
)

var errNotCompiled = errors.New("it was not compiled")

// cel compiles an expression. One that is wrong says so when it is evaluated.
func (l *lowerer) cel(source string, dag bool) *expr.CEL {
	if l.withoutCEL {
		return expr.BrokenCEL(source, errNotCompiled)
	}
	key := knownCEL{source, dag}
	if c := l.known[key]; c != nil {
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
	l.known[key] = c
	return c
}

// specials are the nodes of a scope that only run when the task is over: those that compensate others, and the
// flow's finally. They are lowered into a scope of their own, in graph mode.
func (l *lowerer) specials(nodes map[string]*Node, finally, prefix string, closing func(string, *Node) *PlanNode) map[string]bool {
	named := specialKeys(nodes, finally)
	for _, key := range inOrder(nodes) {
		if n := nodes[key]; named[key] && n != nil {
			if l.plan.Closing == nil {
				l.plan.Closing = &Graph{Nodes: map[string]*PlanNode{}}
			}
			l.plan.Closing.Nodes[prefix+key] = closing(prefix+key, n)
		}
	}
	return named
}

// specialKeys are the keys that compensate and finally name.
func specialKeys(nodes map[string]*Node, finally string) map[string]bool {
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

func (l *lowerer) closingNode(key string, n *Node) *PlanNode {
	return l.node(key, n, nil, &scopeSource{})
}

// inOrder are the keys of nodes as they were written.
func inOrder(nodes map[string]*Node) []string {
	return slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		if of := nodes[a].orEmpty().order - nodes[b].orEmpty().order; of != 0 {
			return of
		}
		return strings.Compare(a, b)
	})
}
