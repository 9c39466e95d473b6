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

// Values of Change.Kind: the changed part of a flow.
const (
	ChangedFlow  = "flow"
	ChangedInput = "input"
	ChangedNode  = "node"
	ChangedEdge  = "edge"
)

// Values of Change.Change.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is a difference between two plans that their authors made. If the compiler added a node
// for another node, a difference in the added node is reported for the other node.
type Change struct {
	Kind, Change string
	Scope        string // scope of the plan
	Node         string // for an edge, the node where it starts, or the dependent node
	Field        string // for an edge, its action
	Old, New     string
}

// Diff returns the differences between two plans, including timeouts, retries and limits: first of
// the flow, then of its inputs, then node by node, then of the edges.
func Diff(old, new *flow.Plan) []Change {
	d := &planDiffer{list: []Change{}}
	diffAspects(d, Change{Kind: ChangedFlow}, planAspects, old, new, "inputs")
	diffAspects(d, Change{Kind: ChangedFlow}, planSettings, old, new)
	d.diffInputs("", old.Root.Inputs.Schema(), new.Root.Inputs.Schema())
	d.diffScope("", old.Root, new.Root)
	d.diffScope(closingPath, old.Closing, new.Closing)
	slices.SortStableFunc(d.list, func(a, b Change) int { return cmp.Compare(changeRank[a.Kind], changeRank[b.Kind]) })
	return d.list
}

var changeRank = map[string]int{ChangedFlow: 0, ChangedInput: 1, ChangedNode: 2, ChangedEdge: 3}

// planSettings are settings of a flow that are not part of its shape.
var planSettings = []shapeAspect[*flow.Plan]{
	{name: "profile", textOf: func(p *flow.Plan) string { return string(p.Profile) }},
	{name: "timeout", textOf: func(p *flow.Plan) string { return durationText(p.TimeoutMS) }},
	{name: "attempts of a step at once", textOf: func(p *flow.Plan) string { return countText(p.Window) }},
	{name: "keys", textOf: func(p *flow.Plan) string { return strings.Join(permitsOf(p.Keys), "; ") }},
}

// tryAspects are settings of a node that are not part of its shape.
var tryAspects = []shapeAspect[scopedNode]{
	{name: "times", textOf: func(s scopedNode) string { return strings.Join(timesOf(s.n).timeNotes(), "; ") }},
	{name: "units at once", textOf: func(s scopedNode) string {
		if s.n.Each == nil {
			return ""
		}
		return countText(s.n.Each.Window)
	}},
	{name: "keys", textOf: func(s scopedNode) string { return strings.Join(permitsOf(s.n.Keys), "; ") }},
}

func countText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

type planDiffer struct{ list []Change }

func (d *planDiffer) addChange(c Change, how, field, old, new string) {
	c.Change, c.Field, c.Old, c.New = how, field, old, new
	d.list = append(d.list, c)
}

func diffAspects[T any](d *planDiffer, at Change, aspects []shapeAspect[T], was, is T, but ...string) {
	for _, a := range aspects {
		if before, now := a.textOf(was), a.textOf(is); !slices.Contains(but, a.name) && a.isDifferent(before, now) {
			d.addChange(at, Changed, a.name, before, now)
		}
	}
}

// diffInputs compares the declared inputs one by one.
func (d *planDiffer) diffInputs(scope string, old, new json.RawMessage) {
	if old == nil && new == nil || expr.Equal(old, new) {
		return
	}
	at, before := Change{Kind: ChangedInput, Scope: scope}, len(d.list)
	was, is := propertiesOf(old), propertiesOf(new)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, there := is[name]; !there {
			d.addChange(at, Removed, name, was[name], "")
		} else if was[name] != is[name] {
			d.addChange(at, Changed, name, was[name], is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, there := was[name]; !there {
			d.addChange(at, Added, name, "", is[name])
		}
	}
	if len(d.list) == before {
		d.addChange(at, Changed, "schema", compactText(old), compactText(new))
	}
}

// propertiesOf returns the schema of each property of an object, as text.
func propertiesOf(schema json.RawMessage) map[string]string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(schema, &s) // a schema of another kind has no known properties
	all := map[string]string{}
	for name, of := range s.Properties {
		all[name] = compactText(of)
		if slices.Contains(s.Required, name) {
			all[name] += ", required"
		}
	}
	return all
}

