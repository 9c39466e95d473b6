package flow

import (
	"cmp"
	"container/heap"
)

// holdStep holds a node back from beginning, or releases it. It does nothing if the node is in the
// wanted state.
func (d taskDecider) holdStep(a Address, hold bool) error {
	sc := d.s.scopes[a.Scope]
	switch {
	case sc == nil || sc.Plan.Nodes[a.Node] == nil:
		return errNoStep(a.Node)
	case sc.Plan.Dag == nil:
		return Errorf(Conflict, "step %.80q is one of graph mode: pause the task", a.Node)
	case d.s.Status.Ended() || d.s.CancelAt != 0 || d.s.Closing != nil:
		return Errorf(Conflict, "the task is %s: none of its steps can be paused or resumed", d.s.Status)
	}
	n := sc.nodeState(sc.Plan.Nodes[a.Node])
	switch {
	case n.Status() != "":
		return Errorf(Conflict, "step %.80q is %s: only one that has yet to begin can be paused or resumed", a.Node, n.Status())
	case n.Held && hold:
		return nil
	case !n.Held && !hold:
		return Errorf(Conflict, "step %.80q is %s, not paused", a.Node, cmp.Or(n.Status(), StepCreated))
	}
	e := sc.nodeEvent(StepReleased, sc.Plan.Nodes[a.Node])
	if hold {
		e.Type = StepHeld
	}
	d.emitEvent(e)
	if !hold {
		d.queueScope(sc)
	}
	return nil
}

// holdNode removes a node from the ready nodes, or adds it again.
func (sc *Scope) holdNode(key string, hold bool) {
	node := sc.Plan.Nodes[key]
	if node == nil || sc.nodeState(node).Status() != "" {
		return
	}
	n := sc.nodeState(node)
	n.Held = hold
	switch {
	case n.Doomed:
	case hold:
		sc.removeReady(node.Dag.Index)
	case n.Waits == 0:
		sc.removeReady(node.Dag.Index)
		heap.Push(&sc.dag.ready, int32(node.Dag.Index))
	}
}
