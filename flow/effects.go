package flow

import (
	"bytes"
	"slices"
	"strconv"
)

// appendEffects adds what an event asks of the world once it is stored. The state is the one
// after the event. What a step's end withdraws is decided while the step is still there.
func appendEffects(effects []Effect, s *State, e *Event) []Effect {
	switch e.Type {
	case StepEntered:
		return s.appendEntered(effects, e)
	case StepEnded:
		// What was spawned is pruned. A node that was decided about without having begun was never
		// spawned.
		if sc := s.scopes[e.Scope]; sc != nil && sc.Plan.Nodes[e.Node].isComposite() && sc.hasBegun(e.Node) {
			effects = append(effects, Prune{e.stepAddress()})
		}
	case AttemptsStarted:
		st := s.activeStep(e.Address())
		for i := e.Unit; st != nil && i < e.Unit+e.Total; i++ {
			effects = st.appendOwed(effects, s, i)
		}
	case PermitGranted:
		return s.appendGranted(effects, e)
	case TaskCreated, TaskRetried:
		return s.appendAsk(effects)
	case AttemptReturned, AttemptPassed:
		return s.appendRedispatch(effects, e)
	case AttemptClaimed, AttemptExtended:
		return appendHeld(effects, e)
	case AttemptDeferred:
		return s.appendTrack(effects, e)
	case ExternalOver:
		return append(effects, Untrack{e.Address(), e.Index})
	case TaskResumed:
		return s.actingScope().appendDelays(effects, s)
	case TaskEnded:
		return append(s.Permits.appendReleases(effects, s.holderAddress()), Ended{TaskStatus(e.Status)})
	}
	return effects
}

// appendEntered has a step with an actor get it, and a delayed one wake up.
func (s *State) appendEntered(effects []Effect, e *Event) []Effect {
	if st := s.activeStep(e.Address()); st != nil && st.Node.isComposite() {
		effects = append(effects, Spawn{st.Address()})
	}
	if e.Until > e.At {
		effects = append(effects, Alarm{At: e.Until, Address: e.stepAddress(), Kind: AlarmStart})
	}
	return effects
}

// appendGranted lets who has been given a key go on.
func (s *State) appendGranted(effects []Effect, e *Event) []Effect {
	if e.Node == "" {
		return s.appendAsk(s.Permits.appendGot(effects, e.Address()))
	}
	if st, u := s.findAttempt(e.Address()); u != nil {
		effects = st.appendOwed(u.Live.Permits.appendGot(effects, e.Address()), s, e.Unit)
	}
	return effects
}

// appendRedispatch gives out once more an attempt that its carrier has not, or no longer.
func (s *State) appendRedispatch(effects []Effect, e *Event) []Effect {
	st, u := s.findAttempt(e.Address())
	if u == nil || st.lacksVariable(e.Unit) {
		return effects
	}
	effects = append(effects, Dispatch{st.unitJob(s, e.Unit)})
	if e.Type == AttemptReturned && u.Live.StartBy > 0 {
		effects = append(effects, Alarm{At: u.Live.StartBy, Address: e.Address(), Kind: AlarmUnclaimed})
	}
	return effects
}

// appendHeld watches over a claim, and over its attempt's deadline.
func appendHeld(effects []Effect, e *Event) []Effect {
	effects = append(effects, Alarm{At: e.Until, Address: e.Address(), Kind: AlarmClaim})
	if e.Due > 0 {
		effects = append(effects, Alarm{At: e.Due, Address: e.Address(), Kind: AlarmAttempt})
	}
	return effects
}

// isComposite nodes have units or a scope that are carried apart from the task itself.
func (n *PlanNode) isComposite() bool {
	return n.Kind == KindParallel || n.Kind == KindForeach || n.Kind == KindSubflow || n.Kind == KindFanout
}

// hasBegun reports whether a node that has ended had begun: in a dag it may have been skipped, or
// have failed, before that.
func (sc *Scope) hasBegun(node string) bool {
	n := sc.mode.nodeState(sc, sc.Plan.Nodes[node])
	return n == nil || n.StartedAt != 0
}

// appendOwed adds what is owed to a unit with an attempt in flight: its job to whoever can carry
// it, or an eye on the one who claimed it; and its timeout.
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
	case st.isDispatched(i) && s.isDraining() && u.Status != UnitRunning:
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

// isDispatched reports whether the job of a unit's attempt in flight is for somebody to carry out
// who has not claimed it.
func (st *Step) isDispatched(i int) bool {
	l := st.Units[i].Live
	return !l.Permits.Waits() && l.Outside == nil && l.Worker == "" && st.unitExec(i).Type != ExecDirect && !st.lacksVariable(i)
}

// unitJob of a unit's attempt in flight. One whose values cannot be had says so to whoever is to
// carry it out.
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
	j := Job{Task: s.Task, Address: a, Since: st.originUnit(i), Plan: s.Plan, Traced: s.Traced, Run: s.Params, Exec: exec, Input: st.unitInput(i), Params: mergeParams(st, exec),
		Single: st.Node.Single, Units: len(st.Units), Branch: st.UnitName(i), TimeoutMS: st.Node.TimeoutMS, EnqueuedAt: u.Live.StartedAt, Until: u.Live.Until, Carrier: u.Live.Carrier,
		Deliveries: u.Live.Deliveries, Given: u.Live.Given, Again: u.Live.mayKillCarrier(exec) || exec.Type.Started()}
	if d := st.Node.Dag; d != nil && d.Items != nil && (d.Repeats > 0 || d.Count != nil) && len(st.items) > 0 && i < st.Initial {
		j.PerItem = st.Initial / len(st.items)
	}
	if exec.Type == ExecQueue {
		j.Turn = st.unitTurn(s, i)
	}
	if len(exec.Vars) > 0 {
		st.fillIn(&j)
	}
	return j
}

