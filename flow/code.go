package flow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// CodeMain is the key of the only node of a scope of code mode: the function.
const CodeMain = "main"

// CodeResult is the key of shared that holds the result of the function.
const CodeResult = "result"

// FunctionService returns the service name of a function that is a flow. Jobs, statistics and
// metrics use that name.
func FunctionService(function string) string { return "flow:" + function }

// CodeStep is a step that a function has requested, with its recorded result. After a crash the
// function is called again. It gets the results of its recorded steps in their order, and continues
// after the last one.
type CodeStep struct {
	Name string // name, after the path of its branch
	Use  int    // 1 plus the number of earlier steps with this name
	Kind CodeKind
	Hash string // hash of the step's input; "" if no hash is recorded

	Output    json.RawMessage
	Error     string
	Details   json.RawMessage // details of the error, as JSON
	Tries     int
	StartedAt int64
	EndedAt   int64
}

// CodeKind is the kind of a CodeStep.
type CodeKind string

// Kinds of steps of a function.
const (
	CodeDo      CodeKind = "do"      // calls a function
	CodeNow     CodeKind = "now"     // reads the clock
	CodeVersion CodeKind = "version" // chooses between versions of the code
	CodeUndo    CodeKind = "undo"    // undoes an earlier step
	CodeRace    CodeKind = "race"    // selects the branch that wins; outputs its number
	CodeSet     CodeKind = "set"     // sets a key of shared

	CodeSleep    CodeKind = "sleep"    // waits for a time
	CodeRetry    CodeKind = "retry"    // waits for the next try of a failed step
	CodeSignal   CodeKind = "signal"   // waits for a signal
	CodeApproval CodeKind = "approval" // waits for a decision
	CodeCall     CodeKind = "call"     // waits for a job of a service
)

// codeKinds are the kinds with results that a carrier reports.
var codeKinds = []CodeKind{CodeDo, CodeNow, CodeVersion, CodeUndo, CodeRace, CodeSet}

// waitKinds are the kinds of waits.
var waitKinds = []CodeKind{CodeSleep, CodeRetry, CodeSignal, CodeApproval, CodeCall}

// RecordSteps reports results of steps of a function that is a flow. It also begins waits while
// other branches of the function continue. The function sees the results after they are stored.
// Given is the delivery number: a report with an older number is rejected, because another carrier
// has the function now.
type RecordSteps struct {
	Address
	Given int
	Steps []CodeStep
	Waits []CodeWait
}

// FunctionState is the state of a function that is a flow.
type FunctionState struct {
	Steps []CodeStep     // recorded steps in their order
	Waits []*Step        // waits that have begun, in that order
	Tries map[string]int // attempts of calls that ended without a result, by CodeStep.Place
	// NextInput is the input of a restarted function; nil if the input is the params.
	NextInput json.RawMessage

	index codeIndex
}

// codeIndex finds the recorded steps of a function.
type codeIndex struct {
	places map[codePlace]bool
	races  map[string]bool // places of the recorded races, see CodeStep.Place
	size   int             // bytes of their results
}

// codePlace identifies a recorded step of a scope. try is 0, except for a CodeRetry. Such a wait
// has the name and use of its step, so try is the number of tries before the wait.
type codePlace struct {
	name     string
	use, try int
}

func (s *CodeStep) codePlace() codePlace {
	at := codePlace{name: s.Name, use: s.Use}
	if s.Kind == CodeRetry {
		at.try = s.Tries
	}
	return at
}

func (c *codeIndex) addStep(s *CodeStep) {
	if c.places == nil {
		c.places = map[codePlace]bool{}
	}
	c.places[s.codePlace()] = true
	if s.Kind == CodeRace {
		if c.races == nil {
			c.races = map[string]bool{}
		}
		c.races[s.Place()] = true
	}
	c.size += s.resultBytes()
}

// Bytes returns the size of the results.
func (c *RecordSteps) Bytes() (sum int) {
	for i := range c.Steps {
		sum += c.Steps[i].resultBytes()
	}
	return sum + waitBytes(c.Waits)
}

func (s *CodeStep) resultBytes() int { return len(s.Output) + len(s.Error) + len(s.Details) }

