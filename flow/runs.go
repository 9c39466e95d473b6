package flow

import (
	"cmp"
	"encoding/json"
	"strings"
)

// RunKind is the kind of a NodeRun.
type RunKind string

// Kinds of node runs.
const (
	RunAttempt RunKind = "attempt" // an attempt of a unit
	// RunSummary is the end of a step that decides, waits or collects the results of units.
	RunSummary RunKind = "summary"
	RunCancel  RunKind = "cancel" // the task was canceled here
)

// NodeRun is a row of a task's history in the form for users.
type NodeRun struct {
	Address
	// Since is the unit of the earlier visit that this visit continues; the key contains it. It is
	// nil if the visit continues none.
	Since     *Address
	Kind      RunKind
	Node      *PlanNode // nil for a task canceled between two nodes
	Branch    string    // name of the unit
	Status    AttemptStatus
	Queue     bool   // the job is a queue job
	Note      string // the worker's description of the attempt's state
	Input     json.RawMessage
	Output    json.RawMessage
	Error     string
	Details   json.RawMessage // details of the error, from the carrier
	Metrics   json.RawMessage // list of measurements from the program
	Reason    string          // reason of a failure or skip, in dag mode
	Action    string
	Worker    string
	URL       string
	Log       bool
	StartedAt int64
	ClaimedAt int64 // time of the last claim by a poller
	// BegunAt is the time since when the attempt was carried out. It is recorded for programs,
	// external jobs, jobs that report through files, and attempts that were lost before or returned
	// twice. It is only set in a whole History.
	BegunAt int64
	EndedAt int64 // 0 while it is running
	Lost    int   // number of lost carriers
	RetryAt int64 // time of the unit's retry; 0 if there is none
}

// History converts a journal into node runs. An attempt is placed at its start, a summary at the
// end of its step.
type History struct {
	State *State
	Runs  []NodeRun
	live  map[Address]int // index in Runs of each attempt that has not ended
	page  *RunPage        // nil if all runs are needed
}

// NewHistory returns a History of a task before its first event.
func NewHistory(task string, plan *Plan) *History {
	return &History{State: NewState(task, plan), live: map[Address]int{}}
}

// addRun adds a run if the page needs it.
func (h *History) addRun(r NodeRun) {
	if h.page.admitRun(r.Address) {
		h.Runs = append(h.Runs, r)
		h.page.noteComplete(&r)
	}
}

// Apply applies an event.
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
	case AttemptsDispatched:
		Evolve(h.State, e)
		h.addStarted(e)
	case StepRecorded:
		Evolve(h.State, e)
		h.stepRecorded(e)
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
	case AttemptStarted:
		h.noteBegun(r, e)
	case AttemptStatusChanged:
		r.Note = e.Note
	case AttemptDeferred:
		r.Metrics, r.Worker, r.URL = e.Metrics, e.Worker, e.URL
		h.noteBegun(r, e)
	case AttemptRequeued:
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

// noteBegun records the time since when an attempt is carried out.
func (h *History) noteBegun(r *NodeRun, e *Event) {
	if st := h.State.activeStep(e.Address()); st != nil && st.unitExec(e.Unit).Begins(e) {
		r.BegunAt = cmp.Or(r.BegunAt, e.Until, e.At)
	}
}

// stepEnded ends the runs in flight below the step and adds its summary.
func (h *History) stepEnded(e *Event) {
	st := h.State.activeStep(e.stepAddress())
	if st == nil {
		h.addDecided(e)
		return
	}
	if st.Flying > 0 || st.Child != nil {
		h.cancelBelow(st, e.At)
	}
	if st.scope.Plan.Code {
		h.cancelRuns(e.At, func(a Address) bool { return a.Scope == e.Scope && a.Node != e.Node }) // calls of its branches
	}
	if st.Node.Single && st.Done > 0 {
		h.closeExecutor(st, e)
		return
	}
	if st.Child != nil && (e.Error == "" || st.Child.Failed != "") {
		return // the rows of the children contain everything
	}
	if a := e.stepAddress(); h.page.canContain(Address{a.Scope, a.Node, a.Visit, 0, 1}) {
		h.addRun(st.summaryRun(e))
	}
}

// stepRecorded adds the row of a recorded step of a function. A call has a row for each attempt. A
// race ends the calls of the branches that lost.
func (h *History) stepRecorded(e *Event) {
	switch CodeKind(e.Action) {
	case CodeRetry:
		return
	case CodeCall:
		h.cancelRuns(e.At, func(a Address) bool { return a.Scope == e.Scope && a.Node == e.Node })
		return
	case CodeRace:
		below := (&CodeStep{Name: e.Node, Use: e.Visit}).Place() + "/"
		h.cancelRuns(e.At, func(a Address) bool { return a.Scope == e.Scope && strings.HasPrefix(a.Node, below) })
	}
	if r := recordedRun(e); h.page.canContain(r.Address) {
		h.addRun(r)
	}
}

// closeExecutor sets the action on the run of the last attempt.
func (h *History) closeExecutor(st *Step, e *Event) {
	for i := len(h.Runs) - 1; i >= 0; i-- {
		if r := &h.Runs[i]; r.Scope == e.Scope && r.Address.Node == e.Node && r.Visit == e.Visit {
			if r.Attempt == int(st.Units[0].Attempt) { // a page may end before the last attempt
				r.Action = e.Action
			}
			return
		}
	}
}

// addDecided adds the row of a node in dag mode that ended without having begun.
func (h *History) addDecided(e *Event) {
	sc := h.State.Scope(e.Scope)
	if sc == nil || sc.Plan.Mode() != ModeDag || sc.Plan.Nodes[e.Node] == nil {
		return
	}
	r := NodeRun{Address: e.stepAddress(), Kind: RunSummary, Node: sc.Plan.Nodes[e.Node],
		Status: AttemptOK, Input: null, Output: orNull(e.Output),
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

// cancelBelow ends the runs of attempts that are canceled together with a step.
func (h *History) cancelBelow(st *Step, at int64) {
	if st.Child != nil {
		h.cancelIn(st.Child.Path, at)
	}
	h.cancelRuns(at, func(a Address) bool { return a.Scope == st.scope.Path && a.Node == st.Node.Key && a.Visit == st.Visit })
}

// cancelIn ends the runs of attempts that are canceled in a scope and below it.
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
	// see State.acceptsLateReport: the result of a direct unit is still accepted
	lasts := h.State.CancelAt != 0
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
		Node: root.Plan.Nodes[root.Cursor], Status: AttemptCanceled, Input: null, Output: null,
		Action: "canceled", StartedAt: e.At, EndedAt: e.At})
}
