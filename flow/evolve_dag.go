package flow

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"slices"
)

// dagState holds data that derives from the nodes of a scope; see linkScope.
type dagState struct {
	ready  readyHeap
	active []*Step // unordered
	left   int     // number of nodes that have not ended
}

// readyHeap holds the indexes of ready nodes. The first of them in the definition is at the top.
type readyHeap []int32

func (h readyHeap) Len() int { return len(h) }

func (h readyHeap) Less(i, j int) bool { return h[i] < h[j] }

func (h readyHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *readyHeap) Push(x any) { *h = append(*h, x.(int32)) }

func (h *readyHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// beginScope creates the state of every node with its count of dependencies.
func (dagMode) beginScope(sc *Scope) {
	list := sc.Plan.Dag.List
	sc.Nodes = make([]NodeState, len(list))
	for i, n := range list {
		sc.Nodes[i].Waits = int32(len(n.Dag.Deps))
	}
	sc.linkDag()
}

// linkScope rebuilds the derived data of a scope from its nodes, and links their steps and
// everything below them.
func (dagMode) linkScope(s *State, sc *Scope) error {
	if len(sc.Nodes) != len(sc.Plan.Dag.List) {
		return fmt.Errorf("flow: a snapshot of task %s has %d nodes in scope %q, its flow has %d",
			s.Task, len(sc.Nodes), sc.Path, len(sc.Plan.Dag.List))
	}
	sc.linkDag()
	for i := range sc.Nodes {
		if st := sc.Nodes[i].Step; st != nil {
			if err := s.linkPart().linkStep(sc, st); err != nil {
				return err
			}
		}
	}
	return nil
}

func (dagMode) activateStep(sc *Scope, st *Step) {
	n := sc.nodeState(st.Node)
	sc.removeReady(st.Node.Dag.Index)
	if n.Step != nil { // only for an event that does not fit the state
		sc.removeActive(n.Step)
	}
	n.status, _ = StepStarted.statusIndex()
	n.Visit, n.StartedAt, n.Step, n.Aside, n.single = int32(st.Visit), st.EnteredAt, st, nil, false
	sc.EnterAt = 0
	sc.addActive(st)
}

// removeReady removes a node from the ready nodes. Nearly always the node is the first of them.
func (sc *Scope) removeReady(index int) {
	if i := slices.Index(sc.dag.ready, int32(index)); i >= 0 {
		heap.Remove(&sc.dag.ready, i)
	}
}

// applyStepEnded ends a node. The node may end without having begun.
func (dagMode) applyStepEnded(s *State, sc *Scope, e *Event) {
	node := sc.Plan.Nodes[e.Node]
	if node == nil {
		return
	}
	n := sc.nodeState(node)
	status, _ := StepStatus(e.Status).statusIndex()
	if n.Ended() || n.Step != nil && n.Step.Visit != e.Visit || !status.isEnded() {
		return
	}
	sc.removeReady(node.Dag.Index)
	st := n.Step
	n.status, n.Visit, n.EndedAt = status, int32(e.Visit), e.At
	rare := NodeRare{Reason: e.Reason, Error: e.Error, Details: st.errorDetails(), Extra: n.Rare().Extra}
	if n.Status() != StepCompleted { // a completed node that runs again starts from the beginning
		rare.Kept = n.keptResults()
	}
	if n.Status() == StepSkipped {
		rare.Mode = SkipMode(e.Action)
	}
	n.setRare(rare)
	switch n.Status() {
	case StepCompleted:
		n.Output = sc.outputOf(node, st, e)
	case StepFailed:
		if sc.Failed == "" {
			sc.failAt(st, e)
		}
	}
	if n.Status() == StepCompleted {
		input := func() json.RawMessage { return sc.inputOf(node, st) }
		s.undoPart().keepForUndo(sc, node, e.Visit, st, input, n.Output)
	}
	if st != nil {
		s.evolvePart().forgetStep(st, e.At)
		sc.mode.deactivateStep(sc, st, e.At)
		if n.Status() == StepFailed {
			n.setKept(s.evolvePart().keepResults(st, e.At))
		}
	}
	s.Steps++
	sc.dag.left--
	sc.releaseDependents(node)
}

// errorDetails returns the error details of a failed step with a single unit; nil for other steps.
func (st *Step) errorDetails() json.RawMessage {
	if st == nil || !st.Node.Single || len(st.Units) != 1 || st.Units[0].Error == nil {
		return nil
	}
	return st.Units[0].Error.Details
}

// failAt records that a node has failed its scope. If the failure comes from a node inside, the
// error text names that node by its path.
func (sc *Scope) failAt(st *Step, e *Event) {
	between := ": "
	if st != nil && st.Child != nil && st.Child.Failed != "" && st.Child.Failed == e.Error {
		between = "/"
	}
	sc.Failed, sc.FailedAt = e.Node+between+cmp.Or(e.Error, "failed"), e.Node
}

func (dagMode) deactivateStep(sc *Scope, st *Step, at int64) {
	sc.removeActive(st)
	n := sc.nodeState(st.Node)
	n.EndedAt, n.Step = at, nil
	rare := n.Rare()
	rare.Extra = st.Extra
	n.setRare(rare)
	n.setUnits(NodeUnits{Total: int32(len(st.Units)), Initial: int32(st.Initial), Left: int32(st.Left()), Failures: int32(st.Failures)})
}

// inputOf returns the input of a node. A join has none, because its branch has no input of its own.
func (sc *Scope) inputOf(n *PlanNode, st *Step) json.RawMessage {
	switch {
	case st != nil:
		return st.stepInput()
	case n.Kind == KindJoin:
		return null
	}
	v, err := sc.dagInput(n)
	if err != nil {
		return null
	}
	return v
}

// outputOf returns the output of a completed node.
func (sc *Scope) outputOf(n *PlanNode, st *Step, e *Event) json.RawMessage {
	switch {
	case st != nil:
		return sc.fillDefaults(n.Dag.Takes, st.stepResult(e))
	case n.Kind == KindFanout:
		return json.RawMessage("[]")
	case n.Kind == KindJoin:
		if sees := n.Dag.Sees; len(sees) == 1 && sees[0].Name == "" {
			return orNull(sc.Nodes[sees[0].Index].Output)
		}
		return sc.completedOutputs(n.Dag.Sees)
	}
	return e.Output
}

// releaseDependents updates the nodes that depend on an ended node: each can become ready or
// doomed.
func (sc *Scope) releaseDependents(n *PlanNode) {
	for _, i := range n.Dag.Dependents {
		d := &sc.Nodes[i]
		switch {
		case d.Status() != "":
		case sc.allowsDependent(n.Dag.Index, sc.Plan.Dag.List[i]):
			if d.Waits--; d.Waits == 0 && !d.Doomed && !d.Held {
				heap.Push(&sc.dag.ready, int32(i))
			}
		case !d.Doomed:
			d.Doomed = true
			heap.Push(&sc.dag.ready, int32(i))
		}
	}
}

// allowsDependent reports whether an ended node lets a dependent node run.
func (sc *Scope) allowsDependent(index int, dependent *PlanNode) bool {
	n := &sc.Nodes[index]
	return n.Status() == StepCompleted || dependent.Dag.Always && index != dependent.Dag.Entry ||
		n.Status() == StepSkipped && n.Rare().Mode == SkipOptional
}

// branchRun returns the value of `run` inside a branch that has a scope of its own.
func (sc *Scope) branchRun(n *PlanNode) json.RawMessage {
	for _, g := range n.Dag.Guards {
		if sc.Plan.Dag.List[g].Kind == KindPrep {
			return orNull(sc.Nodes[g].Output)
		}
	}
	return sc.runOf(n)
}

func (dagMode) reopenScope(sc *Scope, undone map[string]bool) {
	list := sc.Plan.Dag.List
	sc.resetNodes(func(i int) bool {
		n := &sc.Nodes[i]
		return !(n.Status() == StepCompleted && !undone[list[i].Key] || n.Status() == StepSkipped &&
			(n.Rare().Reason == ReasonUnmet || n.Rare().Reason == ReasonHandlerFailed))
	})
}

// resetNodes resets the selected nodes so that they run again, and recounts the dependencies that
// each node waits for.
func (sc *Scope) resetNodes(which func(index int) bool) {
	list := sc.Plan.Dag.List
	for i := range sc.Nodes {
		if which(i) {
			sc.resetNode(i)
		}
	}
	for i := range sc.Nodes {
		n := &sc.Nodes[i]
		if n.Status() != "" {
			continue
		}
		n.Waits, n.Doomed = 0, false
		for _, dep := range list[i].Dag.Deps {
			switch {
			case !sc.Nodes[dep].Ended():
				n.Waits++
			case !sc.allowsDependent(dep, list[i]):
				n.Doomed = true
			}
		}
	}
	sc.linkDag()
}

// resetNode resets a node so that it runs again, with its reusable results. Dependent nodes that
// ran anyway, or that used undone results, are reset without their results, because their input
// will change. Such nodes are outputs, nodes that always run, and all that depend on them.
func (sc *Scope) resetNode(index int) {
	n := &sc.Nodes[index]
	n.resetForRetry(n.keptResults())
	list := sc.Plan.Dag.List
	for todo := slices.Clone(list[index].Dag.Dependents); len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n := &sc.Nodes[i]; n.Status() != "" || n.keptResults() != nil {
			n.resetForRetry(nil)
			todo = append(todo, list[i].Dag.Dependents...)
		}
	}
}

