// Package trace converts a task to spans, from its journal alone.
//
// Promises: the package is pure. Equal journals give equal spans and ids, on any member and in any
// number of repetitions. So nothing has to be kept while a task waits, and a takeover changes
// nothing. Every span is a descendant of the span of the task's start, which exists from the
// beginning, so no parent is ever missing. A task has at most MaxSpans, however large its journal
// is; a step with many units includes its failed and its slowest attempts.
package trace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

const (
	// MaxSpans is the maximum number of spans of a task.
	MaxSpans = 1000
	// maxUnitsInFull is the maximum number of units of a step for which all attempts are included.
	// For more units, only the maxSlowAttempts slowest attempts are included.
	maxUnitsInFull  = 100
	maxSlowAttempts = 20
	// maxHeldSpans is the maximum number of active spans in memory. Further spans are dropped.
	maxHeldSpans = 32 * MaxSpans
)

// Kind is the span kind of OpenTelemetry.
type Kind int

// Kinds of spans in use.
const (
	Internal Kind = 1
	Client   Kind = 3 // a worker is called or attached
	Producer Kind = 4 // the job waits in a queue for a poller
)

// Span is a timed operation of a task. It contains no texts of users except names and the text of
// an error.
type Span struct {
	ID, Parent SpanID // zero Parent for the first span of a trace
	Trace      ID
	Link       Link // only for the first span of a task
	Name       string
	Kind       Kind
	Start, End int64 // Unix milliseconds
	Open       bool  // the operation is active; End is the current time
	State      string
	Error      string // error of a failed span
	Failed     bool
	Reason     string // reason of a failure, in one word
	At         flow.Address
	Service    string
	Worker     string
	Member     string
	Units      int // units of a step
	Failures   int // number of failed units
	LeftOut    int // for the task: number of spans dropped beyond MaxSpans
}

// Link points to a span of another trace. Trace is zero if there is no link.
type Link struct {
	Trace ID
	Span  SpanID
	State string // tracestate of the other trace
}

// Trace folds a journal into spans.
type Trace struct {
	task    string
	plan    *flow.Plan
	id      ID
	traced  *flow.Traced
	begun   int64
	ended   int64
	status  string
	err     string
	steps   map[flow.Address]*openStep // active steps
	spans   []Span                     // ended spans that Take has not returned
	held    int                        // number of active steps, and of attempts below them
	leftOut int
	taken   takenState
}

// openStep is an active step.
type openStep struct {
	span     Span
	live     map[int]*Span // by unit
	attempts []Span        // for many units: attempts that may be included
	inside   []flow.Address
}

// New returns the trace of a task before its first event. The plan describes the nodes of the task.
func New(task string, plan *flow.Plan) *Trace {
	return &Trace{task: task, plan: plan, steps: map[flow.Address]*openStep{}}
}

// Add adds the next event of the journal.
func (t *Trace) Add(e *flow.Event) {
	switch e.Type {
	case flow.TaskCreated:
		t.begun, t.traced, t.id = e.At, e.Traced, IDOf(t.task, e.Traced)
	case flow.TaskRetried:
		t.ended, t.status, t.err, t.taken.toldTask = 0, "", "", false
	case flow.TaskEnded:
		t.cancelOpen("", e.At)
		t.ended, t.status, t.err = e.At, e.Status, e.Error
	case flow.TaskClosing, flow.ScopeRetried:
		t.cancelOpen(e.Scope, e.At)
	case flow.StepEntered:
		t.addStep(e)
	case flow.StepEnded:
		t.stepEnded(e)
	case flow.UnitsAppended:
		if st := t.steps[stepOf(e)]; st != nil {
			st.span.Units += e.Total
		}
	default:
		t.addAttemptEvent(e)
	}
}

func stepOf(e *flow.Event) flow.Address {
	return flow.Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit}
}

func (t *Trace) addStep(e *flow.Event) {
	a := stepOf(e)
	if old := t.steps[a]; old != nil {
		t.held -= 1 + len(old.live) + len(old.attempts)
	}
	if t.isFull() {
		return
	}
	t.held++
	t.steps[a] = &openStep{span: t.stepSpan(a, e.At), live: map[int]*Span{}}
	t.steps[a].span.Units = e.Total
	if parent, ok := flow.ParentOf(a.Scope); ok && t.steps[parent] != nil {
		t.steps[parent].addInside(a, t.steps)
	}
}

// addInside records an inner step. From time to time it removes ended ones.
func (st *openStep) addInside(a flow.Address, steps map[flow.Address]*openStep) {
	if len(st.inside) > 2*len(steps) {
		st.inside = slices.DeleteFunc(st.inside, func(a flow.Address) bool { return steps[a] == nil })
	}
	st.inside = append(st.inside, a)
}

// isFull reports whether no further span can be held. If so, it counts a dropped span.
func (t *Trace) isFull() bool {
	if t.held < maxHeldSpans {
		return false
	}
	t.leftOut++
	return true
}

