package flow

import (
	"encoding/json"
	"slices"
)

// NodeState is what a scope of dag mode knows about one of its nodes. It is small, because a dag
// may have 10,000 of them and a member many tasks of it at once: what few nodes have is aside.
type NodeState struct {
	Output    json.RawMessage
	StartedAt int64
	EndedAt   int64
	Step      *Step     // while it is active
	Aside     *NodeRare // nil = nothing; see Rare

	Visit  int32
	Waits  int32 // dependencies that have yet to end
	Doomed bool  // a dependency ended in a way that keeps this node from running
	Held   bool  // somebody does not want it to begin
	status nodeStatus
	single bool // it had one unit, which completed
}

// nodeStatus is the place of a status among those that a node may have.
type nodeStatus uint8

var nodeStatuses = []StepStatus{"", StepStarted, StepCompleted, StepFailed, StepSkipped}

// statusIndex is the place of a status; ok is false for one that no node has.
func (s StepStatus) statusIndex() (place nodeStatus, ok bool) {
	i := slices.Index(nodeStatuses, s)
	return nodeStatus(max(i, 0)), i >= 0
}

// NodeRare is what few nodes have.
type NodeRare struct {
	Reason  string   // why it failed or was skipped
	Mode    SkipMode // of a skip
	Error   string
	Details json.RawMessage   // of the error, as the last attempt has told them
	Extra   []json.RawMessage // items that were appended, while no step holds them: a retry adds them again
	Kept    *Kept             // what it has left to its next visit; its condition was met then
	Units   NodeUnits         // but for those of a node that had one, which completed; see NodeState.Units
}

// NodeUnits are the pieces of a node, once it has ended.
type NodeUnits struct {
	Total    int32
	Initial  int32 // those it began with
	Left     int32 // those that had not completed
	Failures int32 // those that had failed
}

var singleUnit = NodeUnits{Total: 1, Initial: 1}

// Status of the node; "" = created.
func (n *NodeState) Status() StepStatus { return nodeStatuses[n.status] }

// Rare is what few nodes have, and others have nothing of.
func (n *NodeState) Rare() NodeRare {
	if n.Aside == nil {
		return NodeRare{}
	}
	return *n.Aside
}

func (n *NodeState) setRare(r NodeRare) {
	n.Aside = nil
	if r.Reason != "" || r.Mode != "" || r.Error != "" || r.Details != nil || r.Extra != nil || r.Kept != nil || r.Units != (NodeUnits{}) {
		aside := r // so that only what is kept is on the heap
		n.Aside = &aside
	}
}

// Units are the node's pieces; none while it has not ended.
func (n *NodeState) Units() NodeUnits {
	if n.single {
		return singleUnit
	}
	return n.Rare().Units
}

func (n *NodeState) setUnits(u NodeUnits) {
	rare := n.Rare()
	if n.single = u == singleUnit; n.single {
		u = NodeUnits{}
	}
	rare.Units = u
	n.setRare(rare)
}

func (n *NodeState) keptResults() *Kept { return n.Rare().Kept }

func (n *NodeState) setKept(k *Kept) {
	rare := n.Rare()
	rare.Kept = k
	n.setRare(rare)
}

// unitCounts counts the pieces of a node that is over.
func (n *NodeState) unitCounts() UnitCount {
	u := n.Units()
	return UnitCount{Total: int(u.Total), Initial: int(u.Initial), Done: int(u.Total - u.Left + u.Failures), Failed: int(u.Failures)}
}

// Ended reports whether the node is over.
func (n *NodeState) Ended() bool { return n.status.isEnded() }

func (s nodeStatus) isEnded() bool {
	status := nodeStatuses[s]
	return status == StepCompleted || status == StepFailed || status == StepSkipped
}
