package show

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Differences returns the differences in shape of two plans: the nodes and their order, their work
// and its inputs, their dependencies and conditions. Timeouts, retries and limits are not part of
// the shape.
func Differences(old, new *flow.Plan) []string {
	list := []string{}
	list = appendDifferences(list, "the flow", planAspects, old, new)
	list = append(list, graphDifferences("", old.Root, new.Root)...)
	return append(list, graphDifferences("", old.Closing, new.Closing)...)
}

// graphDifferences returns the differences of a scope. A nil scope has no nodes.
func graphDifferences(prefix string, old, new *flow.PlanScope) (list []string) {
	old, new = cmp.Or(old, &flow.PlanScope{}), cmp.Or(new, &flow.PlanScope{})
	if prefix != "" {
		list = appendDifferences(list, "the flow in "+strings.TrimSuffix(prefix, "/"), graphAspects, old, new)
	}
	was, is := keysOf(old), keysOf(new)
	for _, key := range was {
		if new.Nodes[key] == nil {
			list = append(list, fmt.Sprintf("step %s is gone", prefix+key))
		}
	}
	for _, key := range is {
		before, now := old.Nodes[key], new.Nodes[key]
		switch {
		case before == nil:
			list = append(list, fmt.Sprintf("step %s is new", prefix+key))
		case before.Kind != now.Kind:
			list = append(list, fmt.Sprintf("step %s: the type is %s, was %s", prefix+key, now.Kind, before.Kind))
		default:
			list = appendDifferences(list, "step "+prefix+key, nodeAspects, scopedNode{old, before}, scopedNode{new, now})
			list = append(list, graphDifferences(prefix+key+"/", before.Sub, now.Sub)...)
		}
	}
	if len(list) == 0 && !slices.Equal(was, is) {
		list = append(list, fmt.Sprintf("the order of the steps is %s, was %s", strings.Join(is, ", "), strings.Join(was, ", ")))
	}
	return list
}

// keysOf returns the keys of the nodes, sorted for a graph, and in the order of the definition for
// a dag, where the order matters.
func keysOf(g *flow.PlanScope) []string {
	if g.Dag == nil {
		return slices.Sorted(maps.Keys(g.Nodes))
	}
	keys := make([]string, len(g.Dag.List))
	for i, n := range g.Dag.List {
		keys[i] = n.Key
	}
	return keys
}

// shapeAspect is an aspect of the shape of T, as text. An empty text means that the aspect is
// absent.
type shapeAspect[T any] struct {
	name   string
	textOf func(T) string
	// compares texts that are JSON values; nil means that the texts are compared
	equal func(a, b json.RawMessage) bool
}

func (a shapeAspect[T]) isDifferent(was, is string) bool {
	return was != is && (a.equal == nil || !a.equal(json.RawMessage(was), json.RawMessage(is)))
}

func appendDifferences[T any](list []string, what string, aspects []shapeAspect[T], was, is T) []string {
	for _, a := range aspects {
		if before, now := a.textOf(was), a.textOf(is); a.isDifferent(before, now) {
			list = append(list, fmt.Sprintf("%s: the %s is %s, was %s", what, a.name, cmp.Or(now, "none"), cmp.Or(before, "none")))
		}
	}
	return list
}

// scopedNode is a node with its scope.
type scopedNode struct {
	g *flow.PlanScope
	n *flow.PlanNode
}

var planAspects = []shapeAspect[*flow.Plan]{
	{name: "mode", textOf: func(p *flow.Plan) string { return modeOf(p.Root) }},
	{name: "start", textOf: func(p *flow.Plan) string { return p.Root.Start }},
	{name: "reaction to errors", textOf: func(p *flow.Plan) string { return errorReaction(p.Root) }},
	{name: "result", textOf: func(p *flow.Plan) string { return p.Root.Result }},
	{name: "inputs", textOf: func(p *flow.Plan) string { return string(p.Root.Inputs.Schema()) }, equal: expr.Equal},
	{name: "last node", textOf: func(p *flow.Plan) string { return p.Finally }},
}

