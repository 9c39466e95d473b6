package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Fork is what a new task has of the history of another one, whose flow it runs in another version,
// or from an earlier step on.
type Fork struct {
	Task   string          // whose history it is
	Began  json.RawMessage // the params that one began with
	Events []Event         // that are shared, but for the first one
	// Shared are values that the new task has in place of those it would share, by their keys. A
	// dag has none.
	Shared map[string]json.RawMessage
}

// ForkPlan says what a fork keeps of a history, and what it does again.
type ForkPlan struct {
	Fork
	Params json.RawMessage // that the other task had in the end
	Keeps  []ForkStep      // steps that ended, whose results count
	Again  []ForkStep      // steps that are done again, those that have not ended among them
}

// Start is how the new task begins. Without params it has those of the other one, and so it has the
// values of shared that are not given.
func (p *ForkPlan) Start(version string, params json.RawMessage, shared map[string]json.RawMessage) Start {
	if len(params) == 0 {
		params = p.Params
	}
	p.Shared = shared
	return Start{Version: version, Params: params, Fork: &p.Fork}
}

// ForkStep is a step of the history.
type ForkStep struct {
	Address
	Why    ForkReason // it is done again; "" for one that is kept
	Output Glimpse    // that is recorded of one that is kept; of the first ones only
}

// ForkReason says why a step is done again.
type ForkReason string

// Reasons.
const (
	ForkChanged ForkReason = "changed" // the node does something else, or is no more
	ForkAfter   ForkReason = "after"   // what it followed or depends on is done again, or leads elsewhere
	ForkAsked   ForkReason = "asked"   // it was said that the task goes on from there
	ForkUndone  ForkReason = "undone"  // it was compensated
	ForkFailed  ForkReason = "failed"  // it failed, and nothing followed from that
	ForkUnended ForkReason = "unended" // it was under way when the task ended
)

// ForkPoint says where in a history a fork goes on: where the history ends, unless it says more.
type ForkPoint struct {
	Node string // of the root, which is done again with all that follows; "" = none
	Part bool   // the history is whole rows from the beginning of one, and what came behind it counts for nothing: the task itself may go on
}

// MaxFork bounds the history that a fork takes over, in bytes as it is stored.
const MaxFork = 16 << 20

// PlanFork finds what a task of a plan may share with another one. A step is kept when its node
// does the same in both plans, and so do all that it followed: in a graph all steps before it, in a
// dag those that it depends on. Retries, time limits, edges and compensations may differ: they
// count for what comes. Of the node at, in a graph, its last visit is done again. What was
// compensated is done again; signals count that came before the first step of the root that is done
// again, in a dag all but those by which a step has ended that is done again.
func PlanFork(task string, history []Event, old, plan *Plan, at ForkPoint) (ForkPlan, error) {
	f := &forker{before: NewState(task, old), s: NewState(task, plan), from: at.Node, part: at.Part, scopes: map[string]*PlanScope{"": old.Root}, closedGraphs: map[string]bool{}, partlyShared: map[string]bool{}, endedWhole: map[Address]bool{}, lastSignals: map[Address]*Event{}, endedBySignal: map[*Event][]Address{}, undone: map[Address]bool{}, undoneNodes: map[Address]bool{}, redone: map[Address]bool{}, sharedSignals: map[int]*Event{}}
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

// forker goes through a history.
type forker struct {
	before        *State // as the whole history made it
	s             *State // as what is shared makes it
	from          string
	part          bool
	visits        int                   // of the node from which the task goes on
	scopes        map[string]*PlanScope // as they were, by path
	closedGraphs  map[string]bool       // graphs of which nothing more is shared
	partlyShared  map[string]bool       // scopes of which not everything is
	endedWhole    map[Address]bool      // subflows that ended because nothing was left to do in them
	undone        map[Address]bool      // steps that were compensated,
	undoneNodes   map[Address]bool      // and their nodes
	lastSignals   map[Address]*Event    // with profile pocketflow: the signals that came last for steps that wait
	endedBySignal map[*Event][]Address  // steps that ended by a signal
	signals       []*Event              // signals and answers, by their number
	sharedSignals map[int]*Event        // signals that are shared, by their place in plan.Events
	redone        map[Address]bool      // those of plan.Again
	plan          ForkPlan
}

// surveyEvent learns what has to be known beforehand.
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

// surveyEnd learns why a step ends.
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
	case f.from != "" && f.s.Plan.Root.Nodes[f.from] == nil:
		return Errorf(Invalid, "the flow has no node %s to go on from", f.from)
	case f.from != "" && !f.wasThere():
		return Errorf(Invalid, "the task was never at node %s, so it cannot go on from there", f.from)
	case s.Root.Plan.Mode() != f.s.Plan.Root.Mode():
		return Errorf(Conflict, "one version is a %s and the other one a %s: start a new task", s.Root.Plan.Mode(), f.s.Plan.Root.Mode())
	}
	return nil
}

// wasThere reports whether the task was at the node that it is to go on from.
func (f *forker) wasThere() bool {
	n := f.before.Plan.Root.Nodes[f.from]
	return f.visits > 0 || n != nil && n.Dag != nil && f.before.Root.nodeState(n).Status() != ""
}

// considerEvent shares an event, or not.
func (f *forker) considerEvent(event *Event) {
	switch e := *event; e.Type {
	case TaskPaused, TaskResumed, StepHeld, StepReleased, CancelAsked, TaskEnded, PermitGranted:
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
	case UnitsAppended, AttemptsStarted:
		if f.s.activeStep(e.Address()) != nil {
			f.shareEvent(e)
		}
	default:
		if _, u := f.s.findAttempt(e.Address()); u != nil {
			f.shareEvent(e)
		}
	}
}

