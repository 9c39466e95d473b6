package flow

import "encoding/json"

// What tests see of the package beside what everybody does.
var (
	PathOfChild = childScope
	DecodeRow   = decodeRow
	FieldOf     = fieldOf
	TextField   = textField
	OrNull      = orNull
)

const (
	MaxEffort      = maxEffort
	EventsFormat   = eventsFormat
	SnapshotFormat = snapshotFormat
)

func (s *State) Canceling() bool                   { return s.canceling() }
func (sc *Scope) Node(n *PlanNode) *NodeState      { return sc.node(n) }
func (sc *Scope) Passes(dep int, n *PlanNode) bool { return sc.passes(dep, n) }
func (sc *Scope) NodesLeft() int                   { return sc.dag.left }
func (st *Step) ExecOf(unit int) *Exec             { return st.exec(unit) }
func (r Retry) Wait(task string, a Address) int64  { return r.wait(task, a) }

// Derived is what a step keeps that follows from the rest of it.
func (st *Step) Derived() (items []json.RawMessage, whole json.RawMessage, names []string, execs []Exec) {
	return st.items, st.whole, st.names, st.execs
}
