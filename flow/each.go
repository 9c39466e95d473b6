package flow

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// unitsOfEach says how many units a fanout has, which are no more than a step may have.
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
	if err == nil && count > most/len(items) { // a product might be more than an int holds
		err = Errorf(Limit, "limit: %d items × %s units each are more than the %d units a step may have", len(items), text, most)
	}
	return len(items) * count, err
}

// itemsOfEach are what the units of a fanout work on. A dependency that was skipped has none.
func (sc *Scope) itemsOfEach(n *PlanNode) ([]json.RawMessage, error) {
	from := n.Dag.Items
	if sc.skipped(from) {
		return nil, nil
	}
	v, _ := sc.dagRef(n, from)
	items, ok := expr.Elements(v)
	if !ok {
		return nil, Errorf(Invalid, "the items of %s, from %s, must be an array, are %s", n.Key, from.Text, describe(v))
	}
	return items, nil
}

// countOfEach is how many units there are, or how many for each item, and the same as it was written. What is more
// than any step may have is cut.
func (sc *Scope) countOfEach(n *PlanNode) (count int, text string, err error) {
	from := n.Dag.Count
	switch {
	case from == nil:
		return n.Dag.Repeats, strconv.Itoa(n.Dag.Repeats), nil
	case sc.skipped(from):
		return 0, "0", nil
	}
	v, _ := sc.dagRef(n, from)
	f, ok := expr.Number(v)
	if !ok || f != math.Trunc(f) || f < 0 {
		return 0, "", Errorf(Invalid, "each.count %s must be a whole number, is %s", from.Text, describe(v))
	}
	return int(min(f, math.MaxInt32)), string(expr.Compact(v)), nil
}

// skipped says whether a reference is to the output of a node that was skipped.
func (sc *Scope) skipped(r *PlanRef) bool {
	return r.From == FromDep && sc.Nodes[r.Dep].Status == StepSkipped
}
