package flow

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// NodeState is what a scope of dag mode knows about one of its nodes.
type NodeState struct {
	Status    StepStatus // "" = created
	Waits     int        // dependencies that have yet to end
	Doomed    bool       // a dependency ended in a way that keeps this node from running
	Visit     int
	Reason    string   // why it failed or was skipped
	Mode      SkipMode // of a skip
	Error     string
	Output    json.RawMessage
	Total     int // units, once it has ended
	Initial   int // those it began with
	Left      int // those that had not completed when it ended
	Failures  int // those that had failed
	StartedAt int64
	EndedAt   int64
	Step      *Step // while it is active
	Kept      *Kept // what it has left to its next visit; its condition was met then

	Extra []json.RawMessage // items that were appended, while no step holds them: a retry adds them again
}

// Ended says whether the node is over.
func (n *NodeState) Ended() bool {
	return n.Status == StepCompleted || n.Status == StepFailed || n.Status == StepSkipped
}

// dagState is what follows from a scope's nodes; see link.
type dagState struct {
	ready  readyHeap
	active []*Step // in no order
	left   int     // nodes that have yet to end
}

// readyHeap holds the indexes of nodes that can be decided about, the first in the definition first.
type readyHeap []int

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h readyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *readyHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (sc *Scope) activate(st *Step) {
	st.position = len(sc.dag.active)
	sc.dag.active = append(sc.dag.active, st)
}

func (sc *Scope) deactivate(st *Step) {
	last := len(sc.dag.active) - 1
	moved := sc.dag.active[last]
	sc.dag.active[st.position] = moved
	moved.position = st.position
	sc.dag.active[last] = nil
	sc.dag.active = sc.dag.active[:last]
}

// node is the state of a node of dag mode.
func (sc *Scope) node(n *PlanNode) *NodeState { return &sc.Nodes[n.Dag.Index] }

// runOf is what `run` means to a node: what a prep of the branch around it returned, or the scope's.
func (sc *Scope) runOf(n *PlanNode) json.RawMessage {
	if n.Dag.Run >= 0 {
		return orNull(sc.Nodes[n.Dag.Run].Output)
	}
	return orNull(sc.run)
}

// leaves are the outputs of those nodes that completed, by name; null when there are none.
func (sc *Scope) leaves(seen []Seen) json.RawMessage {
	b := []byte{'{'}
	b = sc.appendSeen(b, seen, false)
	if len(b) == 1 {
		return null
	}
	return append(b, '}')
}

// appendSeen adds the outputs of nodes as fields; those that were skipped or failed are left out, or null.
func (sc *Scope) appendSeen(b []byte, seen []Seen, nulls bool) []byte {
	for _, s := range seen {
		n := &sc.Nodes[s.Index]
		if n.Status != StepCompleted && !nulls {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(expr.AppendQuote(b, s.Name), ':')
		b = append(b, orNull(n.Output)...)
	}
	return b
}
