package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Fork is the part of another task's history that a new task takes over. The new task runs the same
// flow in another version, or from an earlier step on.
type Fork struct {
	Task   string          // the other task
	Began  json.RawMessage // params with which the other task began
	Events []Event         // shared events, without the first one
	// Shared holds, by key, values that replace shared values of the other task. It is empty for a
	// dag.
	Shared map[string]json.RawMessage
}

// ForkPlan lists the steps that a fork keeps from a history, and those that it repeats.
type ForkPlan struct {
	Fork
	Params json.RawMessage // final params of the other task
	Keeps  []ForkStep      // ended steps with results that the fork keeps
	Again  []ForkStep      // steps that are repeated, including those that have not ended
}

// Start returns the command that starts the new task. Without params, the new task uses those of
// the other task. Shared values that are not given stay as they are.
func (p *ForkPlan) Start(version string, params json.RawMessage, shared map[string]json.RawMessage) Start {
	if len(params) == 0 {
		params = p.Params
	}
	p.Shared = shared
	return Start{Version: version, Params: params, Fork: &p.Fork}
}

// changeableKinds are the kinds of steps of a function with recorded results that a fork may
// change.
var changeableKinds = []CodeKind{CodeDo, CodeSignal, CodeApproval, CodeCall}

// ChangeResults replaces recorded results of a function, by the places of their steps. A failed
// step with a replaced result counts as completed.
func (p *ForkPlan) ChangeResults(results map[string]json.RawMessage, l Limits) error {
	left := maps.Clone(results)
	for i := range p.Events {
		e := &p.Events[i]
		place := (&CodeStep{Name: e.Node, Use: e.Visit}).Place()
		result, there := left[place]
		if e.Type != StepRecorded || e.Scope != "" || !there || CodeKind(e.Action) == CodeRetry {
			continue
		}
		if !slices.Contains(changeableKinds, CodeKind(e.Action)) {
			return Errorf(Invalid, "the result of step %.80q, of the kind %s, cannot be changed", place, e.Action)
		}
		if err := CheckJSON(result); err != nil {
			return Errorf(Invalid, "the result of step %.80q: %v", place, err)
		}
		if err := l.checkValue("the result of step "+place, result); err != nil {
			return err
		}
		e.Output, e.Error, e.Details = result, "", nil
		delete(left, place)
	}
	if len(left) == 0 {
		return nil
	}
	return Errorf(Invalid, "the fork keeps no recorded step %.80q of a function: name one that it keeps, as the history does",
		slices.Min(slices.Collect(maps.Keys(left))))
}

// ForkStep is a step of a forked history.
type ForkStep struct {
	Address
	Why    ForkReason // reason to repeat the step; "" if it is kept
	Output Glimpse    // recorded output of a kept step; only set for the first steps
}

// ForkReason is the reason why a step is repeated.
type ForkReason string

// Values of ForkReason.
const (
	ForkChanged ForkReason = "changed" // the node does other work, or no longer exists
	// ForkDownstream means that an earlier step or a dependency is repeated, or leads elsewhere.
	ForkDownstream  ForkReason = "downstream"
	ForkRequested   ForkReason = "requested"   // the request names it as the start
	ForkCompensated ForkReason = "compensated" // the step was compensated
	ForkFailed      ForkReason = "failed"      // the step failed, and no step followed
	ForkUnfinished  ForkReason = "unfinished"  // the step was active when the task ended
)

// ForkPoint is the place in a history where a fork continues. The default is the end of the
// history.
type ForkPoint struct {
	Node string // node of the root that is repeated with everything after it; "" if none
	// Part is set if the history is a prefix of whole rows. Later rows are ignored, and the other
	// task may still run.
	Part bool
}

// MaxFork is the maximum size of the history that a fork takes over, in stored bytes.
const MaxFork = 16 << 20