var graphAspects = []shapeAspect[*flow.PlanScope]{
	{name: "mode", textOf: modeOf},
	{name: "start", textOf: func(g *flow.PlanScope) string { return g.Start }},
	{name: "reaction to errors", textOf: errorReaction},
	{name: "result", textOf: func(g *flow.PlanScope) string { return g.Result }},
	{name: "inputs", textOf: func(g *flow.PlanScope) string { return string(g.Inputs.Schema()) }, equal: expr.Equal},
}

// modeOf returns the mode of a scope, or "" if the scope has no nodes.
func modeOf(g *flow.PlanScope) string {
	if g.Nodes == nil {
		return ""
	}
	return string(g.Mode())
}

// errorReaction returns how a dag reacts to a failed node.
func errorReaction(g *flow.PlanScope) string {
	switch {
	case g.Dag == nil:
		return ""
	case g.Dag.FailFast:
		return "fail_fast"
	}
	return "continue"
}

// nodeAspects are the aspects of a node's shape, except its kind and its inner flow.
var nodeAspects = []shapeAspect[scopedNode]{
	{name: "route", textOf: func(s scopedNode) string {
		if s.n.Single || s.n.Kind == flow.KindFanout {
			return s.n.Exec.Route()
		}
		return ""
	}},
	asValue(shapeAspect[scopedNode]{name: "handler", textOf: func(s scopedNode) string { return execText(&s.n.Exec) }}),
	{name: "reaction to deferred work", textOf: func(s scopedNode) string { return wordIf(s.n.Deferred, "wait") }},
	{name: "list of parts", textOf: func(s scopedNode) string { return partsText(s.n.Each) }},
	asValue(shapeAspect[scopedNode]{name: "params", textOf: func(s scopedNode) string { return compactText(s.n.Params) }}),
	{name: "name", textOf: func(s scopedNode) string { return s.n.Name }},
	asValue(shapeAspect[scopedNode]{name: "type of its output", textOf: func(s scopedNode) string { return string(s.n.Out.Schema()) }}),
	{name: "prep", textOf: func(s scopedNode) string { return prepText(s.n.Prep) }},
	{name: "post", textOf: func(s scopedNode) string { return asJSON(s.n.Post) }},
	{name: "failure strategy", textOf: func(s scopedNode) string { return string(s.n.Strategy) }},
	{name: "list of cases", textOf: func(s scopedNode) string { return casesText(s.n) }},
	{name: "default action", textOf: func(s scopedNode) string { return s.n.Default }},
	{name: "compensation", textOf: func(s scopedNode) string { return s.n.Undo }},
	{name: "set of edges", textOf: func(s scopedNode) string { return edgesText(s.n) }},
	{name: "reaction to what is missing", textOf: func(s scopedNode) string { return wordIf(s.n.Coerce, "coerce") }},
	{name: "reaction to its failure", textOf: func(s scopedNode) string { return wordIf(s.n.Follow, "follow") }},
	dagAspect("list of dependencies", func(g *flow.PlanScope, d *flow.PlanDag) string {
		deps := make([]string, len(d.Deps))
		for i, dep := range d.Deps {
			deps[i] = g.Dag.List[dep].Key
		}
		return strings.Join(deps, ", ")
	}),
	dagAspect("run_on", func(_ *flow.PlanScope, d *flow.PlanDag) string { return wordIf(d.Always, "always") }),
	dagAspect("mode when skipped", func(_ *flow.PlanScope, d *flow.PlanDag) string { return string(d.Mode) }),
	dagAspect("mode when exhausted", func(_ *flow.PlanScope, d *flow.PlanDag) string { return string(d.Exhausted) }),
	asValue(dagAspect("pattern if", func(_ *flow.PlanScope, d *flow.PlanDag) string { return string(d.If) })),
	asValue(dagAspect("pattern if_not", func(_ *flow.PlanScope, d *flow.PlanDag) string { return string(d.IfNot) })),
	dagAspect("condition", func(_ *flow.PlanScope, d *flow.PlanDag) string { return celText(d.Expr) }),
	dagAspect("shape of the input", func(_ *flow.PlanScope, d *flow.PlanDag) string { return string(d.Shape) }),
	asValue(dagAspect("static input", func(_ *flow.PlanScope, d *flow.PlanDag) string { return compactText(d.Static) })),
	asValue(dagAspect("inputs of the flow inside", func(_ *flow.PlanScope, d *flow.PlanDag) string { return string(d.Takes.Schema()) })),
	dagAspect("input", func(_ *flow.PlanScope, d *flow.PlanDag) string { return mappedText(d) }),
	dagAspect("source of its items", func(_ *flow.PlanScope, d *flow.PlanDag) string { return refText(d.Items) }),
	dagAspect("number of units", func(_ *flow.PlanScope, d *flow.PlanDag) string {
		if d.Repeats > 0 {
			return fmt.Sprint(d.Repeats)
		}
		return refText(d.Count)
	}),
}

