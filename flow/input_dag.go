package flow

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// dagInput returns the input of a node's handler. It is built from outputs that no longer change,
// so it can be rebuilt at any time. A mapped input may fail.
func (sc *Scope) dagInput(n *PlanNode) (json.RawMessage, error) {
	d := n.Dag
	switch d.Shape {
	case ShapeMapped:
		return sc.mappedInput(n, nil)
	case ShapeDeps:
		if len(d.Sees) == 0 {
			return sc.runOf(n), nil
		}
		return sc.depsObject(n), nil
	case ShapeMerged:
		return sc.mergedInput(n), nil
	}
	b := append([]byte(`{"run":`), sc.runOf(n)...)
	return append(sc.appendSeen(b, d.Sees, false), '}'), nil
}

// mergedInput merges the run's input over the static input, and the dependencies over both. A
// dependency without a result is null.
func (sc *Scope) mergedInput(n *PlanNode) json.RawMessage {
	base := n.Dag.Static
	if run := sc.openValue(sc.runOf(n)); expr.KindOf(run) == expr.KindObject {
		base = expr.Merge(base, run)
	}
	deps := json.RawMessage(append(sc.appendSeen([]byte{'{'}, n.Dag.Sees, true), '}'))
	if merged := expr.Merge(base, deps); len(merged) > 0 {
		return merged
	}
	return json.RawMessage("{}")
}

// mappedInput builds a mapped input from an expression, one reference or bindings. Without any of
// these, the input holds all outputs that the node sees.
func (sc *Scope) mappedInput(n *PlanNode, a *expr.Allowance) (json.RawMessage, error) {
	d := n.Dag
	switch {
	case d.MapExpr != nil:
		return d.MapExpr.On(a).Eval(sc.exprVars(n))
	case d.Map != nil:
		v, _ := sc.dagRef(n, d.Map)
		return v, nil
	case d.Bindings == nil:
		return sc.depsObject(n), nil
	}
	b := []byte{'{'}
	for i, field := range d.Bindings {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(expr.AppendQuote(b, field.Name), ':')
		if field.Ref == nil {
			b = append(b, field.Const...)
			continue
		}
		v, found := sc.dagRef(n, field.Ref)
		if !found {
			return nil, Errorf(Invalid, "inputs.%s: there is no %s", field.Name, field.Ref.Text)
		}
		b = append(b, v...)
	}
	return append(b, '}'), nil
}

// dagRef returns the value of a reference of a node.
func (sc *Scope) dagRef(n *PlanNode, r *PlanRef) (v json.RawMessage, found bool) {
	switch r.From {
	case FromShared:
		v = orNull(r.Ref.Resolve(sc.referenceEnv(nil, nil)))
		return v, expr.KindOf(v) != expr.KindNull
	case FromDep:
		dep := &sc.Nodes[r.Dep]
		if dep.Status() != StepCompleted {
			return null, false
		}
		v = orNull(dep.Output)
	case FromRun, FromInput:
		v = sc.runOf(n)
	}
	if r.Path == "" {
		return v, true
	}
	at := orNull(expr.PathIn(v, r.Path, sc.pathOpener()))
	return at, expr.KindOf(at) != expr.KindNull
}

// exprVars returns the variables of a node's expressions.
func (sc *Scope) exprVars(n *PlanNode) expr.Vars {
	return func(name string) (expr.Source, bool) {
		switch name {
		case "run", "params":
			return expr.Raw(sc.expandValue(sc.runOf(n))), true
		case "deps":
			return expr.Source{Field: func(key string) (json.RawMessage, bool) {
				v, there := sc.seenOutput(n, key)
				return sc.expandValue(v), there
			}, All: func() json.RawMessage { return sc.expandValue(sc.depsObject(n)) },
				Empty: func(key string) bool { return sc.seesNothing(n, key) }}, true
		case "shared":
			return sc.referenceEnv(nil, nil).Var(name)
		case "input":
			return expr.Source{All: func() json.RawMessage {
				v, err := sc.seenBy(n)
				if err != nil {
					return null
				}
				return sc.expandValue(v)
			}, Empty: func(key string) bool { return sc.seesNothing(n, key) }}, true
		}
		return expr.Source{}, false
	}
}

// depsObject returns the outputs that a node sees, as one object.
func (sc *Scope) depsObject(n *PlanNode) json.RawMessage {
	return append(sc.appendSeen([]byte{'{'}, n.Dag.Sees, false), '}')
}

func (sc *Scope) seenOutput(n *PlanNode, name string) (json.RawMessage, bool) {
	for _, s := range n.Dag.Sees {
		if dep := &sc.Nodes[s.Index]; s.Name == name && dep.Status() == StepCompleted {
			return orNull(dep.Output), true
		}
	}
	return nil, false
}

// seesNothing reports whether the name is a dependency without an output. Such a dependency was
// skipped or failed.
func (sc *Scope) seesNothing(n *PlanNode, name string) bool {
	return slices.ContainsFunc(n.Dag.Sees, func(s Seen) bool { return s.Name == name && sc.Nodes[s.Index].Status() != StepCompleted })
}