// answersAgain reports whether a signal has ended a step that is done again, which asks anew.
func (f *forker) answersAgain(signal *Event) bool {
	return slices.ContainsFunc(f.endedBySignal[signal], func(a Address) bool { return f.redone[a] })
}

// dropRedoneAnswers returns the shared events without the signals that came before it was known
// that the step they have ended is done again.
func (f *forker) dropRedoneAnswers(events []Event) []Event {
	var kept []Event
	for i := range events {
		if signal := f.sharedSignals[i+1]; signal == nil || !f.answersAgain(signal) {
			kept = append(kept, events[i])
		}
	}
	return kept
}

// shareEvent makes an event part of the fork. What belongs to the task that it was of is left out:
// requests, keys it asked for, logs.
func (f *forker) shareEvent(e Event) {
	e.Request, e.Permits, e.Log = "", nil, false
	f.plan.Events = append(f.plan.Events, e)
	Evolve(f.s, &e)
}

// shareEntered shares the beginning of a step, if that is as it was.
func (f *forker) shareEntered(e Event) {
	sc := f.s.scopes[e.Scope]
	if sc == nil || f.closedGraphs[e.Scope] {
		f.redoFrom(&e, ForkAfter)
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

// redoReason says why a step that is about to begin, or to end without having begun, is done again;
// "" = it is not.
func (f *forker) redoReason(sc *Scope, e *Event) ForkReason {
	old, now := f.scopes[e.Scope].Nodes[e.Node], sc.Plan.Nodes[e.Node]
	switch {
	case f.undone[e.stepAddress()] || f.isInsideUndone(e):
		return ForkUndone
	case e.Scope == "" && f.from == e.Node && (sc.Plan.Dag != nil || e.Visit == f.visits):
		return ForkAsked
	case !f.leadsTo(sc, now, e) || e.Kept > 0 && now != nil && sc.reusableResults(now, e) != e.Kept:
		return ForkAfter
	case old == nil || now == nil || !sameWork(f.scopes[e.Scope], old, sc.Plan, now):
		return ForkChanged
	}
	return ""
}

// isInsideUndone reports whether a step is of a branch that was undone as a whole and that is laid
// out in the scope around it.
func (f *forker) isInsideUndone(e *Event) bool {
	for i, char := range e.Node {
		if char == '/' && f.undoneNodes[Address{Scope: e.Scope, Node: e.Node[:i]}] {
			return true
		}
	}
	return false
}

// leadsTo reports whether what is shared leads to a node.
func (f *forker) leadsTo(sc *Scope, n *PlanNode, e *Event) bool {
	if n == nil {
		return sc.Plan.Dag != nil // it is no more
	}
	if sc.Plan.Dag == nil {
		return sc.Cursor == e.Node
	}
	return !slices.ContainsFunc(n.Dag.Deps, func(i int) bool { return !sc.Nodes[i].Ended() })
}

// redoFrom notes a step that is done again. In a graph so is all that follows; the step around has
// not ended then.
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
	case st == nil: // a node of a dag that ends without having begun; what had begun is noted already
		if f.redone[e.stepAddress()] {
			return
		}
		if why := f.redoReason(sc, &e); why != "" {
			f.redoFrom(&e, why)
			return
		}
	case st.Child != nil && (f.partlyShared[st.Child.Path] || f.endedWhole[st.Address()] && !st.Child.isOver()):
		f.redoFrom(&e, ForkAfter)
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

// maxForkOutputs bounds of how many steps a plan tells what they came to.
const maxForkOutputs = 1000

// isOver reports whether nothing is left to do in a scope.
func (sc *Scope) isOver() bool {
	if sc.Plan.Dag != nil {
		return sc.dag.left == 0
	}
	return sc.Step == nil && sc.Cursor == ""
}

// redirectEdge has a step of a graph lead where the edges of the plan do. What ended the scope by
// failing is tried again.
func (f *forker) redirectEdge(sc *Scope, st *Step, e *Event) {
	failed := e.Status == string(StepFailed)
	if e.Attempt > 0 || failed && e.Next == "" {
		return
	}
	how := stepOutcome{action: e.Action}
	if failed {
		how.failed = cmp.Or(e.Error, "failed")
	}
	e.Next, e.Reason = followEdge(sc, st.Node, how)
}

// redoUnended notes what is shared and has not ended.
func (f *forker) redoUnended(sc *Scope) {
	for _, st := range sc.Active() {
		if !f.redone[st.Address()] {
			f.noteRedone(st.Address(), ForkUnended)
		}
		if st.Child != nil {
			f.redoUnended(st.Child)
		}
	}
}

// goOnFrom makes the history of another task this one's. What it did is done, so it has no effects.
func (d *decider) goOnFrom(f *Fork) {
	d.s.waits.log = nil // what was decided in the other task is told of that one
	for i := range f.Events {
		d.events = append(d.events, f.Events[i])
		Evolve(d.s, &f.Events[i])
	}
	d.approvals.changes = d.s.Approvals()
	d.s.waits.log = &d.approvals
}

// signalShared sends the values of shared that a fork is given. They come after the steps that are
// done again have been given up, so none of these takes a signal that the new visit waits for.
func (d *decider) signalShared(f *Fork) {
	for _, key := range slices.Sorted(maps.Keys(f.Shared)) {
		d.emitEvent(Event{Type: SignalReceived, Key: key, Output: orNull(f.Shared[key]), By: byFork})
	}
}

// byFork is who sets the values of shared that a fork is given.
const byFork = "fork"

// Fit says what is wrong with the values of shared that a fork is given.
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
