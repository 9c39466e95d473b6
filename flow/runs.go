package flow

import (
	"cmp"
	"encoding/json"
	"strings"
)

// RunKind says what a NodeRun tells about.
type RunKind string

// Kinds of node runs.
const (
	RunAttempt RunKind = "attempt" // an attempt of a unit
	RunSummary RunKind = "summary" // the end of a step that decides, waits or gathers units
	RunCancel  RunKind = "cancel"  // the task was canceled here
)

// NodeRun is a row of a task's history as people read it.
type NodeRun struct {
	Address
	Since     Address // the unit of the visit that an attempt's continues, which its key names; zero = its own
	Kind      RunKind
	Node      *PlanNode // nil for a task canceled between two nodes
	Branch    string    // the unit's name
	Status    AttemptStatus
	Queue     bool   // its job travels by the queue
	Note      string // what its worker calls its state
	Input     json.RawMessage
	Output    json.RawMessage
	Error     string
	Details   json.RawMessage // of the error, as its carrier has told them
	Metrics   json.RawMessage // that its program has told, a list
	Reason    string          // of a failure or skip, in dag mode
	Action    string
	Worker    string
	URL       string
	Log       bool
	StartedAt int64
	ClaimedAt int64 // by a poller, the last time
	BegunAt   int64 // since when somebody was at it, where that is told: of programs, of what was begun outside or is told by files, and of what was lost before or returned twice; in a whole History alone
	EndedAt   int64 // 0 while it runs
	Lost      int   // how often its carrier was lost
	RetryAt   int64 // when its unit is tried again; 0 = it is not
}

// History folds a journal into node runs, in the order of the trace: an attempt has its place where
// it began, a summary where its step ended.
type History struct {
	State *State
	Runs  []NodeRun
	live  map[Address]int // attempts without an end
	page  *RunPage        // nil = all of them are wanted
}

// NewHistory begins with a task before its first event.
func NewHistory(task string, plan *Plan) *History {
	return &History{State: NewState(task, plan), live: map[Address]int{}}
}

// addRun adds a run if it is wanted.
func (h *History) addRun(r NodeRun) {
	if h.page.admitRun(r.Address) {
		h.Runs = append(h.Runs, r)
		h.page.noteComplete(&r)
	}
}

// Apply adds an event.
func (h *History) Apply(e *Event) {
	switch e.Type {
	case StepEnded:
		h.stepEnded(e)
		Evolve(h.State, e)
	case TaskEnded:
		h.taskEnded(e)
		Evolve(h.State, e)
	case ScopeRetried:
		h.cancelIn(e.Scope, e.At)
		Evolve(h.State, e)
	case AttemptsStarted:
		Evolve(h.State, e)
		h.addStarted(e)
	default:
		Evolve(h.State, e)
		h.noteAttempt(e)
	}
}

func (h *History) addStarted(e *Event) {
	st := h.State.activeStep(e.Address())
	for i := e.Unit; st != nil && i < e.Unit+e.Total; i++ {
		a := e.Address()
		a.Unit = i
		if !h.page.admitRun(a) {
			continue
		}
		h.live[a] = len(h.Runs)
		h.Runs = append(h.Runs, NodeRun{Address: a, Since: st.originUnit(i), Kind: RunAttempt, Node: st.Node, Branch: st.UnitName(i),
			Status: AttemptRunning, Queue: st.unitExec(i).Type == ExecQueue, Input: st.unitInput(i), StartedAt: e.At})
	}
}

func (h *History) noteAttempt(e *Event) {
	i, ok := h.live[e.Address()]
	if !ok {
		return
	}
	r := &h.Runs[i]
	switch e.Type {
	case AttemptClaimed:
		r.Worker, r.ClaimedAt = e.Worker, e.At
	case AttemptBegun:
		h.noteBegun(r, e)
	case AttemptNoted:
		r.Note = e.Note
	case AttemptDeferred:
		r.Metrics, r.Worker, r.URL = e.Metrics, e.Worker, e.URL
		h.noteBegun(r, e)
	case AttemptReturned:
		r.Worker, r.Note, r.ClaimedAt, r.BegunAt, r.Lost = "", "", 0, 0, e.Total
	case AttemptEnded:
		r.Status, r.Output, r.Error, r.EndedAt = AttemptStatus(e.Status), e.Output, e.Error, e.At
		r.Worker, r.URL, r.Log, r.RetryAt, r.Details = e.Worker, e.URL, e.Log, e.Due, e.Details
		if len(e.Metrics) > 0 {
			r.Metrics = e.Metrics
		}
		delete(h.live, e.Address())
		h.page.noteComplete(r)
	}
}

// noteBegun notes since when somebody is at an attempt.
func (h *History) noteBegun(r *NodeRun, e *Event) {
	if st := h.State.activeStep(e.Address()); st != nil && st.unitExec(e.Unit).Begins(e) {
		r.BegunAt = cmp.Or(r.BegunAt, e.Until, e.At)
	}
}