// diffScope compares the nodes of a scope. A nil scope has no nodes.
func (d *planDiffer) diffScope(path string, old, new *flow.PlanScope) {
	old, new = cmp.Or(old, &flow.PlanScope{}), cmp.Or(new, &flow.PlanScope{})
	if path != "" && old.Nodes != nil && new.Nodes != nil {
		diffAspects(d, Change{Kind: ChangedFlow, Scope: path}, graphAspects, old, new, "inputs")
		d.diffInputs(path, old.Inputs.Schema(), new.Inputs.Schema())
	}
	was, is := keysOf(old), keysOf(new)
	for _, key := range was {
		if new.Nodes[key] == nil {
			d.addLoneNode(Change{Kind: ChangedNode, Scope: path, Node: key}, Removed, scopedNode{old, old.Nodes[key]})
		}
	}
	for _, key := range is {
		at, before, now := Change{Kind: ChangedNode, Scope: path, Node: key}, old.Nodes[key], new.Nodes[key]
		if before == nil {
			d.addLoneNode(at, Added, scopedNode{new, now})
			continue
		}
		d.diffNode(at, scopedNode{old, before}, scopedNode{new, now})
		d.diffScope(flow.ScopeKey(path, key), before.Sub, now.Sub)
	}
	if mode := new.Mode(); mode == flow.ModeDag && old.Nodes != nil && sameSet(was, is) && !slices.Equal(was, is) {
		d.addChange(Change{Kind: ChangedFlow, Scope: path}, Changed, "order of the nodes", strings.Join(was, ", "), strings.Join(is, ", "))
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// addLoneNode reports a node that only one of the plans has, with its edges and its inner nodes.
func (d *planDiffer) addLoneNode(at Change, how string, s scopedNode) {
	if name := madeFor(s); name != "" {
		at.Node = name
		d.addOneSided(at, Changed, string(s.n.Kind), how, "made for it")
		return
	}
	d.addOneSided(at, how, "", how, strings.Join(nonEmpty(string(s.n.Kind), handlerOf(s.n)), " "))
	at.Kind = ChangedEdge
	for _, e := range edgesOf(s) {
		d.addOneSided(at, how, e.action, how, e.to)
	}
	if inside := flow.ScopeKey(at.Scope, at.Node); how == Added {
		d.diffScope(inside, nil, s.n.Sub)
	} else {
		d.diffScope(inside, s.n.Sub, nil)
	}
}

// addOneSided adds a change with a value on one side only.
func (d *planDiffer) addOneSided(at Change, how, field, side, text string) {
	if side == Removed {
		d.addChange(at, how, field, text, "")
		return
	}
	d.addChange(at, how, field, "", text)
}

// madeFor returns the node for which the compiler added s. It returns "" if an author wrote s.
func madeFor(s scopedNode) string {
	if s.n.Dag == nil || s.n.Dag.For < 0 {
		return ""
	}
	return s.g.Dag.List[s.n.Dag.For].Key
}

// diffNode compares a node that both plans have.
func (d *planDiffer) diffNode(at Change, was, is scopedNode) {
	made := madeFor(is)
	if made != "" {
		at.Node = made
	}
	before := len(d.list)
	if was.n.Kind != is.n.Kind {
		d.addChange(at, Changed, "kind", string(was.n.Kind), string(is.n.Kind))
	}
	diffAspects(d, at, nodeAspects, was, is, "set of edges", "list of dependencies")
	diffAspects(d, at, tryAspects, was, is)
	if made != "" {
		for i := range d.list[before:] {
			d.list[before+i].Field = string(is.n.Kind) + ": " + d.list[before+i].Field
		}
		return
	}
	at.Kind = ChangedEdge
	d.diffEdges(at, edgesOf(was), edgesOf(is))
}

// planEdge is an edge for an action, or a dependency on a node that must end first.
type planEdge struct{ action, to string }

// afterText is the field name of a dependency in dag mode.
const afterText = "after"

func edgesOf(s scopedNode) (edges []planEdge) {
	for _, action := range slices.Sorted(maps.Keys(s.n.Edges)) {
		edges = append(edges, planEdge{action, cmp.Or(s.n.Edges[action], "the end")})
	}
	if s.n.Dag == nil {
		return edges
	}
	for _, i := range s.n.Dag.Deps {
		if dep := s.g.Dag.List[i]; dep.Dag.For < 0 {
			edges = append(edges, planEdge{afterText, dep.Key})
		}
	}
	return edges
}

// diffEdges compares the edges of a node. If both plans have an edge for the same action, the edge
// counts as changed.
func (d *planDiffer) diffEdges(at Change, was, is []planEdge) {
	for _, e := range was {
		i := slices.IndexFunc(is, func(other planEdge) bool { return other.action == e.action && e.action != afterText })
		switch {
		case slices.Contains(is, e):
		case i >= 0:
			d.addChange(at, Changed, e.action, e.to, is[i].to)
		default:
			d.addChange(at, Removed, e.action, e.to, "")
		}
	}
	for _, e := range is {
		if !slices.ContainsFunc(was, func(other planEdge) bool { return other == e || other.action == e.action && e.action != afterText }) {
			d.addChange(at, Added, e.action, "", e.to)
		}
	}
}