// PlanFork decides which steps a task of a plan may share with another task. A step is kept if its
// node does the same work in both plans, and if the steps that led to it are kept. In a graph these
// are all earlier steps, in a dag the dependencies. Retries, timeouts, edges and compensations may
// differ, because they only matter for later steps.
//
// If at names a node, a graph repeats the last visit of that node. Compensated steps are repeated.
// A graph keeps the signals that came before the first repeated step of the root. A dag keeps all
// signals except those that ended a repeated step.
func PlanFork(task string, history []Event, old, plan *Plan, at ForkPoint) (ForkPlan, error) {
	f := &forker{before: NewState(task, old), s: NewState(task, plan), from: at.Node, part: at.Part,
		scopes: map[string]*PlanScope{"": old.Root}, closedGraphs: map[string]bool{},
		partlyShared: map[string]bool{}, endedWhole: map[Address]bool{},
		lastSignals: map[Address]*Event{}, endedBySignal: map[*Event][]Address{},
		undone: map[Address]bool{}, undoneNodes: map[Address]bool{}, redone: map[Address]bool{},
		sharedSignals: map[int]*Event{}}
	for i := range history {
		f.surveyEvent(&history[i])
	}
	if err := f.checkFork(); err != nil {
		return ForkPlan{}, err
	}
	f.plan.Task, f.plan.Began, f.plan.Params = task, history[0].Params, f.before.Params
	for i := range history {
		if history[i].Type == TaskClosing {
			break
		}
		f.considerEvent(&history[i])
	}
	f.redoUnended(f.s.Root)
	f.plan.Events = f.dropRedoneAnswers(f.plan.Events[1:])
	return f.plan, nil
}

// forker walks through a history.
type forker struct {
	before       *State // state after the whole history
	s            *State // state after the shared events
	from         string
	part         bool
	visits       int                   // number of visits of the node where the fork continues
	recorded     bool                  // a function has recorded the step from which the fork continues
	scopes       map[string]*PlanScope // scopes of the old plan, by path
	closedGraphs map[string]bool       // graphs that share no further events
	partlyShared map[string]bool       // scopes that are not shared completely
	endedWhole   map[Address]bool      // subflows that ended because they had no work left
	undone       map[Address]bool      // compensated steps,
	undoneNodes  map[Address]bool      // and their nodes
	// lastSignals is the last signal for each waiting step, for the pocketflow profile.
	lastSignals   map[Address]*Event
	endedBySignal map[*Event][]Address // steps that a signal has ended
	signals       []*Event             // signals and answers, by number
	sharedSignals map[int]*Event       // shared signals, by index in plan.Events
	redone        map[Address]bool     // steps in plan.Again
	plan          ForkPlan
}

// surveyEvent collects data that the second pass needs in advance.
func (f *forker) surveyEvent(e *Event) {
	f.surveyEnd(e)
	Evolve(f.before, e)
	if e.Type == SignalReceived {
		if f.before.Signaled > len(f.signals) {
			f.signals = append(f.signals, e)
		}
		for _, st := range f.before.waiting {
			if st.scope.Plan.Pocketflow && st.awaitsKey(e.Key) {
				f.lastSignals[st.Address()] = e
			}
		}
	}
	if e.Type == StepRecorded && e.Scope == "" && (&CodeStep{Name: e.Node, Use: e.Visit}).Place() == f.from {
		f.recorded = true
	}
	if e.Type != StepEntered {
		return
	}
	if e.Scope == "" && e.Node == f.from {
		f.visits = max(f.visits, e.Visit)
	}
	if c := f.before.Closing; c != nil && c.Scope.Path == e.Scope && len(c.Undone) > 0 {
		u := &f.before.Undoables[c.Undone[len(c.Undone)-1].Step]
		f.undone[Address{Scope: u.Scope, Node: u.Node, Visit: u.Visit}] = true
		f.undoneNodes[Address{Scope: u.Scope, Node: u.Node}] = true
	}
}

// surveyEnd records why a step ends.
func (f *forker) surveyEnd(e *Event) {
	at := e.stepAddress()
	st := f.before.activeStep(at)
	if e.Type != StepEnded || st == nil {
		return
	}
	if st.Child != nil {
		f.endedWhole[at] = st.Child.isOver()
	}
	signal := f.lastSignals[at]
	if st.Signal != nil {
		signal = f.signals[st.Signal.Number-1]
	}
	if signal != nil && (signal.Node != "" || e.Status == string(StepCompleted)) {
		f.endedBySignal[signal] = append(f.endedBySignal[signal], at)
	}
}