func dagAspect(name string, of func(*flow.PlanScope, *flow.PlanDag) string) shapeAspect[scopedNode] {
	return shapeAspect[scopedNode]{name: name, textOf: func(s scopedNode) string {
		if s.n.Dag == nil {
			return ""
		}
		return of(s.g, s.n.Dag)
	}}
}

// asValue returns an aspect whose texts are JSON: the spelling of a value is not part of the shape.
func asValue(a shapeAspect[scopedNode]) shapeAspect[scopedNode] {
	a.equal = expr.Equal
	return a
}

func wordIf(yes bool, word string) string {
	if yes {
		return word
	}
	return ""
}

// execText describes the carrier of a job and its settings.
func execText(x *flow.Exec) string {
	own := *x
	if own.Type == flow.ExecQueue || own.Type == flow.ExecDirect || own.Type == flow.ExecPush {
		own.Type = "" // the route shows the type
	}
	return asJSON(struct {
		Type    flow.ExecType   `json:"exec_type,omitempty"`
		Service string          `json:"service,omitempty"`
		Func    string          `json:"func,omitempty"`
		Script  *flow.Script    `json:"script,omitempty"`
		Program *flow.Program   `json:"exec,omitempty"`
		Params  json.RawMessage `json:"params,omitempty"`
		Labels  []string        `json:"labels,omitempty"`
	}{own.Type, own.Service, own.Func, own.Script, own.Program, own.Params, own.Labels})
}

// partsText describes the units of a parallel, and the units of a foreach with other executors.
func partsText(e *flow.Each) string {
	if e == nil {
		return ""
	}
	var list []string
	for _, b := range e.Branches {
		list = append(list, b.Name+" "+b.Exec.Route()+" "+execText(&b.Exec))
	}
	for _, i := range slices.Sorted(maps.Keys(e.Items)) {
		x := e.Items[i]
		list = append(list, fmt.Sprint(i)+" "+x.Route()+" "+execText(&x))
	}
	return strings.Join(list, ", ")
}

func prepText(p flow.PlanPrep) string {
	if !p.HasMap {
		return p.Key
	}
	entries := map[string]string{}
	for _, e := range p.Map {
		entries[e.Key] = e.Text
	}
	b, _ := json.Marshal(entries)
	return string(b)
}

func casesText(n *flow.PlanNode) string {
	var list []string
	for _, c := range n.Cases {
		list = append(list, c.Action+" if "+compactText(c.Text))
	}
	return strings.Join(list, ", ")
}

func edgesText(n *flow.PlanNode) string {
	var edges []string
	for _, action := range slices.Sorted(maps.Keys(n.Edges)) {
		edges = append(edges, action+" → "+n.Edges[action])
	}
	return strings.Join(edges, ", ")
}

// mappedText describes the parts of a mapped input.
func mappedText(d *flow.PlanDag) string {
	switch {
	case d.Bindings == nil:
		return celText(d.MapExpr) + refText(d.Map)
	}
	fields := make([]string, len(d.Bindings))
	for i, b := range d.Bindings {
		fields[i] = b.Name + ": " + refText(b.Ref) + compactText(b.Const)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func refText(r *flow.PlanRef) string {
	if r == nil {
		return ""
	}
	return r.Text
}

func celText(c *expr.CEL) string {
	if c == nil {
		return ""
	}
	return c.Source()
}

func compactText(v json.RawMessage) string {
	if c := expr.Compact(v); c != nil {
		return string(c)
	}
	return string(v)
}

// asJSON returns the JSON of a value, or "" if the JSON is {}.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if string(b) == "{}" {
		return ""
	}
	return string(b)
}
