package flow

import (
	"bytes"
	"slices"
	"strconv"
)

// appendEffects adds the effects of an event, which are carried out after the event is stored. The
// state must include the event. Withdrawals at the end of a step are decided earlier, while the
// step still exists.
func appendEffects(effects []Effect, s *State, e *Event) []Effect {
	switch e.Type {
	case StepEntered:
		return s.owedPart().appendEntered(effects, e)
	case StepEnded:
		// Every Spawn needs a Prune. A node that ended without having begun was never spawned.
		if sc := s.scopes[e.Scope]; sc != nil && sc.Plan.Nodes[e.Node].isComposite() && sc.hasBegun(e.Node) {
			effects = append(effects, Prune{e.stepAddress()})
		}
	case AttemptsDispatched:
		st := s.activeStep(e.Address())
		for i := e.Unit; st != nil && i < e.Unit+e.Total; i++ {
			effects = st.appendOwed(effects, s, i)
		}
	case PermitGranted:
		return s.owedPart().appendGranted(effects, e)
	case TaskCreated, TaskRetried:
		return s.owedPart().appendAsk(effects)
	case AttemptRequeued, AttemptMoved:
		return s.owedPart().appendRedispatch(effects, e)
	case AttemptClaimed, AttemptExtended:
		return appendHeld(effects, e)
	case AttemptDeferred:
		return s.owedPart().appendTrack(effects, e)
	case ExternalJobEnded:
		return append(effects, Untrack{e.Address(), e.Index})
	case TaskResumed:
		return s.actingScope().appendDelays(effects, s)
	case TaskEnded:
		return append(s.Permits.appendReleases(effects, s.owedPart().holderAddress()), Ended{TaskStatus(e.Status)})
	}
	return effects
}

// appendEntered spawns the actor of a composite step and sets the alarm of a delayed one.
func (s owedState) appendEntered(effects []Effect, e *Event) []Effect {
	if st := s.activeStep(e.Address()); st != nil && st.Node.isComposite() {
		effects = append(effects, Spawn{st.Address()})
	}
	if e.Until > e.At {
		effects = append(effects, Alarm{At: e.Until, Address: e.stepAddress(), Kind: AlarmStart})
	}
	return effects
}

// appendGranted continues the holder of a new permit.
func (s owedState) appendGranted(effects []Effect, e *Event) []Effect {
	if e.Node == "" {
		return s.appendAsk(s.Permits.appendGot(effects, e.Address()))
	}
	if st, u := s.findAttempt(e.Address()); u != nil {
		effects = st.appendOwed(u.Live.Permits.appendGot(effects, e.Address()), s.State, e.Unit)
	}
	return effects
}

// appendRedispatch dispatches an attempt again. The carrier does not have it, or has lost it.
func (s owedState) appendRedispatch(effects []Effect, e *Event) []Effect {
	st, u := s.findAttempt(e.Address())
	if u == nil || st.lacksVariable(e.Unit) {
		return effects
	}
	effects = append(effects, Dispatch{st.unitJob(s.State, e.Unit)})
	if e.Type == AttemptRequeued && u.Live.StartBy > 0 {
		effects = append(effects, Alarm{At: u.Live.StartBy, Address: e.Address(), Kind: AlarmUnclaimed})
	}
	return effects
}

// appendHeld sets the alarms for the end of a claim and for the timeout of its attempt.
func appendHeld(effects []Effect, e *Event) []Effect {
	effects = append(effects, Alarm{At: e.Until, Address: e.Address(), Kind: AlarmClaim})
	if e.Due > 0 {
		effects = append(effects, Alarm{At: e.Due, Address: e.Address(), Kind: AlarmAttempt})
	}
	return effects
}

// isComposite reports whether a node has units or a scope that an actor of their own carries.
func (n *PlanNode) isComposite() bool {
	return n.Kind == KindParallel || n.Kind == KindForeach || n.Kind == KindSubflow || n.Kind == KindFanout
}

// hasBegun reports whether an ended node had begun. A node of a dag may be skipped or fail before
// it begins.
func (sc *Scope) hasBegun(node string) bool {
	n := sc.mode.nodeState(sc, sc.Plan.Nodes[node])
	return n == nil || n.StartedAt != 0
}

