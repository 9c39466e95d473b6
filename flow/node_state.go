package flow

import (
	"encoding/json"
	"slices"
)

// NodeState is the state of a node in a scope of dag mode. It is small, because a dag may have
// 10,000 nodes and a member many such tasks. Fields that few nodes need are in Aside.
type NodeState struct {
	Output    json.RawMessage
	StartedAt int64
	EndedAt   int64
	Step      *Step     // set while the node is active
	Aside     *NodeRare // nil if empty; see Rare

	Visit  int32
	Waits  int32 // number of dependencies that have not ended
	Doomed bool  // a dependency ended in a way that prevents this node from running
	Held   bool  // a user holds the node, so it does not begin
	status nodeStatus
	single bool // the node had one unit, which completed
}

// nodeStatus is an index in nodeStatuses.
type nodeStatus uint8

var nodeStatuses = []StepStatus{"", StepStarted, StepCompleted, StepFailed, StepSkipped}

// statusIndex returns the index of a status, and false for a status that no node has.
func (s StepStatus) statusIndex() (place nodeStatus, ok bool) {
	i := slices.Index(nodeStatuses, s)
	return nodeStatus(max(i, 0)), i >= 0
}

// NodeRare holds the fields that few nodes need.
type NodeRare struct {
	Reason  string   // reason of a failure or skip
	Mode    SkipMode // mode of a skip
	Error   string
	Details json.RawMessage   // details of the error, from the last attempt
	Extra   []json.RawMessage // appended items while no step holds them; a retry appends them again
	// Kept holds results for the next visit. The condition of the node held when the results were
	// made.
	Kept *Kept
	// Units counts the units. It is not set if the node had one unit, which completed; see
	// NodeState.Units.
	Units NodeUnits
}

// NodeUnits counts the units of an ended node.
type NodeUnits struct {
	Total    int32
	Initial  int32 // units at the start
	Left     int32 // units that had not completed
	Failures int32 // units that had failed
}

var singleUnit = NodeUnits{Total: 1, Initial: 1}

// Status returns the status of the node; "" means created.
func (n *NodeState) Status() StepStatus { return nodeStatuses[n.status] }

// Rare returns the fields that few nodes need; they are zero for most nodes.
func (n *NodeState) Rare() NodeRare {
	if n.Aside == nil {
		return NodeRare{}
	}
	return *n.Aside
}

func (n *NodeState) setRare(r NodeRare) {
	n.Aside = nil
	if r.Reason != "" || r.Mode != "" || r.Error != "" || r.Details != nil || r.Extra != nil || r.Kept != nil || r.Units != (NodeUnits{}) {
		aside := r // a copy, so that only stored values are allocated on the heap
		n.Aside = &aside
	}
}

// Units returns the counts of the node's units; zero while the node has not ended.
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

// unitCounts returns the counts of an ended node's units.
func (n *NodeState) unitCounts() UnitCount {
	u := n.Units()
	return UnitCount{Total: int(u.Total), Initial: int(u.Initial), Done: int(u.Total - u.Left + u.Failures), Failed: int(u.Failures)}
}

// Ended reports whether the node has ended.
func (n *NodeState) Ended() bool { return n.status.isEnded() }

func (s nodeStatus) isEnded() bool {
	status := nodeStatuses[s]
	return status == StepCompleted || status == StepFailed || status == StepSkipped
}