// codeMode is graphMode with a single node, whose function requests all other steps.
type codeMode struct{ graphMode }

// linkScope links the scope like graphMode, indexes the recorded steps, and links the waits.
func (m codeMode) linkScope(s *State, sc *Scope) error {
	sc.Function.indexSteps()
	for _, st := range sc.Function.Waits {
		if err := s.linkPart().linkNode(sc, st, waitNode(st.Key, st.Params)); err != nil {
			return err
		}
	}
	return m.graphMode.linkScope(s, sc)
}

// activeSteps returns the function and its waits.
func (m codeMode) activeSteps(sc *Scope) []*Step {
	return append(m.graphMode.activeSteps(sc), sc.Function.Waits...)
}

func (m codeMode) activeStep(sc *Scope, node string) *Step {
	if st := m.graphMode.activeStep(sc, node); st != nil {
		return st
	}
	for _, st := range sc.Function.Waits {
		if st.Key == node {
			return st
		}
	}
	return nil
}

// isBusy reports whether the function or one of its calls is in flight. A function that only waits
// has no carrier.
func (m codeMode) isBusy(sc *Scope, retries bool) bool {
	return m.graphMode.isBusy(sc, retries) && !sc.onlyWaits() ||
		slices.ContainsFunc(sc.Function.Waits, func(st *Step) bool { return st.isBusy(retries) })
}

// applyStepEnded ends the function and its waits. If the function restarts, the recorded steps are
// removed.
func (m codeMode) applyStepEnded(s *State, sc *Scope, e *Event) {
	if st := s.activeStep(e.Address()); st != nil && st.Key == CodeMain {
		for _, wait := range sc.Function.Waits {
			sc.noteTries(wait)
			s.evolvePart().forgetStep(wait, e.At)
		}
		sc.Function.Waits = nil
	}
	if st := s.activeStep(e.Address()); e.Action == ActionRestart && st != nil && len(st.Units) == 1 {
		sc.Function.Steps, sc.Function.Tries = nil, nil
		sc.Function.indexSteps()
		sc.Function.NextInput = orNull(st.Units[0].Output)
	}
	m.graphMode.applyStepEnded(s, sc, e)
}

// stepParams returns the input of the function.
func (m codeMode) stepParams(sc *Scope, n *PlanNode) json.RawMessage {
	if sc.Function.NextInput != nil {
		return sc.Function.NextInput
	}
	return m.graphMode.stepParams(sc, n)
}

// endSingle ends the function or a call. A function that asked for a restart restarts.
func (m codeMode) endSingle(d *decider, st *Step) {
	switch u := &st.Units[0]; {
	case st.isCall():
		endCall(d, st)
	case d.restarts && u.Status == UnitCompleted:
		d.stepPart().finishStep(st, stepOutcome{action: ActionRestart})
	default:
		m.graphMode.endSingle(d, st)
	}
}

func (m codeMode) deactivateStep(sc *Scope, st *Step, at int64) {
	if i := slices.Index(sc.Function.Waits, st); i >= 0 {
		sc.noteTries(st)
		sc.Function.Waits = slices.Delete(slices.Clone(sc.Function.Waits), i, i+1)
		return
	}
	m.graphMode.deactivateStep(sc, st, at)
}

// setKept stores the results of the function. Waits have none, because a function requests them
// again.
func (m codeMode) setKept(sc *Scope, n *PlanNode, k *Kept) {
	if n.Key == CodeMain {
		m.graphMode.setKept(sc, n, k)
	}
}

// finishStep ends the function, or one of its waits.
func (m codeMode) finishStep(d *decider, st *Step, how stepOutcome) {
	switch {
	case slices.Contains(st.scope.Function.Waits, st):
		endWait(d, st, how)
	case how.action == ActionRestart:
		withdrawCalls(d, st.scope, "")
		e := st.newEvent(StepEnded)
		how.fillEvent(&e)
		e.Next = st.Key
		d.emitEvent(e)
		d.queueScope(st.scope)
	default:
		withdrawCalls(d, st.scope, "")
		m.graphMode.finishStep(d, st, how)
	}
}

func (f *FunctionState) indexSteps() {
	f.index = codeIndex{}
	for i := range f.Steps {
		f.index.addStep(&f.Steps[i])
	}
}

