package flow

// What tests see of the package beside what everybody does.
var (
	PathOfChild = childScope
	DecodeRow   = decodeRow
	FieldOf     = fieldOf
	TextField   = textField
	OrNull      = orNull
)

// Following are the exported fields of a state that follow from its plan and the rest of it.
var Following = map[string]bool{"State.Plan": true, "Scope.Plan": true, "Scope.Params": true, "Step.Node": true}

const (
	MaxEffort      = maxEffort
	EventsFormat   = Format
	SnapshotFormat = snapshotFormat
)

func (s *State) Canceling() bool                   { return s.isCanceling() }
func (sc *Scope) Node(n *PlanNode) *NodeState      { return sc.nodeState(n) }
func (sc *Scope) Passes(dep int, n *PlanNode) bool { return sc.allowsDependent(dep, n) }
func (sc *Scope) NodesLeft() int                   { return sc.dag.left }
func (st *Step) ExecOf(unit int) *Exec             { return st.unitExec(unit) }
func (r Retry) Wait(task string, a Address) int64  { return r.backoffMS(task, a) }
