package compile

import (
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// spot is a node, or what stands for one, with what decides whether its fields are obeyed.
type spot struct {
	n      *define.Node
	p      *flow.PlanNode
	kind   string // as in the rules of define.NodeFields
	called string // what messages call it
	dag    bool
	inner  bool // it belongs to a flow inside another one

	closing bool // it compensates another one, or runs finally
}

// conditions reports for each condition of define.NodeFields whether a spot meets it.
var conditions = map[string]func(s spot) bool{
	"":         func(spot) bool { return true },
	"inline":   func(s spot) bool { return s.n.Subflow != nil && s.n.Flow == nil },
	"unnamed":  func(s spot) bool { return s.n.Flow == nil },
	"untyped":  func(s spot) bool { return s.n.ExecType == "" },
	"function": func(s spot) bool { return s.travels(flow.ExecFunc) },
	"script":   func(s spot) bool { return s.travels(flow.ExecScript) },
	"jobs":     func(s spot) bool { return !s.travels(flow.ExecDirect) },
	"repeated": func(s spot) bool { return !s.travels(flow.ExecDirect) && s.n.MaxRetries > 0 },
	"inner": func(s spot) bool {
		return s.travels(flow.ExecHTTP, flow.ExecFunc, flow.ExecScript)
	},
	"http":  func(s spot) bool { return s.travels(flow.ExecHTTP) },
	"queue": func(s spot) bool { return s.travels(flow.ExecQueue) },
	"workers": func(s spot) bool {
		return s.travels(flow.ExecHTTP, flow.ExecRemote, flow.ExecQueue)
	},
	"program":    func(s spot) bool { return s.n.Exec.Program() != nil },
	"closing":    func(s spot) bool { return s.closing && s.p.Exec.FromClaim },
	"files":      func(s spot) bool { return s.p.Exec.ByFiles() },
	"claimed":    func(s spot) bool { return s.p.Exec.ByFiles() || s.travels(flow.ExecQueue) },
	"retried":    func(s spot) bool { return s.p.Strategy == flow.StrategyRetry },
	"root":       func(s spot) bool { return !s.inner && !s.closing },
	"edged":      func(s spot) bool { return !s.closing },
	"concurrent": func(s spot) bool { return s.n.ParallelMode == "concurrent" },
	"unlisted":   func(s spot) bool { return len(s.n.ParallelExecs) == 0 },
	"unmapped":   func(s spot) bool { return s.n.Prep.InputMap == nil },
	"keyed":      func(s spot) bool { return hasKeys(&s.n.KeyFields) },
	"when":       func(s spot) bool { return s.n.When != nil },
	"unbound": func(s spot) bool {
		return len(s.n.Inputs) == 0 && s.n.Prep.Empty() || s.n.InputShape == string(flow.ShapeMapped)
	},
	"patterned": func(s spot) bool { return s.comparesInput() },
	"compared":  func(s spot) bool { return s.comparesInput() && s.p.Dag.Shape == flow.ShapeMerged },
	"merged":    func(s spot) bool { return s.p.Dag.Shape == flow.ShapeMerged },
	"counted":   func(s spot) bool { return s.p.Dag.Items == nil },
	"asked": func(s spot) bool {
		return s.n.When != nil && s.n.When.Cond != nil || s.kind == "branch" && s.n.Prep.Given()
	},
	"dag":     func(s spot) bool { return s.p.Sub == nil || s.p.Sub.Dag != nil },
	"undone":  func(s spot) bool { return s.n.Compensate != "" },
	"limited": func(s spot) bool { return s.p.Strategy != flow.StrategyRetry },
	"graph":   func(s spot) bool { return s.p.Kind == flow.KindSubflow },
	"mapping": func(s spot) bool { return !s.p.Single },
	"handler": func(s spot) bool { return s.p.Single },
}

// travels reports whether jobs of the spot may be of one of some types.
func (s spot) travels(types ...flow.ExecType) bool {
	switch e := s.p.Each; {
	case e != nil && len(e.Branches) > 0:
		return slices.ContainsFunc(e.Branches, func(b flow.Branch) bool {
			return slices.Contains(types, b.Exec.Type)
		})
	case e != nil:
		for _, x := range e.Items {
			if slices.Contains(types, x.Type) {
				return true
			}
		}
	}
	return slices.Contains(types, s.p.Exec.Type)
}

// comparesInput reports whether patterns decide if the node runs.
func (s spot) comparesInput() bool { return s.p.Dag.Has != nil || s.p.Dag.Not != nil }

// obeys reports whether the spot obeys a field.
func (s spot) obeys(f *define.NodeField) bool {
	return slices.ContainsFunc(f.Rule(s.dag).ConditionsOf(s.kind), func(condition string) bool {
		return conditions[condition](s)
	})
}

// checkNodeFields refuses the fields of a spot that it does not obey. In the profile pocketflow it
// warns, because the clients of that profile send more than a node obeys.
func (c *checker) checkNodeFields(s spot, pocketflow bool, at *define.Place) {
	v := reflect.ValueOf(s.n).Elem()
	for i := range define.NodeFields {
		f := &define.NodeFields[i]
		if written(v.FieldByIndex(nodeFieldIndexes[i])) && !s.obeys(f) {
			place := at
			for key := range strings.SplitSeq(f.Name, ".") {
				place = place.Key(key)
			}
			c.refuse(pocketflow, place, "has no effect on this %s: %s", s.called, s.hint(f))
		}
	}
}

// hint returns what to do about a field that the spot does not obey.
func (s spot) hint(f *define.NodeField) string {
	rule := f.Rule(s.dag)
	conditions := rule.ConditionsOf(s.kind)
	if s.closing && (len(conditions) == 0 && f.Dag.Kinds != "" ||
		slices.Contains(conditions, "root") || slices.Contains(conditions, "edged")) {
		return "it only runs when the task is over: leave it out"
	}
	return rule.Hint
}

// written reports whether a field has a value that means something; an empty list has none.
func written(v reflect.Value) bool {
	return !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0)
}