// stepEnded closes what was in flight below the step and adds its summary.
func (h *History) stepEnded(e *Event) {
	st := h.State.activeStep(e.stepAddress())
	if st == nil {
		h.addDecided(e)
		return
	}
	if st.Flying > 0 || st.Child != nil {
		h.cancelBelow(st, e.At)
	}
	if st.Node.Single && st.Done > 0 {
		h.closeExecutor(st, e)
		return
	}
	if st.Child != nil && (e.Error == "" || st.Child.Failed != "") {
		return // the children's rows tell everything
	}
	if a := e.stepAddress(); h.page.canContain(Address{a.Scope, a.Node, a.Visit, 0, 1}) {
		h.addRun(st.summaryRun(e))
	}
}

// closeExecutor notes the action on the last attempt's run.
func (h *History) closeExecutor(st *Step, e *Event) {
	for i := len(h.Runs) - 1; i >= 0; i-- {
		if r := &h.Runs[i]; r.Scope == e.Scope && r.Address.Node == e.Node && r.Visit == e.Visit {
			if r.Attempt == int(st.Units[0].Attempt) { // a page may end before the last one
				r.Action = e.Action
			}
			return
		}
	}
}

// addDecided adds the row of a node of dag mode that ended without having begun.
func (h *History) addDecided(e *Event) {
	sc := h.State.Scope(e.Scope)
	if sc == nil || sc.Plan.Mode() != ModeDag || sc.Plan.Nodes[e.Node] == nil {
		return
	}
	r := NodeRun{Address: e.stepAddress(), Kind: RunSummary, Node: sc.Plan.Nodes[e.Node], Status: AttemptOK, Input: null, Output: orNull(e.Output),
		Error: e.Error, Reason: e.Reason, Action: e.Action, StartedAt: e.At, EndedAt: e.At}
	r.Attempt = 1
	switch StepStatus(e.Status) {
	case StepFailed:
		r.Status = AttemptError
	case StepSkipped:
		r.Status = AttemptSkipped
	}
	h.addRun(r)
}

func (st *Step) summaryRun(e *Event) NodeRun {
	a := st.Address()
	a.Attempt = 1
	r := NodeRun{Address: a, Kind: RunSummary, Node: st.Node, Status: AttemptOK, Input: orNull(st.stepInput()), Reason: e.Reason,
		Error: e.Error, Action: e.Action, StartedAt: st.EnteredAt, EndedAt: e.At}
	if e.Error != "" {
		r.Status = AttemptError
	}
	switch st.Node.Kind {
	case KindParallel, KindForeach, KindFanout:
		r.Output = st.unitOutputs()
		if st.Failures > 0 && st.Node.Strategy != Continue {
			r.Error = st.errorsJSON()
		}
	case KindWaitEvent, KindApproval:
		r.Output = orNull(e.Output)
	case KindSubflow:
		r.Input, r.Output = null, null
	default:
		r.Output = null
	}
	return r
}

// cancelBelow ends the runs of attempts that are given up together with a step.
func (h *History) cancelBelow(st *Step, at int64) {
	if st.Child != nil {
		h.cancelIn(st.Child.Path, at)
	}
	h.cancelRuns(at, func(a Address) bool { return a.Scope == st.scope.Path && a.Node == st.Node.Key && a.Visit == st.Visit })
}

// cancelIn ends the runs of attempts that are given up in a scope and those below it.
func (h *History) cancelIn(scope string, at int64) {
	h.cancelRuns(at, func(a Address) bool { return a.Scope == scope || strings.HasPrefix(a.Scope, scope+"/") })
}

func (h *History) cancelRuns(at int64, which func(Address) bool) {
	for a, i := range h.live {
		if which(a) {
			h.Runs[i].Status, h.Runs[i].EndedAt = AttemptCanceled, at
			delete(h.live, a)
			h.page.noteCanceled()
		}
	}
}

func (h *History) taskEnded(e *Event) {
	lasts := h.State.CancelAt != 0 // see State.acceptsLateReport: who finishes a direct unit is heard
	for a, i := range h.live {
		r := &h.Runs[i]
		r.Status, r.EndedAt = AttemptCanceled, e.At
		h.page.noteCanceled()
		if !lasts || r.Node.Exec.Type != ExecDirect {
			delete(h.live, a)
		}
	}
	if h.State.Root == nil || e.Status != string(TaskCanceled) {
		return
	}
	root := h.State.Root
	h.addRun(NodeRun{Address: Address{Node: root.Cursor, Visit: root.Visits[root.Cursor]}, Kind: RunCancel,
		Node: root.Plan.Nodes[root.Cursor], Status: AttemptCanceled, Input: null, Output: null, Action: "canceled", StartedAt: e.At, EndedAt: e.At})
}