// describeValue returns the kind of a value, with the value itself if it is short.
func describeValue(v json.RawMessage) string {
	kind, short := expr.KindOf(v), expr.Compact(v)
	if kind == expr.KindNull || len(short) > 40 {
		return kind.String()
	}
	return kind.String() + ": " + string(short)
}

// fanoutItem returns the item of a fanout's unit, or nil if the fanout only has a number of units.
func (st *Step) fanoutItem(i int) json.RawMessage {
	if i < st.Initial && st.Node.Dag.Items == nil {
		return nil
	}
	return itemAt(st.common.items, st.Extra, st.Initial, i)
}

// itemAt returns the item of a unit. Each item of the list belongs to the same number of
// consecutive units; appended items follow, one per unit.
func itemAt(items, extra []json.RawMessage, initial, unit int) json.RawMessage {
	if k := unit - initial; k >= 0 {
		if k < len(extra) {
			return orNull(extra[k])
		}
		return null
	}
	if n := len(items); n > 0 && initial >= n {
		return orNull(items[unit/(initial/n)])
	}
	return null
}

// runOf returns the value of `run` for a node: the result of the prep of the branch around it, else
// the run of the scope.
func (sc *Scope) runOf(n *PlanNode) json.RawMessage {
	if n.Dag.Run >= 0 {
		return orNull(sc.Nodes[n.Dag.Run].Output)
	}
	return orNull(sc.run)
}

// completedOutputs returns the outputs of the completed nodes by name, or null if there are none.
func (sc *Scope) completedOutputs(seen []Seen) json.RawMessage {
	b := []byte{'{'}
	b = sc.appendSeen(b, seen, false)
	if len(b) == 1 {
		return null
	}
	return append(b, '}')
}

// appendSeen adds the outputs of nodes as fields. For nodes that were skipped or failed it adds
// null if nulls is set, otherwise nothing.
func (sc *Scope) appendSeen(b []byte, seen []Seen, nulls bool) []byte {
	for _, s := range seen {
		n := &sc.Nodes[s.Index]
		if n.Status() != StepCompleted && !nulls {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(expr.AppendQuote(b, s.inputName()), ':')
		b = append(b, orNull(n.Output)...)
	}
	return b
}

// unitsOfEach returns the number of units of a fanout. It returns an error if a step may not have
// so many units.
func (sc *Scope) unitsOfEach(n *PlanNode, most int) (int, error) {
	d := n.Dag
	if d.Items == nil {
		count, text, err := sc.countOfEach(n)
		if err == nil && count > most {
			err = Errorf(Limit, "limit: %s units, more than the %d a step may have", text, most)
		}
		return count, err
	}
	items, err := sc.itemsOfEach(n)
	switch total := len(items); {
	case err != nil:
		return 0, err
	case d.Repeats == 0 && d.Count == nil && total > most:
		return 0, Errorf(Limit, "limit: %d units, more than the %d a step may have", total, most)
	case d.Repeats == 0 && d.Count == nil, total == 0:
		return total, nil
	}
	count, text, err := sc.countOfEach(n)
	if err == nil && count > most/len(items) { // the product might overflow an int
		err = Errorf(Limit, "limit: %d items × %s units each are more than the %d units a step may have", len(items), text, most)
	}
	return len(items) * count, err
}

// itemsOfEach returns the items of a fanout; none if a skipped dependency should provide them.
func (sc *Scope) itemsOfEach(n *PlanNode) ([]json.RawMessage, error) {
	from := n.Dag.Items
	if sc.isSkippedRef(from) {
		return nil, nil
	}
	v, _ := sc.dagRef(n, from)
	v = sc.openValue(v)
	items, ok := expr.Elements(v)
	if !ok {
		return nil, Errorf(Invalid, "the items of %s, from %s, must be an array, are %s", n.Key, from.Text, describeValue(v))
	}
	return items, nil
}

// countOfEach returns the number of units, or the number per item, with the number's text as
// written. A number above the limit of a step is capped, but stays above the limit.
func (sc *Scope) countOfEach(n *PlanNode) (count int, text string, err error) {
	from := n.Dag.Count
	switch {
	case from == nil:
		return n.Dag.Repeats, strconv.Itoa(n.Dag.Repeats), nil
	case sc.isSkippedRef(from):
		return 0, "0", nil
	}
	v, _ := sc.dagRef(n, from)
	v = sc.openValue(v)
	f, ok := expr.Number(v)
	if !ok || f != math.Trunc(f) || f < 0 {
		return 0, "", Errorf(Invalid, "each.count %s must be a whole number, is %s", from.Text, describeValue(v))
	}
	return int(min(f, math.MaxInt32)), string(expr.Compact(v)), nil
}

// isSkippedRef reports whether a reference names the output of a skipped node.
func (sc *Scope) isSkippedRef(r *PlanRef) bool {
	return r.From == FromDep && sc.Nodes[r.Dep].Status() == StepSkipped
}
