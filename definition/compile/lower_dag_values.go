package compile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// hasHandler reports whether the node itself has a handler.
func hasHandler(n *definition.Node) bool {
	return n.Exec.Program() != nil || definition.Handler{Service: n.Service, Func: n.Func, Script: n.Script, Route: n.Route}.Given()
}

// lowerInput sets the input of a node's handler.
func (l *dagLowerer) lowerInput(src *dagSource) {
	n, p := src.source, src.node.Dag
	p.Shape, _ = shapeOf(n.InputShape, l.defaults.shape)
	p.Static = compactParams(n.Input)
	if src.node.Kind != flow.KindSubflow {
		l.lowerMapping(src.node, src)
	}
	p.Fixed = p.MapExpr == nil && (p.Map == nil || p.Map.From != flow.FromShared) &&
		!slices.ContainsFunc(p.Bindings, func(b flow.PlanBinding) bool { return b.Ref != nil && b.Ref.From == flow.FromShared })
}

// lowerMapping sets an input, or the value of a prep or output, that is built from parts.
func (l *dagLowerer) lowerMapping(p *flow.PlanNode, src *dagSource) {
	n, d := src.source, p.Dag
	switch {
	case len(n.Inputs) > 0:
		d.Shape = flow.ShapeMapped
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			b := flow.PlanBinding{Name: name, Const: expr.Compact(n.Inputs[name].Const)}
			if ref := n.Inputs[name].Ref; ref != "" {
				b.Ref = src.parseReference(ref)
			}
			d.Bindings = append(d.Bindings, b)
		}
	case n.Prep.Expr != "":
		d.Shape, d.MapExpr = flow.ShapeMapped, l.compileCEL(n.Prep.Expr, true)
	case n.Prep.InputMap != nil:
		d.Shape, d.Bindings = flow.ShapeMapped, []flow.PlanBinding{}
		for _, name := range slices.Sorted(maps.Keys(n.Prep.InputMap)) {
			text := n.Prep.InputMap[name]
			b := flow.PlanBinding{Name: name, Const: expr.Quote(text)}
			if strings.HasPrefix(text, "$") {
				b = flow.PlanBinding{Name: name, Ref: src.parseReference(text)}
			}
			d.Bindings = append(d.Bindings, b)
		}
	case n.Prep.InputKey != "":
		d.Shape, d.Map = flow.ShapeMapped, src.parseReference(n.Prep.InputKey)
	}
}

// parseReference reads a reference of a node.
func (src *dagSource) parseReference(text string) *flow.PlanRef {
	r, _ := parseReference(text, src.sees)
	return r
}

// parseReference parses a reference of dag mode: $run.x, $params.x, $deps.a.x, $shared.x, $input.x,
// and the notations tasks.a.output.x and a.x. unseen is the first name of the reference if no
// visible value has that name.
func parseReference(text string, sees []flow.Seen) (r *flow.PlanRef, unseen string) {
	r = &flow.PlanRef{Text: text}
	head, path, _ := strings.Cut(text, ".")
	switch head {
	case "$run", "$params":
		r.From, r.Path = flow.FromRun, path
		return r, ""
	case "$input":
		r.From, r.Path = flow.FromInput, path
		return r, ""
	case "$shared":
		r.From, r.Ref = flow.FromShared, expr.ParseRef(text)
		return r, ""
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
	for _, seen := range sees {
		if seen.Name == head {
			r.From, r.Dep, r.Path = flow.FromDep, seen.Index, path
			return r, ""
		}
	}
	return r, cmp.Or(head, text)
}

// parsePattern parses a pattern for an input.
func parsePattern(raw json.RawMessage) (json.RawMessage, *expr.Pattern) {
	if len(raw) == 0 {
		return nil, nil
	}
	p, _ := expr.ParsePattern(raw)
	return expr.Compact(raw), p
}
