package flow

import (
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// dagMode counts, for each node, the dependencies that have not ended. Its decisions are in
// decide_dag.go, its events in evolve_dag.go, and the inputs of its nodes in input_dag.go.
type dagMode struct{}

// beginNext decides about the first ready node.
func (dagMode) beginNext(d *decider, sc *Scope) {
	if sc.EnterAt <= d.env.Now {
		d.dagPart().nextNode(sc)
	}
}

func (dagMode) finishStep(d *decider, st *Step, how stepOutcome) { d.dagPart().finishDag(st, how) }

func (dagMode) canRedoUndone() bool { return true }

func (dagMode) stepParams(sc *Scope, n *PlanNode) json.RawMessage {
	return expr.Merge(sc.Params, n.Params)
}

// bindInputs sets `run` to the input of the scope. If the input is an object, the params are the
// same object.
func (dagMode) bindInputs(sc *Scope, _, run json.RawMessage) {
	sc.Params, sc.run = objectOr(sc.openValue(run)), run
}

// activeSteps returns the steps of the scope that have begun and not ended.
func (dagMode) activeSteps(sc *Scope) []*Step {
	list := slices.Clone(sc.dag.active)
	slices.SortFunc(list, func(a, b *Step) int { return a.Node.Dag.Index - b.Node.Dag.Index })
	return list
}

// isBusy checks the steps in any order, so they need not be sorted.
func (dagMode) isBusy(sc *Scope, retries bool) bool {
	return slices.ContainsFunc(sc.dag.active, func(st *Step) bool { return st.isBusy(retries) })
}

func (dagMode) activeStep(sc *Scope, node string) *Step {
	n := sc.Plan.Nodes[node]
	if n == nil {
		return nil
	}
	return sc.nodeState(n).Step
}

func (dagMode) nodeState(sc *Scope, n *PlanNode) *NodeState { return sc.nodeState(n) }

func (dagMode) visitCount(sc *Scope, n *PlanNode) int { return int(sc.nodeState(n).Visit) }

func (dagMode) keptResults(sc *Scope, n *PlanNode) *Kept { return sc.nodeState(n).keptResults() }

func (dagMode) setKept(sc *Scope, n *PlanNode, k *Kept) { sc.nodeState(n).setKept(k) }

// scopeOutput returns the output of the output node, else the outputs of the completed leaves.
func (dagMode) scopeOutput(sc *Scope) json.RawMessage {
	if d := sc.Plan.Dag; d.Output >= 0 {
		return orNull(sc.Nodes[d.Output].Output)
	}
	return sc.completedOutputs(sc.Plan.Dag.Leaves)
}

func (dagMode) outputSize(sc *Scope, levels int) valueSize {
	if sc.Plan.Dag.Output >= 0 {
		return valueSize{bytes: len(sc.Output())}
	}
	return sc.madeOf(sc.Plan.Dag.Leaves, levels)
}

// stepInput rebuilds the input from outputs that no longer change. For a fanout with items,
// st.Input holds the items instead.
func (dagMode) stepInput(st *Step) json.RawMessage {
	switch {
	case len(st.Input) > 0 && st.Node.Dag.Items == nil:
		return st.Input
	case st.common != nil && st.common.input != nil:
		return st.common.input
	}
	v, err := st.scope.dagInput(st.Node)
	if err != nil {
		return null
	}
	return v
}

// unitInput returns the item of a fanout, or the step's input with the item merged in.
func (dagMode) unitInput(st *Step, unit int) json.RawMessage {
	if st.Node.Kind != KindFanout {
		return orNull(st.stepInput())
	}
	item := st.fanoutItem(unit)
	switch {
	case item == nil:
		return orNull(st.stepInput())
	case st.Node.Dag.Shape == ShapeMerged:
		return expr.SetField(st.stepInput(), "item", item)
	}
	return item
}

func (dagMode) childInputs(st *Step) (params, run json.RawMessage) {
	run = st.scope.branchRun(st.Node)
	return objectOr(st.scope.openValue(run)), run
}
