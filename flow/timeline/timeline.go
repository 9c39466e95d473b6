// Package timeline tells when each visit of a scope was under way, what it waited for, and when its
// attempts ran, of the journal alone.
//
// What it promises: it is pure, and takes the journal in parts, so whoever has read up to a row
// goes on from there. What it keeps is bounded, however long the task has run: beyond maxLanes the
// oldest visits that are over are left out, and are counted. What is told for a window is bounded
// as well (see Window).
package timeline

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

const (
	maxLanes    = 20_000  // that are kept
	maxAttempts = 500_000 // that are kept, of all lanes
	maxWaits    = 100     // of a lane
)

// Lane is a visit of a node.
type Lane struct {
	Node    string
	Visit   int
	Entered int64 // Unix milliseconds
	Ended   int64 // 0 = it goes on
	State   string
	Units   int
	Failed  int // attempts
	Inside  bool
	Waits   []Wait

	attempts   []Attempt
	live       map[int]int // indexes of attempts, by unit
	retryWaits map[int]int // indexes of waits, by unit
	leftOut    int         // attempts
}

// Wait is a time in which nothing was done.
type Wait struct {
	For   string // approval, signal, timer, manual, worker, outside, retry, permit, delay, resume
	Start int64
	End   int64 // 0 = it goes on
}

// Attempt is one of a unit. It waits for somebody until Begun.
type Attempt struct {
	Unit, Attempt     int
	Start, Begun, End int64 // End 0 = it goes on; Begun 0 = it has not, or at once
	State             flow.AttemptStatus
	waitIndex         int // index among the lane's waits, from 1
}

type visitKey struct {
	node  string
	visit int
}

// Timeline folds a journal into the lanes of a scope.
type Timeline struct {
	scope        string
	plan         *flow.PlanScope
	enclosing    []flow.Address // the steps that the scope is inside of
	lanes        []*Lane        // in the order in which they began
	open         map[visitKey]*Lane
	endedUnbegun map[string]int64 // when nodes ended that never began
	pauses       []Wait
	attempts     int
	leftOut      int

	Begun, Ended int64 // of the scope; Ended 0 = it goes on
}

// New begins with the scope with a path, before the first event of its task.
func New(plan *flow.Plan, scope string) *Timeline {
	t := &Timeline{scope: scope, open: map[visitKey]*Lane{}, endedUnbegun: map[string]int64{}}
	if plan != nil {
		t.plan = plan.ScopeOf(scope)
	}
	for a, inside := flow.ParentOf(scope); inside; a, inside = flow.ParentOf(a.Scope) {
		t.enclosing = append(t.enclosing, a)
	}
	return t
}

// LeftOut is how many attempts are told nowhere.
func (l *Lane) LeftOut() int { return l.leftOut }

// Known says that the plan has such a scope.
func (t *Timeline) Known() bool { return t.plan != nil }

// Bytes is about how much memory it takes.
func (t *Timeline) Bytes() int { return 400*len(t.lanes) + 64*t.attempts }

// Add adds an event of the journal, in its turn.
func (t *Timeline) Add(e *flow.Event) {
	switch e.Type {
	case flow.TaskCreated:
		if t.scope == "" {
			t.Begun = e.At
		}
	case flow.TaskPaused:
		t.pauses = appendWait(t.pauses, Wait{For: "resume", Start: e.At})
	case flow.TaskResumed:
		t.endPause(e.At)
	case flow.TaskRetried:
		t.Ended = 0
	case flow.TaskEnded, flow.TaskClosing:
		if e.Type == flow.TaskEnded || !isClosingScope(t.scope) {
			t.cancelOpen(e.At)
		}
		if e.Type == flow.TaskEnded {
			t.endPause(e.At)
		}
	case flow.ScopeRetried:
		if e.Scope == t.scope {
			t.cancelOpen(e.At)
			t.Ended = 0
		}
	default:
		t.addStepEvent(e)
	}
}

func isClosingScope(scope string) bool { return len(scope) > 0 && scope[0] == '~' }

func (t *Timeline) endPause(at int64) {
	if n := len(t.pauses); n > 0 && t.pauses[n-1].End == 0 {
		t.pauses[n-1].End = at
	}
}