// Held returns the number of active spans.
func (t *Trace) Held() int { return t.held }

// Follow sets the plan for the next events. A trace without events to add need not hold its plan.
func (t *Trace) Follow(plan *flow.Plan) { t.plan = plan }

// waitNames are the span names of waiting steps.
var waitNames = map[flow.Kind]string{flow.KindApproval: "wait approval", flow.KindWaitEvent: "wait signal", flow.KindTimer: "wait timer"}

func (t *Trace) stepSpan(a flow.Address, at int64) Span {
	s := Span{Trace: t.id, ID: SpanOf(t.task, a), Parent: startOf(t.task), Name: "step " + a.Node, Kind: Internal, Start: at, At: a}
	if n := t.planNode(a); n != nil && waitNames[n.Kind] != "" {
		s.Name = waitNames[n.Kind]
	}
	return s
}

func (t *Trace) planNode(a flow.Address) *flow.PlanNode {
	if t.plan == nil {
		return nil
	}
	scope := t.plan.ScopeOf(a.Scope)
	if scope == nil {
		return nil
	}
	return scope.Nodes[a.Node]
}

// stepEnded ends a step and everything active below it. A step that never started gets a span only
// if it failed.
func (t *Trace) stepEnded(e *flow.Event) {
	a := stepOf(e)
	failed := e.Error != "" || e.Status == string(flow.StepFailed)
	st := t.steps[a]
	if st == nil {
		if !failed {
			return
		}
		st = &openStep{span: t.stepSpan(a, e.At)}
	}
	st.span.State, st.span.Error, st.span.Failed, st.span.Reason = cmp.Or(e.Status, string(flow.StepCompleted)), e.Error, failed, e.Reason
	if failed {
		st.span.State = string(flow.StepFailed)
	}
	t.endStep(st, e.At)
}

// endStep adds the span of a step, and those of active attempts and steps below it.
func (t *Trace) endStep(st *openStep, at int64) {
	if t.steps[st.span.At] == st {
		t.held--
		delete(t.steps, st.span.At)
	}
	for _, a := range st.inside {
		if below := t.steps[a]; below != nil {
			below.span.State = "canceled"
			t.endStep(below, at)
		}
	}
	for _, unit := range sortedUnits(st.live) {
		t.attemptEnded(st, unit, at, "canceled")
	}
	st.span.End = at
	t.held -= len(st.attempts)
	t.spans = append(append(t.spans, selectAttempts(st.attempts)...), st.span)
	if len(t.spans) > 4*MaxSpans {
		t.pruneSpans()
	}
}

// cancelOpen ends everything that is active in a scope and below it.
func (t *Trace) cancelOpen(scope string, at int64) {
	for _, a := range sortedSteps(t.steps) {
		if st := t.steps[a]; st != nil && (scope == "" || a.Scope == scope || strings.HasPrefix(a.Scope, scope+"/")) {
			st.span.State = "canceled"
			t.endStep(st, at)
		}
	}
}

func (t *Trace) addAttemptEvent(e *flow.Event) {
	st := t.steps[stepOf(e)]
	if st == nil {
		return
	}
	if e.Type == flow.AttemptsDispatched {
		for unit := e.Unit; unit < e.Unit+e.Total; unit++ {
			if st.live[unit] == nil {
				if t.isFull() {
					continue
				}
				t.held++
			}
			st.live[unit] = t.attemptSpan(e, unit)
		}
		return
	}
	s := st.live[e.Unit]
	if s == nil || s.At.Attempt != e.Attempt {
		return
	}
	switch e.Type {
	case flow.AttemptClaimed:
		s.Worker = e.Worker
	case flow.AttemptRequeued, flow.AttemptMoved, flow.PermitGranted:
		s.Worker, s.Member = e.Worker, cmp.Or(e.Carrier, s.Member)
	case flow.AttemptEnded:
		s.Worker, s.Error, s.Failed = cmp.Or(e.Worker, s.Worker), e.Error,
			e.Status != string(flow.AttemptOK) && e.Status != string(flow.AttemptCanceled)
		if s.Failed {
			s.Reason = e.Status
		}
		t.attemptEnded(st, e.Unit, e.At, e.Status)
	}
}

func (t *Trace) attemptSpan(e *flow.Event, unit int) *Span {
	a := flow.Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit, Unit: unit, Attempt: e.Attempt}
	s := &Span{Trace: t.id, ID: SpanOf(t.task, a), Parent: startOf(t.task),
		Name: "attempt " + e.Node, Kind: Internal, Start: e.At, At: a, Member: e.Carrier}
	if n := t.planNode(a); n != nil {
		x := execOf(n, unit)
		s.Service = x.Service
		switch x.Type {
		case flow.ExecPush, flow.ExecRemote:
			s.Kind = Client
		case flow.ExecQueue:
			s.Kind = Producer
		}
	}
	return s
}

