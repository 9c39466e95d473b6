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

// What of a flow has changed.
const (
	ChangedFlow  = "flow"
	ChangedInput = "input"
	ChangedNode  = "node"
	ChangedEdge  = "edge"
)

// How it has.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is a difference between two plans that somebody made. What a node that the compiler has made differs in belongs to the
// one that it was made for.
type Change struct {
	What, How string
	Scope     string // of the plan
	Node      string // of an edge the one it leads from, or the one that depends
	Field     string // of an edge its action
	Old, New  string
}

// Diff tells how two plans differ, when, how long and how often something is tried as well: the flow first, then what it takes, then
// node by node, then what leads from one to the other.
func Diff(old, new *flow.Plan) []Change {
	d := &differ{list: []Change{}}
	diffAspects(d, Change{What: ChangedFlow}, planAspects, old, new, "inputs")
	diffAspects(d, Change{What: ChangedFlow}, settings, old, new)
	d.inputs("", old.Root.Inputs.Schema(), new.Root.Inputs.Schema())
	d.scope("", old.Root, new.Root)
	d.scope(closingPath, old.Closing, new.Closing)
	slices.SortStableFunc(d.list, func(a, b Change) int { return cmp.Compare(rank[a.What], rank[b.What]) })
	return d.list
}

var rank = map[string]int{ChangedFlow: 0, ChangedInput: 1, ChangedNode: 2, ChangedEdge: 3}

// settings of a flow are no part of its shape.
var settings = []aspect[*flow.Plan]{
	{name: "profile", of: func(p *flow.Plan) string { return string(p.Profile) }},
	{name: "timeout", of: func(p *flow.Plan) string { return span(p.TimeoutMS) }},
	{name: "attempts of a step at once", of: func(p *flow.Plan) string { return number(p.Window) }},
	{name: "keys", of: func(p *flow.Plan) string { return strings.Join(permitsOf(p.Keys), "; ") }},
}