func (f *forker) checkFork() error {
	switch s := f.before; {
	case s.Root == nil:
		return Errorf(NotFound, "task %s has no history", s.Task)
	case !s.Status.Ended() && !f.part:
		return Errorf(Conflict, "the task is %s: cancel it first, or wait until it ends", s.Status)
	case s.Status == TaskCompleted && f.from == "" && !f.part:
		return Errorf(Conflict, "the task is completed: there is nothing to retry; say from which node it is to go on")
	case f.from != "" && !f.s.Plan.Root.Code && f.s.Plan.Root.Nodes[f.from] == nil:
		return Errorf(Invalid, "the flow has no node %s to go on from", f.from)
	case f.from != "" && !f.wasThere():
		return Errorf(Invalid, "the task was never at node %s, so it cannot go on from there", f.from)
	case s.Root.Plan.Mode() != f.s.Plan.Root.Mode():
		return Errorf(Conflict, "one version is a %s and the other one a %s: start a new task", s.Root.Plan.Mode(), f.s.Plan.Root.Mode())
	}
	return nil
}

// wasThere reports whether the task visited the node where the fork continues.
func (f *forker) wasThere() bool {
	n := f.before.Plan.Root.Nodes[f.from]
	return f.visits > 0 || f.recorded || n != nil && n.Dag != nil && f.before.Root.nodeState(n).Status() != ""
}

// considerEvent shares an event or drops it.
func (f *forker) considerEvent(event *Event) {
	switch e := *event; e.Type {
	case TaskPaused, TaskResumed, StepHeld, StepReleased, CancelRequested, TaskEnded, PermitGranted:
	case SignalReceived:
		if f.s.scopes[e.Scope] != nil && !f.closedGraphs[e.Scope] && !f.answersAgain(event) {
			f.sharedSignals[len(f.plan.Events)] = event
			f.shareEvent(e)
		}
	case TaskCreated, TaskRetried:
		if f.s.scopes[e.Scope] != nil && !f.closedGraphs[e.Scope] || e.Type == TaskCreated {
			f.shareEvent(e)
		}
	case ScopeRetried:
		if f.s.scopes[e.Scope] != nil {
			f.shareEvent(e)
		}
	case StepEntered:
		f.shareEntered(e)
	case StepEnded:
		f.shareEnded(e)
	case StepRecorded:
		f.shareRecorded(e)
	case WaitStarted:
		f.shareWait(e)
	case AttemptHeld: // the fork calls the function again
	case UnitsAppended, AttemptsDispatched:
		if f.s.activeStep(e.Address()) != nil {
			f.shareEvent(e)
		}
	default:
		if _, u := f.s.findAttempt(e.Address()); u != nil && !f.closedGraphs[e.Scope] {
			f.shareEvent(e)
		}
	}
}

// answersAgain reports whether a signal ended a step that is repeated. That step waits for a new
// signal.
func (f *forker) answersAgain(signal *Event) bool {
	return slices.ContainsFunc(f.endedBySignal[signal], func(a Address) bool { return f.redone[a] })
}

// dropRedoneAnswers removes shared signals that ended a repeated step. They were shared before the
// repetition of the step was known.
func (f *forker) dropRedoneAnswers(events []Event) []Event {
	var kept []Event
	for i := range events {
		if signal := f.sharedSignals[i+1]; signal == nil || !f.answersAgain(signal) {
			kept = append(kept, events[i])
		}
	}
	return kept
}

// shareEvent adds an event to the fork. It removes data that belongs to the other task alone:
// request ids, permits and logs.
func (f *forker) shareEvent(e Event) {
	e.Request, e.Permits, e.Log = "", nil, false
	f.plan.Events = append(f.plan.Events, e)
	Evolve(f.s, &e)
}

// shareEntered shares the start of a step if it is unchanged.
func (f *forker) shareEntered(e Event) {
	sc := f.s.scopes[e.Scope]
	if sc == nil || f.closedGraphs[e.Scope] {
		f.redoFrom(&e, ForkDownstream)
		return
	}
	if why := f.redoReason(sc, &e); why != "" {
		f.redoFrom(&e, why)
		return
	}
	f.shareEvent(e)
	if n := f.scopes[e.Scope].Nodes[e.Node]; n.Sub != nil {
		f.scopes[childScope(e.Scope, e.Node, e.Visit)] = n.Sub
	}
}