// execOf returns the Exec of a unit, because branches may have different ones.
func execOf(n *flow.PlanNode, unit int) *flow.Exec {
	if n.Kind == flow.KindParallel && n.Each != nil && unit < len(n.Each.Branches) {
		return &n.Each.Branches[unit].Exec
	}
	return &n.Exec
}

func (t *Trace) attemptEnded(st *openStep, unit int, at int64, state string) {
	s := *st.live[unit]
	delete(st.live, unit)
	t.held--
	s.End, s.State = at, state
	if s.Failed {
		st.span.Failures++
	}
	if st.span.Units <= maxUnitsInFull && len(st.attempts) == 0 {
		t.spans = append(t.spans, s)
		return
	}
	t.held++
	if st.attempts = append(st.attempts, s); len(st.attempts) > 4*MaxSpans {
		t.held -= len(st.attempts)
		st.attempts = selectAttempts(st.attempts)
		t.held += len(st.attempts)
	}
}

// selectAttempts returns the failed attempts of many units, and the slowest of the other attempts.
func selectAttempts(attempts []Span) []Span {
	slices.SortFunc(attempts, byWorth)
	failed := slices.IndexFunc(attempts, func(s Span) bool { return !s.Failed })
	if failed < 0 {
		failed = len(attempts)
	}
	keep := min(failed, MaxSpans) // failed attempts come first
	return slices.Concat(attempts[:keep], attempts[failed:min(failed+maxSlowAttempts, len(attempts))])
}

// byWorth compares spans by importance, for cases in which spans must be dropped. Failures come
// first, then steps, then long spans.
func byWorth(a, b Span) int {
	return cmp.Or(boolInt(b.Failed)-boolInt(a.Failed), boolInt(a.At.Attempt > 0)-boolInt(b.At.Attempt > 0),
		cmp.Compare(b.End-b.Start, a.End-a.Start), inTime(a, b))
}

// inTime compares spans by their order in the output.
func inTime(a, b Span) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), a.At.Compare(b.At), slices.Compare(a.ID[:], b.ID[:]))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (t *Trace) pruneSpans() {
	most := MaxSpans - 2 // without the start and the task
	if len(t.spans) <= most {
		return
	}
	slices.SortFunc(t.spans, byWorth)
	t.leftOut += len(t.spans) - most
	clear(t.spans[most:])
	t.spans = t.spans[:most]
}

// Spans returns the spans of the task so far, in the order of their start. Active spans are marked
// as open and end at now.
func (t *Trace) Spans(now int64) []Span {
	if t.begun == 0 {
		return nil
	}
	all := &Trace{task: t.task, spans: slices.Clone(t.spans), leftOut: t.leftOut}
	for _, st := range t.steps {
		for _, s := range st.live {
			all.spans = append(all.spans, openSpan(*s, now))
		}
		all.spans = append(append(all.spans, selectAttempts(slices.Clone(st.attempts))...), openSpan(st.span, now))
	}
	all.pruneSpans()
	slices.SortFunc(all.spans, inTime)
	return append([]Span{t.startSpan(), t.taskSpan(now, all.leftOut)}, all.spans...)
}

func openSpan(s Span, now int64) Span {
	s.End, s.Open, s.State = max(now, s.Start), true, "running"
	return s
}

// startSpan returns the first span.
func (t *Trace) startSpan() Span {
	s := Span{Trace: t.id, ID: startOf(t.task), Name: "start " + t.flowName(), Kind: Internal, Start: t.begun, End: t.begun}
	if above, span := t.traced.Linked(); above == "" {
		return s
	} else if t.traced.Link {
		s.Link = Link{idOf(above), spanOf(span), t.traced.State}
	} else {
		s.Parent = spanOf(span)
	}
	return s
}

// taskSpan returns the span of the whole task.
func (t *Trace) taskSpan(now int64, leftOut int) Span {
	s := Span{Trace: t.id, ID: SpanOf(t.task, flow.Address{}), Parent: startOf(t.task),
		Name: "task " + t.flowName(), Kind: Internal, Start: t.begun, LeftOut: leftOut}
	if t.ended == 0 {
		return openSpan(s, now)
	}
	s.End, s.State, s.Failed, s.Error = t.ended, t.status, t.status == string(flow.TaskFailed), t.err
	return s
}

func (t *Trace) flowName() string {
	if t.plan == nil {
		return ""
	}
	return cmp.Or(t.plan.FlowSlug, t.plan.FlowID)
}

func sortedUnits(live map[int]*Span) []int {
	units := make([]int, 0, len(live))
	for unit := range live {
		units = append(units, unit)
	}
	slices.Sort(units)
	return units
}

func sortedSteps(steps map[flow.Address]*openStep) []flow.Address {
	list := make([]flow.Address, 0, len(steps))
	for a := range steps {
		list = append(list, a)
	}
	slices.SortFunc(list, flow.Address.Compare)
	return list
}
