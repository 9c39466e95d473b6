// Package timeline computes the times of a scope from the journal alone: when each visit was
// active, the reasons for its waits, and when its attempts ran.
//
// Promises: the package is pure, and accepts the journal in parts, so a caller can continue after
// the last row that it has read. Memory is bounded, however long the task has run: beyond maxLanes,
// the oldest ended visits are dropped and counted. The output for a window is bounded as well (see
// Window).
package timeline

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

const (
	maxLanes    = 20_000  // lanes in memory
	maxAttempts = 500_000 // attempts in memory, for all lanes
	maxWaits    = 100     // waits of a lane
)

// Lane is a visit of a node.
type Lane struct {
	Node    string
	Visit   int
	Entered int64 // Unix milliseconds
	Ended   int64 // 0 if active
	State   string
	Units   int
	Failed  int // failed attempts
	Inside  bool
	Waits   []Wait

	attempts   []Attempt
	live       map[int]int // indexes in attempts, by unit
	retryWaits map[int]int // indexes in Waits, by unit
	leftOut    int         // number of dropped attempts
}

// Wait is a period without work.
type Wait struct {
	For   string // approval, signal, timer, manual, worker, external, retry, permit, delay, resume
	Start int64
	End   int64 // 0 if the wait is not over
}

// Attempt is an attempt of a unit. It waits for a carrier until Begun.
type Attempt struct {
	Unit, Attempt     int
	Start, Begun, End int64 // End is 0 if active; Begun is 0 if not started, or started at once
	State             flow.AttemptStatus
	waitIndex         int // index in the lane's waits, from 1
}

type visitKey struct {
	node  string
	visit int
}

// Timeline folds a journal into the lanes of a scope.
type Timeline struct {
	scope        string
	plan         *flow.PlanScope
	enclosing    []flow.Address // steps around the scope, innermost first
	lanes        []*Lane        // lanes in the order of their start
	open         map[visitKey]*Lane
	endedUnbegun map[string]int64 // end times of nodes that never started
	pauses       []Wait
	attempts     int
	leftOut      int

	Begun, Ended int64 // times of the scope; Ended is 0 if it is active
}

// New returns the timeline of the scope with this path. Add must get all events of the task from
// the first one.
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

// LeftOut returns how many attempts are missing from the output.
func (l *Lane) LeftOut() int { return l.leftOut }

// Known reports whether the plan has this scope.
func (t *Timeline) Known() bool { return t.plan != nil }

// Bytes returns the approximate memory size in bytes.
func (t *Timeline) Bytes() int { return 400*len(t.lanes) + 64*t.attempts }

// Add adds the next event of the journal.
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

// addOutsideEvent handles events outside the scope. A step of the scope may get an inner scope, or
// the scope may end with a step around it.
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

// waitWord returns the word for the wait of a step of this kind, or "" if it does not wait.
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

// pruneLanes drops the oldest ended lanes.
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

// cancelOpen ends everything that is active in the scope.
func (t *Timeline) cancelOpen(at int64) {
	for key, l := range t.open {
		l.endLane(at, "canceled")
		delete(t.open, key)
	}
	if t.Begun > 0 && t.Ended == 0 {
		t.Ended = at
	}
}

// endLane ends a lane with all its waits and attempts. A wait with a later end is cut.
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