// resetForRetry makes a node look as if it had not begun. Only the data for its next visit stays.
func (n *NodeState) resetForRetry(kept *Kept) {
	extra := n.Rare().Extra
	*n = NodeState{Visit: n.Visit}
	n.setRare(NodeRare{Extra: extra, Kept: kept})
}

// linkDag rebuilds the derived data of a dag from its nodes.
func (sc *Scope) linkDag() {
	*sc.dag = dagState{}
	for i := range sc.Nodes {
		n := &sc.Nodes[i]
		if !n.Ended() {
			sc.dag.left++
		}
		switch {
		case n.Step != nil:
			sc.addActive(n.Step)
		case n.Status() == "" && (n.Waits == 0 && !n.Held || n.Doomed):
			sc.dag.ready = append(sc.dag.ready, int32(i)) // indexes ascend, so the slice is a heap
		}
	}
}

func (sc *Scope) hasReadyNode() bool { return sc.dag != nil && len(sc.dag.ready) > 0 }

func (sc *Scope) addActive(st *Step) {
	st.position = len(sc.dag.active)
	sc.dag.active = append(sc.dag.active, st)
}

func (sc *Scope) removeActive(st *Step) {
	last := len(sc.dag.active) - 1
	moved := sc.dag.active[last]
	sc.dag.active[st.position] = moved
	moved.position = st.position
	sc.dag.active[last] = nil
	sc.dag.active = sc.dag.active[:last]
}

// nodeState returns the state of a node in dag mode.
func (sc *Scope) nodeState(n *PlanNode) *NodeState { return &sc.Nodes[n.Dag.Index] }
