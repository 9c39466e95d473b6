package flow

import (
	"cmp"
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// append adds units to a fanout that has begun.
func (d *decider) append(c Append) error {
	sc := d.s.scopes[c.Scope]
	if sc == nil || sc.Plan.Nodes[c.Node] == nil {
		return errNoStep(c.Node)
	}
	n := sc.Plan.Nodes[c.Node]
	if sc.Plan.Mode() == ModeGraph {
		return Errorf(Conflict, "step %.80q is a %s in a flow of graph mode, which takes no further items: "+
			"start another task for them, or write the flow in dag mode with a fanout", c.Node, n.Kind)
	}
	state := sc.node(n)
	switch {
	case d.s.Status.Ended() || d.s.CancelAt != 0 || d.s.Closing != nil:
		return Errorf(Conflict, "the task is %s: nothing can be appended", d.s.Status)
	case n.Kind != KindFanout:
		return Errorf(Conflict, "step %.80q is no fanout: only those take further items", c.Node)
	case state.Step == nil:
		return Errorf(Conflict, "step %.80q is %s: items can be appended while it is started", c.Node, cmp.Or(string(state.Status), string(StepCreated)))
	case c.Route != "" && c.Route != n.Exec.Route():
		return Errorf(Conflict, "the route of step %.80q is %s, not %.80s", c.Node, n.Exec.Route(), c.Route)
	case len(c.Items) == 0:
		return Errorf(Invalid, "items is missing: say what to append")
	case len(state.Step.Units)+len(c.Items) > d.limits.Units:
		return Errorf(Limit, "%d units, more than the %d a step may have", len(state.Step.Units)+len(c.Items), d.limits.Units)
	}
	for i, item := range c.Items { // one by one: "1,2" is no item, but would make two in a list
		if !expr.Valid(orNull(item)) {
			return Errorf(Invalid, "items[%d] is not valid JSON", i)
		}
	}
	if err := d.limits.checkValue("the list of items", listOf(c.Items)); err != nil {
		return err
	}
	d.grow(state.Step, c.Items)
	d.refill(state.Step)
	return nil
}

// grow adds units to a step.
func (d *decider) grow(st *Step, items []json.RawMessage) {
	e := st.event(UnitsAppended)
	e.Unit, e.Total, e.Input = len(st.Units), len(items), listOf(items)
	d.emit(e)
}

// listOf puts values together.
func listOf(values []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, orNull(v)...)
	}
	return append(b, ']')
}
