package flow

// Internals for tests.
var (
	PathOfChild = childScope
	DecodeRow   = decodeRow
	FieldOf     = fieldOf
	TextField   = textField
	OrNull      = orNull
)

// Following lists the exported fields of a state that derive from its plan and its other fields.
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
