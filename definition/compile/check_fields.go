package compile

import (
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// spot is a node, or an object with fields of nodes, together with the data that decides which
// fields apply.
type spot struct {
	n      *definition.Node
	p      *flow.PlanNode
	kind   string // kind of the node, as in the rules of definition.NodeFields
	called string // name of the spot in messages
	dag    bool
	inner  bool // the spot belongs to a nested flow

	closing    bool // the spot compensates another node, or is the finally
	pocketflow bool // the spot belongs to a scope with the pocketflow profile
}

// conditions maps each condition of definition.NodeFields to a function that reports whether a spot
// meets it.
var conditions = map[string]func(s spot) bool{
	"":           func(spot) bool { return true },
	"inline":     func(s spot) bool { return s.n.Subflow != nil && s.n.Flow == nil },
	"unnamed":    func(s spot) bool { return s.n.Flow == nil },
	"untyped":    func(s spot) bool { return s.n.ExecType == "" },
	"function":   func(s spot) bool { return s.hasExecType(flow.ExecFunc) },
	"script":     func(s spot) bool { return s.hasExecType(flow.ExecScript) },
	"jobs":       func(s spot) bool { return !s.hasExecType(flow.ExecDirect) },
	"pocketflow": func(s spot) bool { return s.pocketflow },
	"repeated":   func(s spot) bool { return s.pocketflow && s.n.MaxRetries > 0 },
	"inner": func(s spot) bool {
		return s.pocketflow && s.hasExecType(flow.ExecPush, flow.ExecFunc, flow.ExecScript)
	},
	"push":  func(s spot) bool { return s.hasExecType(flow.ExecPush) },
	"queue": func(s spot) bool { return s.hasExecType(flow.ExecQueue) },
	"workers": func(s spot) bool {
		return s.hasExecType(flow.ExecPush, flow.ExecRemote, flow.ExecQueue)
	},
	"program":    func(s spot) bool { return s.n.Exec.Program() != nil },
	"closing":    func(s spot) bool { return s.closing && s.p.Exec.FromClaim },
	"files":      func(s spot) bool { return s.p.Exec.ByFiles() },
	"claimed":    func(s spot) bool { return s.p.Exec.ByFiles() || s.hasExecType(flow.ExecQueue) },
	"retried":    func(s spot) bool { return s.pocketflow && s.p.Strategy == flow.StrategyRetry },
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

// hasExecType reports whether jobs of the spot may have one of the types.
func (s spot) hasExecType(types ...flow.ExecType) bool {
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

// comparesInput reports whether the node has patterns as a condition.
func (s spot) comparesInput() bool { return s.p.Dag.Has != nil || s.p.Dag.Not != nil }

// allowsField reports whether a field applies to the spot.
func (s spot) allowsField(f *definition.NodeField) bool {
	return slices.ContainsFunc(f.Rule(s.dag).ConditionsOf(s.kind), func(condition string) bool {
		return conditions[condition](s)
	})
}

// checkNodeFields reports the fields of a spot that do not apply. With the pocketflow profile these
// are warnings, because clients of that profile send more fields than apply.
func (c fieldChecker) checkNodeFields(s spot, pocketflow bool, at *definition.Place) {
	s.pocketflow = pocketflow
	v := reflect.ValueOf(s.n).Elem()
	for i := range definition.NodeFields {
		f := &definition.NodeFields[i]
		if written(v.FieldByIndex(nodeFieldIndexes[i])) && !s.allowsField(f) {
			place := at
			for key := range strings.SplitSeq(f.Name, ".") {
				place = place.Key(key)
			}
			c.reportByProfile(pocketflow, place, "has no effect on this %s: %s", s.called, s.hintFor(f))
		}
	}
}

// hintFor returns the suggestion for a field that does not apply to the spot.
func (s spot) hintFor(f *definition.NodeField) string {
	rule := f.Rule(s.dag)
	conditions := rule.ConditionsOf(s.kind)
	if s.closing && (len(conditions) == 0 && f.Dag.Kinds != "" ||
		slices.Contains(conditions, "root") || slices.Contains(conditions, "edged")) {
		return "it only runs when the task is over: leave it out"
	}
	return rule.Hint
}

// written reports whether a field has an effective value. An empty list has no effect.
func written(v reflect.Value) bool {
	return !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0)
}

// reportByProfile reports a field without an effect: as an error, or with the pocketflow profile as
// a warning.
func (c fieldChecker) reportByProfile(pocketflow bool, at *definition.Place, format string, args ...any) {
	if pocketflow {
		c.Warnf(at, format, args...)
		return
	}
	c.Errorf(at, format, args...)
}

// Indexes of the tables' fields in their types.
var (
	nodeFieldIndexes = indexesOf[definition.Node](definition.NodeFields,
		func(f definition.NodeField) string { return f.Name })
	flowFieldIndexes = indexesOf[definition.Definition](definition.FlowFields,
		func(f definition.FlowField) string { return f.Name })
	overrideFieldIndexes = indexesOf[definition.ExecSpec](definition.OverrideFields,
		func(f definition.OverrideField) string { return f.Name })
)

// indexesOf returns the indexes in a type of the fields of a table.
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

// indexOf returns the index of a field of definitions in a type. It panics if the type has no such
// field.
func indexOf(t reflect.Type, name string) []int {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Index
		}
	}
	panic("compile: there is no field " + name)
}