// reopenScope removes the failed steps at the end of the record, so that a retried task repeats
// them. A failure that is followed by a later step stays recorded.
func (m codeMode) reopenScope(sc *Scope, undone map[string]bool) {
	m.graphMode.reopenScope(sc, undone)
	f := sc.Function
	last := len(f.Steps)
	for last > 0 && f.Steps[last-1].isRepeatedOnRetry() {
		last--
		sc.noteRecordedTries(&f.Steps[last])
	}
	f.Steps = slices.Clip(f.Steps[:last])
	f.indexSteps()
}

// isRepeatedOnRetry reports whether a retried task removes the step if nothing was recorded after
// it.
func (s *CodeStep) isRepeatedOnRetry() bool {
	return s.Error != "" && s.Kind != CodeSignal || s.Kind == CodeRetry
}

// recordSteps stores results of a function's steps. A result that is already recorded changes
// nothing, because the report may be a repetition whose first answer was lost.
func recordSteps(d *decider, c RecordSteps) error {
	st, u := d.attemptPart().deliverableAttempt(c.Address)
	if u == nil || u.Live.Given != c.Given || !st.scope.Plan.Code {
		return ErrOver
	}
	if len(c.Steps) > MaxReports {
		return Errorf(Limit, "limit: %d results at once, more than the %d there may be", len(c.Steps), MaxReports)
	}
	sc, fresh := st.scope, make([]*CodeStep, 0, len(c.Steps))
	if err := checkWaits(d, sc, c.Waits); err != nil {
		return err
	}
	size, growth := sc.Function.index.size, 0
	for i := range c.Steps {
		s := &c.Steps[i]
		if sc.Function.index.places[s.codePlace()] {
			continue
		}
		if err := checkCodeStep(d, s); err != nil {
			return err
		}
		if s.Kind == CodeSet {
			growth += sc.sharedGrowth(sharedKey(s.Name), orNull(s.Output))
		}
		size += s.resultBytes()
		fresh = append(fresh, s)
	}
	if growth > 0 && *sc.size+growth > d.limits.Shared {
		return Errorf(Limit, "limit: the values that the function sets and the signals of the task would have %d bytes together, "+
			"more than the limit of %d", *sc.size+growth, d.limits.Shared)
	}
	if size > d.limits.Shared {
		return Errorf(Limit, "limit: the results of the steps would have %d bytes together, more than "+
			"the limit of %d; keep large data elsewhere and return references", size, d.limits.Shared)
	}
	if err := checkStepNumber(d, sc, len(fresh)+len(c.Waits)); err != nil {
		return err
	}
	d.expectedEvents = len(fresh) + len(c.Waits)
	for _, s := range fresh {
		if s.Kind == CodeRace {
			withdrawCalls(d, sc, s.Place()+"/")
		}
		d.emitEvent(Event{Type: StepRecorded, Scope: sc.Path, Node: s.Name, Visit: s.Use,
			Action: string(s.Kind), InputRef: s.Hash, Output: s.Output, Error: truncateText(s.Error, maxErrorText),
			Details: s.Details, Total: s.Tries, Until: s.StartedAt})
	}
	beginWaits(d, sc, c.Waits)
	return nil
}

// checkStepNumber rejects further steps if the function would exceed the limit since its start or
// last restart.
func checkStepNumber(d *decider, sc *Scope, more int) error {
	if n := len(sc.Function.Steps) + len(sc.Function.Waits); n+more > d.limits.Steps {
		return Errorf(Limit, "limit: the function has run %d steps, which is the most it may have; "+
			"look for an endless loop in it, or let it begin anew with Restart", n)
	}
	return nil
}

