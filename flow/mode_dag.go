package flow

import (
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// dagMode has a counter for each node, of those before it that have yet to end. What it decides is in decide_dag.go,
// what its events mean in evolve_dag.go, what its nodes work on in input_dag.go.
type dagMode struct{}

// next decides about the first node that can be decided about.
func (dagMode) next(d *decider, sc *Scope) {
	if sc.EnterAt <= d.env.Now {
		d.nextNode(sc)
	}
}

func (dagMode) finish(d *decider, st *Step, how ending) { d.finishDag(st, how) }

func (dagMode) redoes() bool { return true }

func (dagMode) params(sc *Scope, n *PlanNode) json.RawMessage { return expr.Merge(sc.Params, n.Params) }

// given has `run` mean what the scope is given; its params are that, too, if it is an object.
func (dagMode) given(sc *Scope, _, run json.RawMessage) {
	sc.Params, sc.run = objectOr(sc.open(run)), run
}

// active are the scope's steps that have begun and not ended.
func (dagMode) active(sc *Scope) []*Step {
	list := slices.Clone(sc.dag.active)
	slices.SortFunc(list, func(a, b *Step) int { return a.Node.Dag.Index - b.Node.Dag.Index })
	return list
}

// busy asks the steps in no order, which costs nothing.
func (dagMode) busy(sc *Scope, retries bool) bool {
	return slices.ContainsFunc(sc.dag.active, func(st *Step) bool { return st.busy(retries) })
}

func (dagMode) step(sc *Scope, node string) *Step {
	n := sc.Plan.Nodes[node]
	if n == nil {
		return nil
	}
	return sc.node(n).Step
}

func (dagMode) node(sc *Scope, n *PlanNode) *NodeState { return sc.node(n) }

func (dagMode) visits(sc *Scope, n *PlanNode) int { return int(sc.node(n).Visit) }

func (dagMode) kept(sc *Scope, n *PlanNode) *Kept { return sc.node(n).kept() }

func (dagMode) keep(sc *Scope, n *PlanNode, k *Kept) { sc.node(n).setKept(k) }

// output is that of the output node, else that of the leaves that completed.
func (dagMode) output(sc *Scope) json.RawMessage {
	if d := sc.Plan.Dag; d.Output >= 0 {
		return orNull(sc.Nodes[d.Output].Output)
	}
	return sc.leaves(sc.Plan.Dag.Leaves)
}

func (dagMode) made(sc *Scope, levels int) made {
	if sc.Plan.Dag.Output >= 0 {
		return made{bytes: len(sc.Output())}
	}
	return sc.madeOf(sc.Plan.Dag.Leaves, levels)
}

// input is made again whenever somebody asks, of outputs that do not change any more. What the state keeps of a
// fanout with items are those.
func (dagMode) input(st *Step) json.RawMessage {
	switch {
	case len(st.Input) > 0 && st.Node.Dag.Items == nil:
		return st.Input
	case st.whole != nil:
		return st.whole
	}
	v, err := st.scope.dagInput(st.Node)
	if err != nil {
		return null
	}
	return v
}

// unitInput is the bare item of a fanout, or the step's input with the item in it.
func (dagMode) unitInput(st *Step, unit int) json.RawMessage {
	if st.Node.Kind != KindFanout {
		return orNull(st.stepInput())
	}
	item := st.item(unit)
	switch {
	case item == nil:
		return orNull(st.stepInput())
	case st.Node.Dag.Shape == ShapeMerged:
		return expr.Merge(st.stepInput(), fieldOf("item", item))
	}
	return item
}

func (dagMode) inside(st *Step) (params, run json.RawMessage) {
	run = st.scope.branchRun(st.Node)
	return objectOr(st.scope.open(run)), run
}
