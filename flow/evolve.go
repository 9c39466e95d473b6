package flow

import (
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// KeptRequests is the number of request ids that a task remembers.
const KeptRequests = 64

// NewState returns the state of a task before its first event.
func NewState(task string, plan *Plan) *State {
	return &State{Task: task, Plan: plan}
}

// Evolve applies an event to the state. It never fails and never decides: the result depends on the
// event and the state alone. An event that does not fit the state is ignored; a foreign journal may
// contain such events.
func Evolve(s *State, e *Event) {
	if (s.Root == nil) != (e.Type == TaskCreated) {
		return
	}
	s.UpdatedAt = e.At
	if e.Request != "" {
		s.evolvePart().rememberRequest(e)
	}
	switch e.Type {
	case TaskCreated:
		s.evolvePart().applyCreated(e)
	case TaskPaused:
		s.PausedAt, s.ResumedAt = e.At, 0
		s.evolvePart().stopClocks(e.At)
	case TaskResumed:
		s.ResumedAt = e.At
		s.evolvePart().startClocks(e.At)
	case CancelRequested:
		s.CancelAt, s.CancelError, s.Status, s.PausedAt = e.At, e.Error, TaskCanceling, 0
		s.evolvePart().startClocks(e.At)
		if e.Error != "" {
			s.Deadline = 0 // the deadline no longer applies
		}
		if s.isDraining() { // waiting steps do not delay the end
			s.waiting = nil
			s.waits.endAll(e.At)
		}
	case TaskClosing:
		s.evolvePart().applyClosing(e)
	case TaskRetried:
		s.evolvePart().retryTask(e)
	case TaskEnded:
		s.evolvePart().applyEnded(e)
	case ScopeRetried:
		s.evolvePart().reopenScope(e)
	case SignalReceived:
		s.evolvePart().applySignal(e)
	case StepEntered:
		s.evolvePart().applyEntered(e)
	case StepEnded:
		if sc := s.scopes[e.Scope]; sc != nil {
			sc.mode.applyStepEnded(s, sc, e)
		}
	case StepHeld, StepReleased:
		if sc := s.scopes[e.Scope]; sc != nil && sc.Plan.Dag != nil {
			sc.holdNode(e.Node, e.Type == StepHeld)
		}
	case AttemptsDispatched:
		s.evolvePart().applyStarted(e)
	case PermitGranted:
		s.evolvePart().applyGranted(e)
	case UnitsAppended:
		s.evolvePart().applyAppended(e)
	case StepRecorded:
		s.applyRecorded(e)
	case WaitStarted:
		s.evolvePart().applyWaitStarted(e)
	default:
		if st, u := s.findAttempt(e.Address()); u != nil {
			st.applyAttemptEvent(u, e)
			s.evolvePart().trackManual(st)
			if u.Status == UnitCompleted {
				s.undoPart().noteDone(st, e.Unit)
			}
		}
	}
}

// Fold applies journal rows to a state.
func Fold(s *State, rows ...[]byte) error {
	for _, row := range rows {
		events, err := DecodeEvents(row)
		if err != nil {
			return err
		}
		for i := range events {
			Evolve(s, &events[i])
		}
	}
	return s.Lost()
}

// rememberRequest stores the id of a request, and for an append its answer.
func (s evolveState) rememberRequest(e *Event) {
	s.AnsweredIDs = append(s.AnsweredIDs, e.Request)
	if e.Type == UnitsAppended {
		if s.Appended == nil {
			s.Appended = map[string]int{}
		}
		s.Appended[e.Request] = e.Unit
	}
	if n := len(s.AnsweredIDs) - KeptRequests; n > 0 {
		for _, id := range s.AnsweredIDs[:n] {
			delete(s.Appended, id)
		}
		s.AnsweredIDs = slices.Delete(s.AnsweredIDs, 0, n)
	}
}

// applyCreated initializes the state of a new task.
func (s evolveState) applyCreated(e *Event) {
	s.Version, s.Params, s.Origin, s.Traced, s.CreatedAt = e.Version, e.Params, e.Origin, e.Traced, e.At
	s.Status, s.begunApart = TaskPending, e.BegunApart()
	s.applyPermitsAsked(e)
	if s.Plan.TimeoutMS > 0 {
		s.Deadline = e.At + s.Plan.TimeoutMS
	}
	s.Root = &Scope{}
	s.linkPart().linkRoot()
	s.Root.mode.beginScope(s.Root)
}

// applyEnded marks the task as ended. The rest of the state stays for later readers and for a
// retry.
func (s evolveState) applyEnded(e *Event) {
	s.Status, s.Error, s.EndedAt = TaskStatus(e.Status), e.Error, e.At
	s.waiting = nil
	s.waits.endAll(e.At)
	if s.Status == TaskCanceled {
		s.Root.Cursor, s.Root.LastAction = "", "canceled"
	}
}

// setShared sets a key of shared. All writes must use it, because it counts the bytes of shared.
func (sc *Scope) setShared(key string, v json.RawMessage) {
	if sc.Shared == nil {
		sc.Shared = map[string]json.RawMessage{}
	}
	v = orNull(v)
	*sc.size += sc.sharedGrowth(key, v)
	sc.Shared[key] = v
}

// sharedGrowth returns by how many bytes shared grows when the key is set.
func (sc *Scope) sharedGrowth(key string, v json.RawMessage) int {
	if old, there := sc.Shared[key]; there {
		return len(v) - len(old)
	}
	return len(key) + len(v)
}

// applyEntered activates a step of a node. The step gets the results that the last visit left for
// it.
func (s evolveState) applyEntered(e *Event) {
	sc := s.scopes[e.Scope]
	if sc == nil || sc.Plan.Nodes[e.Node] == nil {
		return
	}
	if s.Status != TaskCanceling {
		s.Status = TaskRunning
	}
	n := sc.Plan.Nodes[e.Node]
	st := &Step{Key: n.Key, Node: n, Visit: e.Visit, Since: e.Since, EnteredAt: e.At, Due: e.Due,
		scope: sc, Params: sc.mode.stepParams(sc, n), Input: e.Input,
		StartAt: e.Until, Initial: e.Total}
	if e.InputRef != "" {
		st.Input = sc.resolveText(e.InputRef, st.Params)
	}
	st.Params, _ = sc.withControls(n, st.Params, st.Input)
	if e.Total > 0 {
		st.Units = make([]Unit, e.Total)
	}
	st.unfoldUnits()
	kept := sc.mode.keptResults(sc, n)
	sc.mode.activateStep(sc, st)
	if kept != nil && e.Since > 0 {
		st.OwnKeys = kept.ownKeys(st.Visit)
	}
	if kept != nil && e.Kept > 0 {
		st.applyKept(kept)
	}
	s.addWaiting(st)
	s.takeSignal(st)
	if n.Kind == KindSubflow && n.Sub != nil {
		s.beginChild(st)
	}
}

// beginChild gives the step of a subflow its scope: a new one, or that of its last visit.
func (s evolveState) beginChild(st *Step) {
	path := childScope(st.scope.Path, st.Key, st.Visit)
	if st.Child != nil {
		st.Child.Path = path
		s.linkPart().linkChild(st)
		st.Child.reopenFailed(nil)
		return
	}
	st.Child = &Scope{Path: path}
	s.linkPart().linkChild(st)
	st.Child.mode.beginScope(st.Child)
}

// addWaiting adds a step to the waiting steps, in the order of the definition. The order of their
// starts is not part of a snapshot. The effect of a signal must not depend on whether the state was
// read from a snapshot.
func (s evolveState) addWaiting(st *Step) {
	if st.Node.Kind == KindWaitEvent || st.Node.Kind == KindApproval {
		at, _ := slices.BinarySearchFunc(s.waiting, st, comparePlaces)
		s.waiting = slices.Insert(s.waiting, at, st)
	}
	if kind := st.Node.waitKind(); kind != 0 {
		s.waits.addStep(st, kind)
	}
}

// forgetStep drops the data that the state holds about an ended step, and everything below it,
// except the step itself.
func (s evolveState) forgetStep(st *Step, at int64) {
	if i := slices.Index(s.waiting, st); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.waits.removeStep(st, at)
	s.undoPart().keepUnitsForUndo(st, nil)
	if st.Child != nil {
		s.forgetScope(st.Child, at)
	}
}

// forgetScope drops the data that the state holds about an ended scope. It does not change the
// scope's content, because readers may still use it.
func (s evolveState) forgetScope(sc *Scope, at int64) {
	delete(s.scopes, sc.Path)
	sc.overAt = at
	for _, below := range sc.Active() {
		s.forgetStep(below, at)
	}
}

// postOutput writes the output of a step into the shared state of its scope.
func (sc *Scope) postOutput(st *Step, e *Event, result json.RawMessage) {
	set := sc.setShared
	if len(e.Input) > 0 {
		set = func(key string, v json.RawMessage) { sc.setShared(key, referenceOr(e, key, v)) }
	}
	st.eachPost(result, set)
}

// eachPost calls set for each key of shared that the result of the step sets.
func (st *Step) eachPost(result json.RawMessage, set func(key string, v json.RawMessage)) {
	if parts := st.Node.Post.OutputMap; st.Node.Kind == KindExecutor && len(parts) > 0 {
		if opened := st.scope.openValue(result); expr.KindOf(opened) == expr.KindObject {
			for to, from := range parts {
				v, _ := expr.Field(opened, from)
				set(to, orNull(v))
			}
		}
	}
	if key := st.Node.Post.OutputKey; key != "" {
		set(key, orNull(result))
	}
}

// stepResult returns the output of a step. It takes the output from the event only if it cannot be
// recomputed.
func (st *Step) stepResult(e *Event) json.RawMessage {
	if st.Node.Single {
		return st.Units[0].Output
	}
	switch st.Node.Kind {
	case KindParallel, KindForeach, KindFanout:
		return st.unitOutputs()
	case KindSubflow:
		if st.Child != nil {
			return st.Child.Output()
		}
		return null
	case KindChoice, KindTimer:
		return st.Input
	default:
		return e.Output
	}
}

// unitOutputs returns the list of the units' outputs in order, with null for a missing output.
func (st *Step) unitOutputs() json.RawMessage {
	size := 2
	for i := range st.Units {
		size += max(len(st.Units[i].Output), len(null)) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i := range st.Units {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, orNull(st.Units[i].Output)...)
	}
	return append(b, ']')
}

// applyStarted starts attempts for a range of units.
func (s evolveState) applyStarted(e *Event) {
	st := s.activeStep(e.Address())
	if st == nil || e.Unit < 0 || e.Total < 1 || e.Unit+e.Total > len(st.Units) {
		return
	}
	list := decodePermits(e)
	for i := e.Unit; i < e.Unit+e.Total; i++ {
		u := &st.Units[i]
		u.Status, u.Attempt, u.RetryAt = UnitPending, int32(e.Attempt), 0
		u.Live = &Live{StartedAt: e.At}
		u.Live.Vars = st.sharedVars(i)
		if list != nil {
			u.Live.Permits = &Permits{List: list, AskedAt: e.At}
			continue
		}
		st.startAttempt(u, i, e)
	}
	st.Flying += e.Total
	s.trackManual(st)
	// before StartAt, a direct unit that is finished does not count as the start of the step
	for st.StartAt <= e.At && st.Next < len(st.Units) && st.Units[st.Next].Attempt > 0 {
		st.Next++
	}
	if i := slices.Index(st.Retrying, e.Unit); e.Attempt > 1 && i >= 0 {
		st.Retrying = slices.Delete(st.Retrying, i, i+1)
	}
}

// startAttempt makes an attempt available to its carrier.
func (st *Step) startAttempt(u *Unit, i int, e *Event) {
	u.Status = UnitDispatched
	u.Live.StartedAt, u.Live.Due = e.At, e.Due
	x := st.unitExec(i)
	if x.StartMS > 0 && !x.ByFiles() {
		u.Live.StartBy = e.At + x.StartMS
	}
	switch x.Type {
	case ExecQueue:
	case ExecDirect:
		st.manualUnits++
	default:
		u.Live.Carrier = e.Carrier
	}
}

// applyAppended adds units with the appended items to a fanout.
func (s evolveState) applyAppended(e *Event) {
	st := s.activeStep(e.Address())
	items, _ := expr.Elements(e.Input)
	if st == nil || len(items) == 0 {
		return
	}
	from := len(st.Units)
	st.Units = append(st.Units, make([]Unit, len(items))...)
	st.Extra = append(st.Extra, items...)
	if kept := st.scope.mode.keptResults(st.scope, st.Node); kept != nil {
		st.takeResults(kept.Units, from)
		st.scope.mode.setKept(st.scope, st.Node, nil)
	}
}

// applyAttemptEvent applies an event to an attempt in flight.
func (st *Step) applyAttemptEvent(u *Unit, e *Event) {
	switch e.Type {
	case AttemptClaimed:
		u.Status = UnitRunning
		u.Live.Worker, u.Live.Token, u.Live.ClaimedAt, u.Live.Until = e.Worker, e.Token, e.At, e.Until
		if e.Due > 0 {
			u.Live.Due = e.Due
		}
	case AttemptStarted:
		u.Status = UnitRunning
		u.Live.Heard = e.Until > 0
	case AttemptExtended:
		u.Live.Until = e.Until
	case AttemptStatusChanged:
		u.Live.Note = e.Note
	case AttemptRequeued:
		u.Status = UnitDispatched
		u.Live.Worker, u.Live.ClaimedAt, u.Live.Until, u.Live.Note = "", 0, 0, ""
		u.Live.Carrier, u.Live.Held, u.Live.Undoes = e.Carrier, "", u.Live.Undoes || e.Reason == ReasonUndo
		u.Live.Deliveries, u.Live.Again = e.Total, e.Reason != ReasonWaited
		u.Live.Given, u.Live.Brought = u.Live.Given+1, 0
		if x := st.unitExec(e.Unit); x.FromClaim {
			u.Live.Due = 0
			if x.StartMS > 0 {
				u.Live.StartBy = e.At + x.StartMS
			}
		}
	case AttemptMoved:
		u.Live.Carrier = e.Carrier
		u.Live.Given++
		if u.Live.Brought++; e.Worker == "" {
			u.Live.Brought = 0
		}
	case AttemptDeferred:
		u.waitOutside(e)
	case ExternalJobEnded:
		u.Live.Outside.noteEnded(e)
	case AttemptHeld:
		u.Live.Carrier, u.Live.Held = "", e.Error
	case AttemptEnded:
		st.applyAttemptEnded(u, e)
	}
}

// applyAttemptEnded ends the attempt of a unit. The unit is over, or waits for its retry.
func (st *Step) applyAttemptEnded(u *Unit, e *Event) {
	if st.manualUnits > 0 && st.isManual(u, e.Unit) {
		st.manualUnits--
	}
	u.Live = nil
	st.Flying--
	switch {
	case e.Status == string(AttemptOK):
		u.Status, u.Output, u.Error = UnitCompleted, e.Output, nil
		st.Done++
		st.size += len(e.Output)
	case e.Status == string(AttemptCanceled):
		u.Status = UnitCanceled
	case e.Due > 0:
		u.Status, u.Error, u.RetryAt = UnitPending, &Failure{e.Error, e.Details}, e.Due
		st.retryLater(e.Unit, e.Due)
	default:
		u.Status, u.Error = UnitFailed, &Failure{e.Error, e.Details}
		st.Done++
		st.Failures++
		st.TimedOut = e.Status == string(AttemptTimeout)
	}
}

// retryLater inserts a unit into Retrying, which is ordered by time. With equal delays the unit is
// simply appended.
func (st *Step) retryLater(unit int, at int64) {
	i := len(st.Retrying)
	for i > 0 && st.Units[st.Retrying[i-1]].RetryAt > at {
		i--
	}
	st.Retrying = slices.Insert(st.Retrying, i, unit)
}

// unitExec returns the Exec of a unit: the Exec of its branch or item, or else of the node.
func (st *Step) unitExec(unit int) *Exec {
	switch st.Node.Kind {
	case KindParallel:
		if unit < len(st.common.execs) {
			return &st.common.execs[unit]
		}
	case KindForeach:
		if _, own := st.Node.Each.Items[unit]; own {
			x := st.Node.Each.Items[unit]
			return &x
		}
	}
	return &st.Node.Exec
}