// refuse reports what means nothing where it stands: as an error, or in the profile pocketflow as
// a warning.
func (c *checker) refuse(pocketflow bool, at *define.Place, format string, args ...any) {
	if pocketflow {
		c.Warnf(at, format, args...)
		return
	}
	c.Errorf(at, format, args...)
}

// Where the fields of the tables are in their types.
var (
	nodeFieldIndexes = indexesOf[define.Node](define.NodeFields,
		func(f define.NodeField) string { return f.Name })
	flowFieldIndexes = indexesOf[define.Definition](define.FlowFields,
		func(f define.FlowField) string { return f.Name })
	overrideFieldIndexes = indexesOf[define.ExecSpec](define.OverrideFields,
		func(f define.OverrideField) string { return f.Name })
)

// indexesOf returns where a type has the fields of a table.
func indexesOf[T, Row any](table []Row, name func(Row) string) (indexes [][]int) {
	for _, row := range table {
		var index []int
		at := reflect.TypeFor[T]()
		for key := range strings.SplitSeq(name(row), ".") {
			next := indexOf(at, key)
			index = append(index, next...)
			at = at.FieldByIndex(next).Type
		}
		indexes = append(indexes, index)
	}
	return indexes
}

// indexOf returns where a type has a field of definitions; it panics when there is none.
func indexOf(t reflect.Type, name string) []int {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Index
		}
	}
	panic("compile: there is no field " + name)
}

// graphSpot returns the spot of a node of graph mode, or of one that runs when the task is over.
func graphSpot(n *define.Node, p *flow.PlanNode, inner, closing bool) spot {
	kind := string(p.Kind)
	return spot{n: n, p: p, kind: kind, called: kind, inner: inner, closing: closing}
}

// dagSpot returns the spot of a node of dag mode.
func dagSpot(n *define.Node, src *dagSource, kind flow.Kind) spot {
	return spot{n: n, p: src.node, kind: string(kind), called: string(kind), dag: true}
}

// handlerSpot returns the spot of a handler in dag mode, which the compiler makes a node of.
func handlerSpot(h define.Handler, p *flow.PlanNode) spot {
	n := handlerNode(h, &define.Node{})
	return spot{n: n, p: p, kind: string(flow.KindExecutor), called: "handler", dag: true}
}

// jobSpot returns the spot of an entry for the jobs of a branch or an item.
func jobSpot(o *define.ExecSpec, e flow.Exec) spot {
	return childSpot(o, &define.Node{}, &flow.PlanNode{Kind: flow.KindExecutor, Exec: e})
}

// childSpot returns the spot of an entry for a child of a subflow.
func childSpot(o *define.ExecSpec, child *define.Node, p *flow.PlanNode) spot {
	n := &define.Node{Service: o.Service, ExecType: o.ExecType, ExecMode: o.ExecMode, Func: o.Func,
		Script: o.Script, Flow: child.Flow}
	if n.Flow == nil {
		n.Subflow = child.Subflow
	}
	return spot{n: n, p: p, kind: string(p.Kind), called: "entry", inner: true}
}

// checkOverride refuses the fields of an entry that its list, or the node it is for, does not obey.
func (c *checker) checkOverride(
	o *define.ExecSpec, list string, s spot, pocketflow bool, at *define.Place,
) {
	v := reflect.ValueOf(o).Elem()
	for i := range define.OverrideFields {
		f := &define.OverrideFields[i]
		if written(v.FieldByIndex(overrideFieldIndexes[i])) && !f.ObeyedIn(list) {
			c.refuse(pocketflow, at.Key(f.Name), "has no effect in %s: %s", list, f.Hint)
			if f.Name == "service" {
				s.n.Service = "" // one message is enough
			}
		}
	}
	c.checkNodeFields(s, pocketflow, at)
}

// checkFlowFields refuses the fields of a flow that it does not obey. An inner flow is inside
// another one; a flow that was published by itself has such fields for tasks of its own.
func (c *checker) checkFlowFields(d *define.Definition, inner, pocketflow bool, at *define.Place) {
	v := reflect.ValueOf(d).Elem()
	for i, f := range define.FlowFields {
		if !written(v.FieldByIndex(flowFieldIndexes[i])) {
			continue
		}
		obeyed, mode := f.Graph, flow.ModeGraph
		if ModeOf(d) == flow.ModeDag {
			obeyed, mode = f.Dag, flow.ModeDag
		}
		switch place := at.Key(f.Name); {
		case obeyed == define.Nowhere:
			c.refuse(pocketflow, place, "has no effect in a %s: %s", mode, f.Hint)
		case obeyed == define.Everywhere || !inner:
		case f.Vital:
			c.Errorf(place, "has no effect in a flow inside another one: %s", f.Hint)
		case d.Embedded != "":
			c.Notef(place, "has no effect here: tasks of the flow around it are not bound by it")
		default:
			mild := pocketflow || f.Name == "schedule"
			c.refuse(mild, place, "has no effect in a flow inside another one: %s", f.Hint)
		}
	}
}