// mayKillCarrier reports whether an attempt may be what its carriers die of, so that it is stored
// when the next one begins. What was returned only once is none: when a member is killed nearly all
// that was under way there goes on well, and one more commit for each would be a third of what that
// takes.
func (l *Live) mayKillCarrier(x *Exec) bool {
	return l.Again && (l.Given > 1 || l.Deliveries > 0 || x.Type == ExecQueue || x.Type.Adopted())
}

// Job is the attempt in flight at an address as a job; ok is false when it is over.
func (s *State) Job(a Address) (j Job, ok bool) {
	st, u := s.findAttempt(a)
	if u == nil || s.Status.Ended() || !u.Live.isDeliverable() {
		return Job{}, false
	}
	return st.unitJob(s, a.Unit), true
}

// Outstanding is everything the world owes a task: after a crash, and when a task comes back from
// rest.
func Outstanding(s *State) []Effect {
	if s.Status.Ended() || s.Status == "" {
		return nil
	}
	var effects []Effect
	if s.Deadline > 0 {
		effects = append(effects, Alarm{At: s.Deadline, Kind: AlarmTask})
	}
	return s.actingScope().appendOutstanding(s.appendAsk(effects), s)
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

// appendDelays adds what may start at a later time. What a pause holds back does not wake the task.
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

// appendStart adds when the units of a delayed step may start.
func (st *Step) appendStart(effects []Effect, s *State) []Effect {
	if st.StartAt > 0 && st.Next == 0 && !s.isCanceling() {
		effects = append(effects, Alarm{At: st.StartAt, Address: st.Address(), Kind: AlarmStart})
	}
	return effects
}

// retryAlarm is that of the unit which is to be tried again first. Whoever fills the step sets it.
func (st *Step) retryAlarm() Alarm {
	a := st.Address()
	a.Unit = st.Retrying[0]
	a.Attempt = int(st.Units[a.Unit].Attempt)
	return Alarm{At: st.Units[a.Unit].RetryAt, Address: a, Kind: AlarmRetry}
}

// appendOutstanding adds what is owed to a step and everything below it.
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
		if len(st.Retrying) > 0 && !s.isDraining() && st.Flying < st.unitWindow(s.Plan) { // in a full window it waits for a place, not for its time
			effects = append(effects, st.retryAlarm())
		}
	}
	if st.Child != nil {
		return st.Child.appendOutstanding(effects, s)
	}
	return effects
}

// OutstandingTo is Outstanding as far as a member may act on it at once: an attempt that another
// one carried is dispatched only after Recover has taken it over.
func OutstandingTo(s *State, member string) []Effect {
	return keepCarriedBy(Outstanding(s), member)
}

// keepCarriedBy leaves out what others carry.
func keepCarriedBy(effects []Effect, carriers ...string) []Effect {
	return slices.DeleteFunc(effects, func(e Effect) bool {
		job := JobOf(e)
		return job != nil && job.Carrier != "" && !slices.Contains(carriers, job.Carrier)
	})
}

// OutstandingOf is what is owed to one step and what is below it, as far as it is with some
// carriers: the member itself, and the others that live, who may not have heard of it. The first is
// that it has begun, if it is still active.
func OutstandingOf(s *State, a Address, carriers ...string) []Effect {
	st := s.activeStep(a)
	if st == nil || s.Status.Ended() {
		return nil
	}
	return keepCarriedBy(st.appendOutstanding(nil, s), carriers...)
}

// unitTurn orders a unit's job among those that were enqueued at the same time, as a text: by the
// start of their task, then by the definition's order of their steps, then by the units' index. Of
// graph mode only one step of a scope is active at a time.
func (st *Step) unitTurn(s *State, unit int) string {
	b := st.appendPlace(append(s.appendTurn(make([]byte, 0, 64)), '.'))
	return string(appendOrdered(b, int64(unit)))
}

// taskTurn orders tasks by their start.
func (s *State) taskTurn() string { return string(s.appendTurn(nil)) }

func (s *State) appendTurn(b []byte) []byte {
	return append(appendOrdered(b, s.CreatedAt), s.Task...)
}

// appendPlace adds where a step is in the definition, from the root on.
func (st *Step) appendPlace(b []byte) []byte {
	if st.scope.parent != nil {
		b = st.scope.parent.appendPlace(b)
	}
	if st.Node.Dag != nil {
		b = appendOrdered(b, int64(st.Node.Dag.Index))
	}
	return b
}

// comparePlaces orders steps by where they are in the definition.
func comparePlaces(a, b *Step) int { return bytes.Compare(a.appendPlace(nil), b.appendPlace(nil)) }

// appendOrdered writes a number that is not negative so that texts have the order of numbers: how
// many digits there are comes first.
func appendOrdered(b []byte, n int64) []byte {
	at := len(b)
	b = strconv.AppendInt(append(b, 0), n, 36)
	b[at] = '0' + byte(len(b)-at-1)
	return b
}