// graphSpot returns the spot of a node of graph mode, or of a node of the closing.
func graphSpot(n *definition.Node, p *flow.PlanNode, inner, closing bool) spot {
	kind := string(p.Kind)
	return spot{n: n, p: p, kind: kind, called: kind, inner: inner, closing: closing}
}

// dagSpot returns the spot of a node of dag mode.
func dagSpot(n *definition.Node, src *dagSource, kind flow.Kind) spot {
	return spot{n: n, p: src.node, kind: string(kind), called: string(kind), dag: true}
}

// handlerSpot returns the spot of a handler in dag mode, for which the compiler generates a node.
func handlerSpot(h definition.Handler, p *flow.PlanNode) spot {
	n := handlerNode(h, &definition.Node{})
	return spot{n: n, p: p, kind: string(flow.KindExecutor), called: "handler", dag: true}
}

// jobSpot returns the spot of an entry for a branch or an item.
func jobSpot(o *definition.ExecSpec, e flow.Exec) spot {
	return childSpot(o, &definition.Node{}, &flow.PlanNode{Kind: flow.KindExecutor, Exec: e})
}

// childSpot returns the spot of an entry for a child of a subflow.
func childSpot(o *definition.ExecSpec, child *definition.Node, p *flow.PlanNode) spot {
	n := &definition.Node{Service: o.Service, ExecType: o.ExecType, ExecMode: o.ExecMode, Func: o.Func,
		Script: o.Script, Flow: child.Flow}
	if n.Flow == nil {
		n.Subflow = child.Subflow
	}
	return spot{n: n, p: p, kind: string(p.Kind), called: "entry", inner: true}
}

// checkOverride reports the fields of an entry that do not apply to the list of the entry or to its
// node.
func (c fieldChecker) checkOverride(
	o *definition.ExecSpec, list string, s spot, pocketflow bool, at *definition.Place,
) {
	v := reflect.ValueOf(o).Elem()
	for i := range definition.OverrideFields {
		f := &definition.OverrideFields[i]
		if written(v.FieldByIndex(overrideFieldIndexes[i])) && !f.ObeyedIn(list) {
			c.reportByProfile(pocketflow, at.Key(f.Name), "has no effect in %s: %s", list, f.Hint)
			if f.Name == "service" {
				s.n.Service = "" // avoids a second message
			}
		}
	}
	c.checkNodeFields(s, pocketflow, at)
}

// checkFlowFields reports the fields of a flow that do not apply. inner means that the flow is
// nested in another one. A nested flow that was published itself may have such fields for its own
// tasks.
func (c fieldChecker) checkFlowFields(d *definition.Definition, inner, pocketflow bool, at *definition.Place) {
	v := reflect.ValueOf(d).Elem()
	for i, f := range definition.FlowFields {
		if !written(v.FieldByIndex(flowFieldIndexes[i])) {
			continue
		}
		obeyed, mode := f.Graph, flow.ModeGraph
		switch ModeOf(d) {
		case flow.ModeDag:
			obeyed, mode = f.Dag, flow.ModeDag
		case flow.ModeCode:
			obeyed, mode = f.Code(), flow.ModeCode
		}
		switch place := at.Key(f.Name); {
		case obeyed == definition.Nowhere:
			c.reportByProfile(pocketflow, place, "has no effect in a %s: %s", mode, f.Hint)
		case obeyed == definition.Everywhere || !inner:
		case f.Vital:
			c.Errorf(place, "has no effect in a flow inside another one: %s", f.Hint)
		case d.Embedded != "":
			c.Notef(place, "has no effect here: tasks of the flow around it are not bound by it")
		default:
			mild := pocketflow || f.Name == "schedule"
			c.reportByProfile(mild, place, "has no effect in a flow inside another one: %s", f.Hint)
		}
	}
}