func (t *Timeline) addStepEvent(e *flow.Event) {
	if e.Scope != t.scope {
		t.addOutsideEvent(e)
		return
	}
	at := visitKey{e.Node, e.Visit}
	switch l := t.open[at]; {
	case e.Type == flow.StepEntered:
		t.addLane(e)
	case e.Type == flow.StepEnded && l == nil:
		t.endedUnbegun[e.Node] = e.At
	case l == nil:
	case e.Type == flow.StepEnded:
		l.endLane(e.At, endState(e))
		delete(t.open, at)
	case e.Type == flow.UnitsAppended:
		l.Units += e.Total
	default:
		t.addAttemptEvent(l, e)
	}
}

func endState(e *flow.Event) string {
	switch {
	case e.Error != "":
		return string(flow.StepFailed)
	case e.Status == "":
		return string(flow.StepCompleted)
	}
	return e.Status
}

// addOutsideEvent notes that a step of the scope has something inside, and that the scope ends with
// a step around it.
func (t *Timeline) addOutsideEvent(e *flow.Event) {
	switch e.Type {
	case flow.StepEntered:
		if a, inside := flow.ParentOf(e.Scope); inside && a.Scope == t.scope {
			if l := t.open[visitKey{a.Node, a.Visit}]; l != nil {
				l.Inside = true
			}
		}
	case flow.StepEnded:
		a := flow.Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit}
		if slices.Contains(t.enclosing, a) {
			t.cancelOpen(e.At)
		}
	}
}

func (t *Timeline) addLane(e *flow.Event) {
	if t.Begun == 0 {
		t.Begun = e.At
	}
	t.Ended = 0
	l := &Lane{Node: e.Node, Visit: e.Visit, Entered: e.At, State: "running", Units: e.Total, live: map[int]int{}}
	if word := waitWord(t.planNode(e.Node)); word != "" {
		l.Waits = append(l.Waits, Wait{For: word, Start: e.At})
	}
	if e.Until > e.At {
		l.Waits = append(l.Waits, Wait{For: "delay", Start: e.At, End: e.Until})
	}
	t.lanes = append(t.lanes, l)
	t.open[visitKey{e.Node, e.Visit}] = l
	if len(t.lanes) > 2*maxLanes {
		t.pruneLanes()
	}
}

func (t *Timeline) planNode(key string) *flow.PlanNode {
	if t.plan == nil {
		return nil
	}
	return t.plan.Nodes[key]
}

// waitWord is what a step waits for by its kind.
func waitWord(n *flow.PlanNode) string {
	if n == nil {
		return ""
	}
	switch n.Kind {
	case flow.KindApproval:
		return "approval"
	case flow.KindWaitEvent:
		return "signal"
	case flow.KindTimer:
		return "timer"
	}
	return ""
}

// pruneLanes leaves out the oldest lanes that are over.
func (t *Timeline) pruneLanes() {
	over, kept := len(t.lanes)-maxLanes, t.lanes[:0]
	for _, l := range t.lanes {
		if over > 0 && l.Ended > 0 {
			over--
			t.leftOut++
			t.attempts -= len(l.attempts)
			continue
		}
		kept = append(kept, l)
	}
	clear(t.lanes[len(kept):])
	t.lanes = kept
}

// cancelOpen ends what goes on in the scope.
func (t *Timeline) cancelOpen(at int64) {
	for key, l := range t.open {
		l.endLane(at, "canceled")
		delete(t.open, key)
	}
	if t.Begun > 0 && t.Ended == 0 {
		t.Ended = at
	}
}

// endLane ends a lane with all that is in it. What waits no longer was not waited for to the end.
func (l *Lane) endLane(at int64, state string) {
	l.Ended, l.State = at, state
	for i := range l.Waits {
		if w := &l.Waits[i]; w.End == 0 || w.End > at {
			w.End = max(w.Start, at)
		}
	}
	for _, i := range l.live {
		l.attempts[i].End, l.attempts[i].State = at, flow.AttemptCanceled
	}
	l.live, l.retryWaits = nil, nil
}

func appendWait(waits []Wait, w Wait) []Wait {
	if len(waits) >= maxWaits {
		return waits
	}
	return append(waits, w)
}