// tries of a node are neither.
var tries = []aspect[shaped]{
	{name: "times", of: func(s shaped) string { return strings.Join(timesOf(s.n).notes(), "; ") }},
	{name: "units at once", of: func(s shaped) string {
		if s.n.Each == nil {
			return ""
		}
		return number(s.n.Each.Window)
	}},
	{name: "keys", of: func(s shaped) string { return strings.Join(permitsOf(s.n.Keys), "; ") }},
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

type differ struct{ list []Change }

func (d *differ) add(c Change, how, field, old, new string) {
	c.How, c.Field, c.Old, c.New = how, field, old, new
	d.list = append(d.list, c)
}

func diffAspects[T any](d *differ, at Change, aspects []aspect[T], was, is T, but ...string) {
	for _, a := range aspects {
		if before, now := a.of(was), a.of(is); !slices.Contains(but, a.name) && a.differs(before, now) {
			d.add(at, Changed, a.name, before, now)
		}
	}
}

// inputs are compared one by one.
func (d *differ) inputs(scope string, old, new json.RawMessage) {
	if old == nil && new == nil || expr.Equal(old, new) {
		return
	}
	at, before := Change{What: ChangedInput, Scope: scope}, len(d.list)
	was, is := propertiesOf(old), propertiesOf(new)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, there := is[name]; !there {
			d.add(at, Removed, name, was[name], "")
		} else if was[name] != is[name] {
			d.add(at, Changed, name, was[name], is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, there := was[name]; !there {
			d.add(at, Added, name, "", is[name])
		}
	}
	if len(d.list) == before {
		d.add(at, Changed, "schema", compactText(old), compactText(new))
	}
}

// propertiesOf are what a schema says of each property of an object.
func propertiesOf(schema json.RawMessage) map[string]string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(schema, &s) // nothing is known of one that is another kind
	all := map[string]string{}
	for name, of := range s.Properties {
		all[name] = compactText(of)
		if slices.Contains(s.Required, name) {
			all[name] += ", required"
		}
	}
	return all
}

// scope compares the nodes of a scope; nil is one without any.
func (d *differ) scope(path string, old, new *flow.PlanScope) {
	old, new = cmp.Or(old, &flow.PlanScope{}), cmp.Or(new, &flow.PlanScope{})
	if path != "" && old.Nodes != nil && new.Nodes != nil {
		diffAspects(d, Change{What: ChangedFlow, Scope: path}, graphAspects, old, new, "inputs")
		d.inputs(path, old.Inputs.Schema(), new.Inputs.Schema())
	}
	was, is := keysOf(old), keysOf(new)
	for _, key := range was {
		if new.Nodes[key] == nil {
			d.alone(Change{What: ChangedNode, Scope: path, Node: key}, Removed, shaped{old, old.Nodes[key]})
		}
	}
	for _, key := range is {
		at, before, now := Change{What: ChangedNode, Scope: path, Node: key}, old.Nodes[key], new.Nodes[key]
		if before == nil {
			d.alone(at, Added, shaped{new, now})
			continue
		}
		d.node(at, shaped{old, before}, shaped{new, now})
		d.scope(flow.ScopeKey(path, key), before.Sub, now.Sub)
	}
	if mode := new.Mode(); mode == flow.ModeDag && old.Nodes != nil && sameSet(was, is) && !slices.Equal(was, is) {
		d.add(Change{What: ChangedFlow, Scope: path}, Changed, "order of the nodes", strings.Join(was, ", "), strings.Join(is, ", "))
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// alone tells of a node that only one of the plans has, with what leads from it and what is inside.
func (d *differ) alone(at Change, how string, s shaped) {
	if name := madeFor(s); name != "" {
		at.Node = name
		d.one(at, Changed, string(s.n.Kind), how, "made for it")
		return
	}
	d.one(at, how, "", how, strings.Join(nonEmpty(string(s.n.Kind), handlerOf(s.n)), " "))
	at.What = ChangedEdge
	for _, e := range edgesOf(s) {
		d.one(at, how, e.action, how, e.to)
	}
	if inside := flow.ScopeKey(at.Scope, at.Node); how == Added {
		d.scope(inside, nil, s.n.Sub)
	} else {
		d.scope(inside, s.n.Sub, nil)
	}
}

// one adds a change of which only one side says something.
func (d *differ) one(at Change, how, field, side, text string) {
	if side == Removed {
		d.add(at, how, field, text, "")
		return
	}
	d.add(at, how, field, "", text)
}

// madeFor is the node that the compiler made one for; "" = somebody wrote it.
func madeFor(s shaped) string {
	if s.n.Dag == nil || s.n.Dag.For < 0 {
		return ""
	}
	return s.g.Dag.List[s.n.Dag.For].Key
}

// node compares one that both plans have.
func (d *differ) node(at Change, was, is shaped) {
	made := madeFor(is)
	if made != "" {
		at.Node = made
	}
	before := len(d.list)
	if was.n.Kind != is.n.Kind {
		d.add(at, Changed, "kind", string(was.n.Kind), string(is.n.Kind))
	}
	diffAspects(d, at, nodeAspects, was, is, "set of edges", "list of dependencies")
	diffAspects(d, at, tries, was, is)
	if made != "" {
		for i := range d.list[before:] {
			d.list[before+i].Field = string(is.n.Kind) + ": " + d.list[before+i].Field
		}
		return
	}
	at.What = ChangedEdge
	d.edges(at, edgesOf(was), edgesOf(is))
}

// edge leads somewhere after an action, or to a node that has to end first.
type edge struct{ action, to string }

// afterText is the field of an edge of dag mode.
const afterText = "after"

func edgesOf(s shaped) (edges []edge) {
	for _, action := range slices.Sorted(maps.Keys(s.n.Edges)) {
		edges = append(edges, edge{action, cmp.Or(s.n.Edges[action], "the end")})
	}
	if s.n.Dag == nil {
		return edges
	}
	for _, i := range s.n.Dag.Deps {
		if dep := s.g.Dag.List[i]; dep.Dag.For < 0 {
			edges = append(edges, edge{afterText, dep.Key})
		}
	}
	return edges
}

// edges compares what leads from a node. One that has the action of another is that one, changed.
func (d *differ) edges(at Change, was, is []edge) {
	for _, e := range was {
		i := slices.IndexFunc(is, func(other edge) bool { return other.action == e.action && e.action != afterText })
		switch {
		case slices.Contains(is, e):
		case i >= 0:
			d.add(at, Changed, e.action, e.to, is[i].to)
		default:
			d.add(at, Removed, e.action, e.to, "")
		}
	}
	for _, e := range is {
		if !slices.ContainsFunc(was, func(other edge) bool { return other == e || other.action == e.action && e.action != afterText }) {
			d.add(at, Added, e.action, "", e.to)
		}
	}
}
