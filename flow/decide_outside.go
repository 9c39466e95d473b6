package flow

import (
	"cmp"
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// reportDirect ends a unit that an outside caller finishes. The report names step and unit; a visit
// or attempt of 0 means the current one. A unit that is over stays as it is.
func (d attemptDecider) reportDirect(c Report) error {
	sc := d.s.scopes[c.Scope]
	if sc == nil || sc.Plan.Nodes[c.Node] == nil {
		return errNoStep(c.Node)
	}
	n := sc.Plan.Nodes[c.Node]
	if n.Exec.Type != ExecDirect {
		return wrongRoute(n)
	}
	st := sc.mode.activeStep(sc, n.Key)
	switch {
	case st == nil || d.s.Status.Ended() && !d.s.acceptsLateReport(n):
		return d.directOver(sc, n, c)
	case c.Unit < 0 || c.Unit >= len(st.Units):
		return errNoUnit(c, len(st.Units))
	case c.Visit != 0 && c.Visit != st.Visit:
		return nil
	}
	u := &st.Units[c.Unit]
	c.Visit = st.Visit
	// The unit may still wait for a place in the window or for its start time. Neither matters to
	// the outside caller.
	if u.Attempt == 0 && c.Attempt <= 1 {
		d.startAttempts(st, c.Unit, 1, 1)
	}
	if c.Attempt == 0 {
		c.Attempt = int(u.Attempt)
	}
	if _, u = d.s.findAttempt(c.Address); u == nil || u.Live.Outside != nil {
		return nil
	}
	return d.settleResult(st, u, c)
}

// acceptsLateReport reports whether a task accepts the result of a direct unit after its end. This
// is the case if it was canceled gently. Such a task does not wait for direct units, because no
// worker carries them out. It still records their results, unless they would need compensation,
// which cannot run any more.
func (s *State) acceptsLateReport(n *PlanNode) bool {
	return s.Status == TaskCanceled && s.CancelAt != 0 && s.Closing == nil && n.Undo == ""
}

// reportHeld ends the attempt of a unit that a poller holds now. The report only names step and
// unit. A unit that no poller holds stays as it is.
func (d attemptDecider) reportHeld(c Report) error {
	sc := d.s.scopes[c.Scope]
	if sc == nil || sc.Plan.Nodes[c.Node] == nil {
		return errNoStep(c.Node)
	}
	n := sc.Plan.Nodes[c.Node]
	st := sc.mode.activeStep(sc, n.Key)
	switch {
	case n.Exec.Type == ExecDirect:
		return wrongRoute(n)
	case n.Exec.Type != ExecQueue:
		return Errorf(Conflict, "step %.80q has no jobs in the queue: they cannot be completed from outside", c.Node)
	case st == nil || d.s.Status.Ended():
		return nil
	case c.Unit < 0 || c.Unit >= len(st.Units):
		return errNoUnit(c, len(st.Units))
	}
	u := &st.Units[c.Unit]
	if u.Live == nil || u.Live.Worker == "" {
		return nil
	}
	c.Visit, c.Attempt = st.Visit, int(u.Attempt)
	return d.settleResult(st, u, c)
}

// directOver returns the answer to a report for a unit of a step that is not active.
func (d attemptDecider) directOver(sc *Scope, n *PlanNode, c Report) error {
	status := StepCreated
	if state := sc.mode.nodeState(sc, n); state != nil {
		if state.Status() == StepCompleted {
			if total := int(state.Units().Total); c.Unit < 0 || c.Unit >= total {
				return errNoUnit(c, total)
			}
			return nil
		}
		status = StepStatus(cmp.Or(string(state.Status()), string(StepCreated)))
	}
	if d.s.Status.Ended() {
		return Errorf(Conflict, "the task is %s: it no longer waits for step %.80q", d.s.Status, c.Node)
	}
	return Errorf(Conflict, "step %.80q is %s: its units can be finished while it is started", c.Node, status)
}

func errNoStep(key string) error { return Errorf(NotFound, "the task has no step %.80q", key) }

func errNoUnit(c Report, total int) error {
	return Errorf(NotFound, "step %.80q has no unit %d: it has %d, counted from 0", c.Node, c.Unit, total)
}

// wrongRoute returns the error of a report that uses the interface of another route.
func wrongRoute(n *PlanNode) error {
	if n.Exec.Type == ExecDirect {
		return Errorf(Conflict, "step %.80q has the route direct: its units are finished directly, not as jobs", n.Key)
	}
	return Errorf(Conflict, "step %.80q has the route %s, not direct: only the carriers of its jobs can end them", n.Key, n.Exec.Route())
}

// appendItems adds units to a fanout that has begun.
func (d signalDecider) appendItems(c Append) error {
	sc := d.s.scopes[c.Scope]
	if sc == nil || sc.Plan.Nodes[c.Node] == nil {
		return errNoStep(c.Node)
	}
	n := sc.Plan.Nodes[c.Node]
	if sc.Plan.Dag == nil {
		return Errorf(Conflict, "step %.80q is a %s in a flow of %s mode, which takes no further items: "+
			"start another task for them, or write the flow in dag mode with a fanout", c.Node, n.Kind, sc.Plan.Mode())
	}
	state := sc.nodeState(n)
	switch {
	case d.s.Status.Ended() || d.s.CancelAt != 0 || d.s.Closing != nil:
		return Errorf(Conflict, "the task is %s: nothing can be appended", d.s.Status)
	case n.Kind != KindFanout:
		return Errorf(Conflict, "step %.80q is no fanout: only those take further items", c.Node)
	case state.Step == nil:
		return Errorf(Conflict, "step %.80q is %s: items can be appended while it is started",
			c.Node, cmp.Or(string(state.Status()), string(StepCreated)))
	case c.Route != "" && c.Route != n.Exec.Route():
		return Errorf(Conflict, "the route of step %.80q is %s, not %.80s", c.Node, n.Exec.Route(), c.Route)
	case len(c.Items) == 0:
		return Errorf(Invalid, "items is missing: say what to append")
	case len(state.Step.Units)+len(c.Items) > d.limits.Units:
		return Errorf(Limit, "%d units, more than the %d a step may have", len(state.Step.Units)+len(c.Items), d.limits.Units)
	}
	// each item alone: "1,2" is no item, but would become two in a list
	for i, item := range c.Items {
		if !expr.Valid(orNull(item)) {
			return Errorf(Invalid, "items[%d] is not valid JSON", i)
		}
	}
	if err := d.limits.checkValue("the list of items", listOf(c.Items)); err != nil {
		return err
	}
	d.appendUnits(state.Step, c.Items)
	d.queueStep(state.Step)
	return nil
}

// appendUnits adds units to a step.
func (d signalDecider) appendUnits(st *Step, items []json.RawMessage) {
	e := st.newEvent(UnitsAppended)
	e.Unit, e.Total, e.Input = len(st.Units), len(items), listOf(items)
	d.emitEvent(e)
}

// listOf returns the values as a JSON array.
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