// sharedKey returns the key of shared that a step sets.
func sharedKey(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// recordedStep returns the recorded step at a place. The step must exist.
func (sc *Scope) recordedStep(at codePlace) CodeStep {
	return sc.Function.Steps[slices.IndexFunc(sc.Function.Steps, func(s CodeStep) bool { return s.codePlace() == at })]
}

// checkCodeStep rejects a result that cannot be stored.
func checkCodeStep(d *decider, s *CodeStep) error {
	what := "the step " + TrimRestartPrefix(s.Name)
	if err := CheckName("the name of a step", TrimRestartPrefix(s.Name)); err != nil {
		return err
	}
	if s.Use < 1 || !slices.Contains(codeKinds, s.Kind) || len(s.Hash) > MaxName || !IsText(s.Hash) {
		return Errorf(Invalid, "%s is reported in a form that this member does not know", what)
	}
	if key := sharedKey(s.Name); s.Kind == CodeSet && s.Error == "" {
		if err := checkSharedKey(key); err != nil {
			return err
		}
		if key == CodeResult {
			return Errorf(Invalid, "a function cannot set %s: that is what it returns", key)
		}
	}
	if err := d.limits.checkValue("the result of "+what, s.Output); err != nil {
		return err
	}
	return d.limits.checkValue("the details of the error of "+what, s.Details)
}

// applyRecorded adds a result to the function's state. The result proves that the carrier works, so
// earlier losses of carriers no longer count.
func (s *State) applyRecorded(e *Event) {
	sc := s.scopes[e.Scope]
	if sc == nil || !sc.Plan.Code {
		return
	}
	step := CodeStep{Name: e.Node, Use: e.Visit, Kind: CodeKind(e.Action), Hash: e.InputRef, Output: e.Output,
		Error: e.Error, Details: e.Details, Tries: e.Total, StartedAt: e.Until, EndedAt: e.At}
	sc.Function.Steps = append(sc.Function.Steps, step)
	sc.Function.index.addStep(&step)
	s.Steps++
	if st := s.activeStep(e.stepAddress()); st != nil && st.Key != CodeMain {
		s.evolvePart().forgetStep(st, e.At)
		sc.mode.deactivateStep(sc, st, e.At)
		if s.Paused() && sc.onlyWaits() {
			sc.Step.Units[0].Live.Held = HeldPaused
		}
	}
	if step.Kind == CodeSet && step.Error == "" {
		sc.setShared(sharedKey(step.Name), step.Output)
	}
	if step.Kind == CodeRace {
		s.evolvePart().withdrawWaits(sc, step.Place()+"/", e.At)
	}
	if sc.Step != nil && len(sc.Step.Units) == 1 && sc.Step.Units[0].Live != nil {
		sc.Step.Units[0].Live.Deliveries = 0
	}
}

// Place returns the name of a step as users see it: "name", or "name#2" for the second use of the
// name.
func (s *CodeStep) Place() string {
	if s.Use < 2 {
		return s.Name
	}
	return s.Name + "#" + strconv.Itoa(s.Use)
}

// recordedNode returns a node for a recorded step. The plan has no such node.
func recordedNode(e *Event) *PlanNode {
	kind := Kind(e.Action)
	switch CodeKind(e.Action) {
	case CodeDo:
		kind = KindExecutor
	case CodeSleep, CodeRetry, CodeSignal, CodeApproval, CodeCall:
		return waitNode(e.Node, waitParams{Wait: CodeKind(e.Action)}.encodeParams())
	}
	return &PlanNode{Key: e.Node, Kind: kind, Single: true, Exec: Exec{Type: ExecCode, Func: e.Node}}
}

// recordedRun returns the row of a recorded step for a history.
func recordedRun(e *Event) NodeRun {
	r := NodeRun{Kind: RunAttempt, Node: recordedNode(e), Status: AttemptOK, Input: null, Output: orNull(e.Output), Error: e.Error,
		Details: e.Details, StartedAt: e.Until, EndedAt: e.At,
		Address: Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit, Attempt: max(e.Total, 1)}}
	if e.Error != "" {
		r.Status, r.Output = AttemptError, nil
	}
	return r
}

// recordedView returns the view of a recorded step.
func recordedView(e *Event) StepView {
	v := StepView{Address: Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit}, Node: recordedNode(e),
		Status: StepCompleted, Output: e.Output, StartedAt: e.Until, EndedAt: e.At,
		Units: UnitCount{Total: 1, Initial: 1, Done: 1}}
	if e.Error != "" {
		v.Status, v.Error, v.Details, v.Units.Failed = StepFailed, e.Error, e.Details, 1
	}
	return v
}