// redoReason returns why a step that begins, or ends without having begun, must be repeated; "" if
// it is kept.
func (f *forker) redoReason(sc *Scope, e *Event) ForkReason {
	old, now := f.scopes[e.Scope].Nodes[e.Node], sc.Plan.Nodes[e.Node]
	switch {
	case f.undone[e.stepAddress()] || f.isInsideUndone(e):
		return ForkCompensated
	case e.Scope == "" && f.from == e.Node && (sc.Plan.Dag != nil || e.Visit == f.visits):
		return ForkRequested
	case !f.leadsTo(sc, now, e) || e.Kept > 0 && now != nil && sc.reusableResults(now, e) != e.Kept:
		return ForkDownstream
	case old == nil || now == nil || !sameWork(f.scopes[e.Scope], old, sc.Plan, now):
		return ForkChanged
	}
	return ""
}

// isInsideUndone reports whether a step belongs to a branch that was undone as a whole. The nodes
// of such a branch are in the scope of its parent.
func (f *forker) isInsideUndone(e *Event) bool {
	for i, char := range e.Node {
		if char == '/' && f.undoneNodes[Address{Scope: e.Scope, Node: e.Node[:i]}] {
			return true
		}
	}
	return false
}

// leadsTo reports whether the shared events lead to a node.
func (f *forker) leadsTo(sc *Scope, n *PlanNode, e *Event) bool {
	if n == nil {
		return sc.Plan.Dag != nil // the node no longer exists
	}
	if sc.Plan.Dag == nil {
		return sc.Cursor == e.Node
	}
	return !slices.ContainsFunc(n.Dag.Deps, func(i int) bool { return !sc.Nodes[i].Ended() })
}

// redoFrom records a repeated step. In a graph all later steps are repeated, too. The surrounding
// steps count as not ended.
func (f *forker) redoFrom(e *Event, why ForkReason) {
	f.noteRedone(e.stepAddress(), why)
	if sc := f.s.scopes[e.Scope]; sc != nil && sc.Plan.Dag == nil {
		f.closedGraphs[e.Scope] = true
	}
	for path := e.Scope; !f.partlyShared[path]; {
		f.partlyShared[path] = true
		parent, _ := ParentOf(path)
		path = parent.Scope
	}
}

func (f *forker) noteRedone(at Address, why ForkReason) {
	f.redone[at] = true
	f.plan.Again = append(f.plan.Again, ForkStep{Address: at, Why: why})
}

// shareEnded shares the end of a step.
func (f *forker) shareEnded(e Event) {
	sc, st := f.s.scopes[e.Scope], f.s.activeStep(e.stepAddress())
	switch {
	case sc == nil || f.closedGraphs[e.Scope]:
		return
	case st == nil && sc.Plan.Dag == nil:
		return
	// A node of a dag may end without having begun. A node that had begun is recorded already.
	case st == nil:
		if f.redone[e.stepAddress()] {
			return
		}
		if why := f.redoReason(sc, &e); why != "" {
			f.redoFrom(&e, why)
			return
		}
	case st.Child != nil && (f.partlyShared[st.Child.Path] || f.endedWhole[st.Address()] && !st.Child.isOver()):
		f.redoFrom(&e, ForkDownstream)
		return
	}
	if sc.Plan.Dag == nil {
		f.redirectEdge(sc, st, &e)
	}
	var output Glimpse
	if st != nil && e.Status == string(StepCompleted) && len(f.plan.Keeps) < maxForkOutputs {
		output = st.scope.Plan.glimpseOf(st.stepResult(&e))
	}
	f.shareEvent(e)
	if e.Status == string(StepFailed) && e.Next == "" {
		f.noteRedone(e.stepAddress(), ForkFailed)
		return
	}
	f.plan.Keeps = append(f.plan.Keeps, ForkStep{Address: e.stepAddress(), Output: output})
}