// appendOwed adds the effects that are due for a unit with an attempt in flight. These are the
// dispatch of its job, or the alarm of its claim, and the alarm of its timeout.
func (st *Step) appendOwed(effects []Effect, s *State, i int) []Effect {
	u := &st.Units[i]
	if u.Live == nil {
		return effects
	}
	a := st.Address()
	a.Unit, a.Attempt = i, int(u.Attempt)
	switch {
	case u.Live.Permits.Waits():
		return append(effects, Ask{Address: a, Permit: *u.Live.Permits.Next(), AskedAt: u.Live.Permits.AskedAt, Turn: st.unitTurn(s, i)})
	case u.Live.Outside != nil:
	case u.Live.Worker != "":
		effects = append(effects, Alarm{At: u.Live.Until, Address: a, Kind: AlarmClaim})
	case st.isDispatched(i) && s.isDraining() && u.Status != UnitRunning && !u.Live.Undoes:
		effects = append(effects, Reclaim{st.unitJob(s, i)})
	case st.isDispatched(i):
		effects = append(effects, Dispatch{st.unitJob(s, i)})
	}
	if u.Live.Due > 0 {
		effects = append(effects, Alarm{At: u.Live.Due, Address: a, Kind: AlarmAttempt})
	}
	if u.Live.StartBy > 0 && u.Live.Worker == "" {
		effects = append(effects, Alarm{At: u.Live.StartBy, Address: a, Kind: AlarmUnclaimed})
	}
	return effects
}

// isDispatched reports whether the job of an attempt in flight is offered to carriers and not
// claimed yet.
func (st *Step) isDispatched(i int) bool {
	l := st.Units[i].Live
	return l.isDeliverable() && l.Worker == "" && st.unitExec(i).Type != ExecDirect && !st.lacksVariable(i)
}

// unitJob returns the job of an attempt in flight. If its values are unavailable, Lacks names
// the reason.
func (st *Step) unitJob(s *State, i int) Job {
	if st.scope.Plan.contents == nil {
		return st.buildJob(s, i)
	}
	before := st.scope.lost.takeError()
	j := st.buildJob(s, i)
	if err := st.scope.lost.takeError(); err != nil {
		j.Lacks = err.Error()
	}
	st.scope.lost.noteError(before)
	return j
}

func (st *Step) buildJob(s *State, i int) Job {
	u := &st.Units[i]
	a := st.Address()
	a.Unit, a.Attempt = i, int(u.Attempt)
	exec := st.unitExec(i)
	j := Job{Task: s.Task, Address: a, Since: st.originUnit(i), Plan: s.Plan, Traced: s.Traced,
		Run: s.Params, Exec: exec, Input: st.unitInput(i), Params: mergeParams(st, exec),
		Single: st.Node.Single, Units: len(st.Units), Branch: st.UnitName(i),
		TimeoutMS: st.Node.TimeoutMS, EnqueuedAt: u.Live.StartedAt, Until: u.Live.Until,
		Carrier:    u.Live.Carrier,
		Deliveries: u.Live.Deliveries, Given: u.Live.Given, Again: u.Live.mayKillCarrier(exec) || exec.Type.Started()}
	if d := st.Node.Dag; d != nil && d.Items != nil && (d.Repeats > 0 || d.Count != nil) && len(st.common.items) > 0 && i < st.Initial {
		j.PerItem = st.Initial / len(st.common.items)
	}
	if exec.Type == ExecQueue {
		j.Turn = st.unitTurn(s, i)
	}
	if len(exec.Vars) > 0 {
		st.fillIn(&j)
	}
	if exec.Type == ExecCode {
		j.Function = &FunctionCall{Steps: slices.Clip(st.scope.Function.Steps), Undoes: u.Live.Undoes}
	}
	return j
}

// mayKillCarrier reports whether an attempt may be the cause of its carriers' deaths. The begin of
// such an attempt is stored.
//
// An attempt that was returned only once does not count. When a member is killed, nearly all its
// attempts go on well elsewhere, and one more commit for each would take a third of the whole work.
func (l *Live) mayKillCarrier(x *Exec) bool {
	return l.Again && (l.Given > 1 || l.Deliveries > 0 || x.Type == ExecQueue || x.Type.Adopted())
}

// Job returns the attempt in flight at an address as a job, or false if it is over.
func (s *State) Job(a Address) (j Job, ok bool) {
	st, u := s.findAttempt(a)
	if u == nil || s.Status.Ended() || !u.Live.isDeliverable() {
		return Job{}, false
	}
	return st.unitJob(s, a.Unit), true
}

// Outstanding returns all effects that are due for a task, after a crash or when an idle task
// becomes active again.
func Outstanding(s *State) []Effect {
	if s.Status.Ended() || s.Status == "" {
		return nil
	}
	var effects []Effect
	if s.Deadline > 0 {
		effects = append(effects, Alarm{At: s.Deadline, Kind: AlarmTask})
	}
	return s.actingScope().appendOutstanding(s.owedPart().appendAsk(effects), s)
}

func (sc *Scope) appendOutstanding(effects []Effect, s *State) []Effect {
	active := sc.Active()
	for _, st := range active {
		effects = st.appendOutstanding(effects, s)
	}
	if len(active) == 0 {
		return sc.appendDelays(effects, s)
	}
	return effects
}

// appendDelays adds the alarms of delayed starts. While a pause holds starts back, it adds none, so
// that the task is not woken.
func (sc *Scope) appendDelays(effects []Effect, s *State) []Effect {
	if s.holdsStartedSteps() {
		return effects
	}
	active := sc.Active()
	for _, st := range active {
		if st.Child != nil {
			effects = st.Child.appendDelays(effects, s)
		} else {
			effects = st.appendStart(effects, s)
		}
	}
	switch {
	case len(active) > 0 || s.isCanceling() || s.Paused():
	case sc.EnterAt > 0:
		return append(effects, Alarm{At: sc.EnterAt, Address: Address{Scope: sc.Path, Node: sc.Cursor}, Kind: AlarmEnter})
	}
	return effects
}

// appendStart adds the alarm for the start of the units of a delayed step.
func (st *Step) appendStart(effects []Effect, s *State) []Effect {
	if st.StartAt > 0 && st.Next == 0 && !s.isCanceling() {
		effects = append(effects, Alarm{At: st.StartAt, Address: st.Address(), Kind: AlarmStart})
	}
	return effects
}

// retryAlarm returns the alarm for the earliest retry of a unit. startUnits sets this alarm.
func (st *Step) retryAlarm() Alarm {
	a := st.Address()
	a.Unit = st.Retrying[0]
	a.Attempt = int(st.Units[a.Unit].Attempt)
	return Alarm{At: st.Units[a.Unit].RetryAt, Address: a, Kind: AlarmRetry}
}

// appendOutstanding adds the effects that are due for a step and everything below it.
func (st *Step) appendOutstanding(effects []Effect, s *State) []Effect {
	if st.Node.isComposite() {
		effects = append(effects, Spawn{st.Address()})
	}
	if due := s.dueOf(st); due > 0 {
		effects = append(effects, Alarm{At: due, Address: st.Address(), Kind: AlarmStep})
	}
	for i := 0; st.Flying > 0 && i < st.Next; i++ {
		effects = st.appendOwed(effects, s, i)
	}
	if !s.holdsStartedSteps() {
		effects = st.appendStart(effects, s)
		// while the window is full, the retry waits for a place and needs no alarm
		if len(st.Retrying) > 0 && !s.isDraining() && st.Flying < st.unitWindow(s.Plan) {
			effects = append(effects, st.retryAlarm())
		}
	}
	if st.Child != nil {
		return st.Child.appendOutstanding(effects, s)
	}
	return effects
}

// OutstandingTo returns the part of Outstanding that a member may carry out at once. An attempt of
// another carrier is dispatched only after Recover has taken it over.
func OutstandingTo(s *State, member string) []Effect {
	return keepCarriedBy(Outstanding(s), member)
}

// keepCarriedBy removes the jobs of carriers that are not in the list.
func keepCarriedBy(effects []Effect, carriers ...string) []Effect {
	return slices.DeleteFunc(effects, func(e Effect) bool {
		job := JobOf(e)
		return job != nil && job.Carrier != "" && !slices.Contains(carriers, job.Carrier)
	})
}

// OutstandingOf returns the effects that are due for one step and everything below it, for the
// given carriers: the member itself, and other live members, which may not know of their jobs. The
// first effect is the Spawn of the step. It returns nil if the step is not active.
func OutstandingOf(s *State, a Address, carriers ...string) []Effect {
	st := s.activeStep(a)
	if st == nil || s.Status.Ended() {
		return nil
	}
	return keepCarriedBy(st.appendOutstanding(nil, s), carriers...)
}

// unitTurn returns a text that orders the job of a unit among jobs enqueued at the same time. The
// order is by the start of the task, then by the position of the step in the definition, then by
// the index of the unit. A scope in graph mode has only one active step.
func (st *Step) unitTurn(s *State, unit int) string {
	b := st.appendPlace(append(s.owedPart().appendTurn(make([]byte, 0, 64)), '.'))
	return string(appendOrdered(b, int64(unit)))
}

// taskTurn returns a text that orders tasks by their start.
func (s owedState) taskTurn() string { return string(s.appendTurn(nil)) }

func (s owedState) appendTurn(b []byte) []byte {
	return append(appendOrdered(b, s.CreatedAt), s.Task...)
}

// appendPlace adds the position of a step in the definition, from the root on.
func (st *Step) appendPlace(b []byte) []byte {
	if st.scope.parent != nil {
		b = st.scope.parent.appendPlace(b)
	}
	if st.Node.Dag != nil {
		b = appendOrdered(b, int64(st.Node.Dag.Index))
	}
	return b
}

// comparePlaces compares the positions of two steps in the definition.
func comparePlaces(a, b *Step) int { return bytes.Compare(a.appendPlace(nil), b.appendPlace(nil)) }

// appendOrdered writes a non-negative number so that texts sort like numbers: the number of digits
// comes first.
func appendOrdered(b []byte, n int64) []byte {
	at := len(b)
	b = strconv.AppendInt(append(b, 0), n, 36)
	b[at] = '0' + byte(len(b)-at-1)
	return b
}