// maxForkOutputs is the maximum number of steps that a plan shows with their outputs.
const maxForkOutputs = 1000

// isOver reports whether a scope has no work left.
func (sc *Scope) isOver() bool {
	if sc.Plan.Dag != nil {
		return sc.dag.left == 0
	}
	return sc.Step == nil && sc.Cursor == ""
}

// redirectEdge makes the end of a graph's step lead where the new plan leads. A failure that ended
// the scope is retried instead. A function has no edges: after a restart its next step is itself.
func (f *forker) redirectEdge(sc *Scope, st *Step, e *Event) {
	failed := e.Status == string(StepFailed)
	if e.Attempt > 0 || failed && e.Next == "" || sc.Plan.Code {
		return
	}
	how := stepOutcome{action: e.Action}
	if failed {
		how.failed = cmp.Or(e.Error, "failed")
	}
	e.Next, e.Reason = followEdge(sc, st.Node, how)
}

// redoUnended records the shared steps that have not ended.
func (f *forker) redoUnended(sc *Scope) {
	for _, st := range sc.Active() {
		if !f.redone[st.Address()] {
			f.noteRedone(st.Address(), ForkUnfinished)
		}
		if st.Child != nil {
			f.redoUnended(st.Child)
		}
	}
}

// goOnFrom applies the history of another task to the new task. The work of that history is done,
// so there are no effects.
func (d taskDecider) goOnFrom(f *Fork) {
	d.s.waits.log = nil // these approvals belong to the other task
	for i := range f.Events {
		d.events = append(d.events, f.Events[i])
		Evolve(d.s, &f.Events[i])
	}
	d.approvals.changes = d.s.Approvals()
	d.s.waits.log = &d.approvals
}

// signalShared sends the shared values of the fork as signals. It runs after the repeated steps
// were reset, so a step that is reset cannot consume a signal that the new visit waits for.
func (d taskDecider) signalShared(f *Fork) {
	for _, key := range slices.Sorted(maps.Keys(f.Shared)) {
		d.emitEvent(Event{Type: SignalReceived, Key: key, Output: orNull(f.Shared[key]), By: byFork})
	}
}

// byFork is the sender of the signals of signalShared.
const byFork = "fork"

// Fit rejects shared values of a fork that are invalid or too large.
func (f *Fork) Fit(p *Plan, l Limits) error {
	size := 0
	for key, v := range f.Shared {
		if p.Root.Mode() == ModeDag {
			return Errorf(Invalid, "a dag has no shared values: give other params, or go on from an earlier node")
		}
		if err := checkSharedKey(key); err != nil {
			return err
		}
		if err := CheckJSON(v); err != nil {
			return Errorf(Invalid, "%s: %v", key, err)
		}
		if err := l.checkValue("the value of "+key, v); err != nil {
			return err
		}
		size += len(key) + len(v)
	}
	if size > l.Shared {
		return l.sharedFull(size)
	}
	return nil
}

// shareWait shares a wait of a function. The wait continues in the fork, unless the fork repeats
// that wait.
func (f *forker) shareWait(e Event) {
	switch {
	case f.s.scopes[e.Scope] == nil || f.closedGraphs[e.Scope]:
	case e.Scope == "" && f.from != "" && (&CodeStep{Name: e.Node, Use: e.Visit}).Place() == f.from:
		f.redoFrom(&e, ForkRequested)
	default:
		f.shareEvent(e)
	}
}

// shareRecorded shares a recorded step of a function. From the step where the fork continues, no
// results are shared, so the function does not end either.
func (f *forker) shareRecorded(e Event) {
	sc := f.s.scopes[e.Scope]
	at := e.stepAddress()
	switch {
	case sc == nil || !sc.Plan.Code:
		return
	case f.closedGraphs[e.Scope]:
		f.noteRedone(at, ForkDownstream)
		return
	case e.Scope == "" && f.from != "" && (&CodeStep{Name: e.Node, Use: e.Visit}).Place() == f.from:
		f.redoFrom(&e, ForkRequested)
		return
	}
	f.shareEvent(e)
	f.plan.Keeps = append(f.plan.Keeps, ForkStep{Address: at})
}
