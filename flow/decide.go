package flow

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ErrOver rejects a claim, begin, inquiry, heartbeat, note or bring for an attempt that is no
// longer in flight.
var ErrOver = &Error{Conflict, "the attempt is over or was never started: nobody waits for it any longer"}

// decider makes one decision: it emits events, evolves the state by them and collects their
// effects.
type decider struct {
	s              *State
	env            Env
	limits         Limits
	events         []Event
	effects        []Effect
	expectedEvents int            // expected number of events, a guess
	effort         int            // work units of conditions and expressions
	pending        []pendingStart // places where work may be able to start
	// unfilled lists attempts that must fail, because their variables cannot be filled in.
	unfilled        []Address
	tallies         []Tally
	approvals       approvalLog
	startedAttempts int     // number of started attempts
	restarts        bool    // the function whose report is handled restarts
	attemptsCapped  bool    // Env.Most left nodes of a dag unstarted
	continuation    Command // continues work that did not fit into this decision
}

// pendingStart is a step with units that may start, or a scope in which a step may start.
type pendingStart struct {
	sc *Scope
	st *Step // nil for the scope itself
}

// Decide returns the events and effects of a command, and applies the events to the state. An error
// means that nothing happened, unless it is a SpoiledError. A request that already had its effect
// has no further one.
func Decide(s *State, c Command, env Env) (Decision, error) {
	if err := checkRequest(env.Request); err != nil {
		return Decision{}, err
	}
	if env.Request != "" && s.Answered(env.Request) {
		return Decision{}, nil
	}
	d := &decider{s: s, env: env, limits: env.Limits.OrDefault(), events: env.Buffer[:0], expectedEvents: 2}
	s.waits.log = &d.approvals
	s.lost.takeError() // discards errors of earlier reads
	defer func() { s.waits.log = nil }()
	if err := d.handleCommand(c); err != nil {
		return Decision{}, err
	}
	more := d.startPending()
	if s.CancelAt != 0 && !more {
		d.taskPart().afterCancel()
		more = d.startPending()
	}
	if (more || d.attemptsCapped && !s.Status.Ended()) && d.continuation == nil {
		d.continuation = Proceed{}
	}
	if err := s.Lost(); err != nil {
		return Decision{}, &SpoiledError{err}
	}
	return Decision{Events: d.events, Effects: d.effects, Tallies: d.tallies,
		Started: d.startedAttempts, Approvals: MergeApprovals(nil, d.approvals.changes...),
		Effort: d.effort, More: d.continuation}, nil
}

// handleCommand decides about the command alone. startPending then starts the work that the command
// made possible.
func (d *decider) handleCommand(c Command) error {
	if start, ok := c.(Start); ok {
		return d.taskPart().startTask(start)
	}
	if d.s.Status == "" {
		return Errorf(NotFound, "task %s has not been started", d.s.Task)
	}
	switch c := c.(type) {
	case Signal:
		return d.signalPart().signalTask(c)
	case Answer:
		return d.signalPart().answerApproval(c)
	case Cancel:
		return d.taskPart().cancelTask(c)
	case RetryTask:
		return d.taskPart().retryTask(c)
	case HoldStep:
		return d.taskPart().holdStep(c.Address, true)
	case ReleaseStep:
		return d.taskPart().holdStep(c.Address, false)
	case Append:
		return d.signalPart().appendItems(c)
	case Pause:
		return d.taskPart().pauseTask()
	case Resume:
		return d.taskPart().resumeTask()
	case Ring:
		d.alarmPart().handleAlarm(Lapse{Alarm: c.Alarm})
	case Lapse:
		d.alarmPart().handleAlarm(c)
	case Proceed:
		if d.s.isCanceling() {
			d.taskPart().cancelUnbegun(d.s.actingScope())
		}
		d.queueAll()
		if c.Waits {
			d.wakeWaiting()
		}
	case Leave:
		d.claimPart().releaseCarried(c)
	case Recover:
		d.claimPart().recoverAttempts(c)
	case FailStep:
		d.stepPart().failStep(c)
	default:
		return d.handleAttempt(c)
	}
	return nil
}

// handleAttempt decides about commands to attempts.
func (d *decider) handleAttempt(c Command) error {
	switch c := c.(type) {
	case Claim:
		return d.claimPart().claimAttempt(c)
	case Extend:
		return d.claimPart().extendClaim(c)
	case GiveBack:
		d.claimPart().giveBack(c)
	case Note:
		return d.claimPart().recordNote(c)
	case Report:
		return d.attemptPart().handleReport(c)
	case Reports:
		return d.attemptPart().handleReports(c)
	case Begin:
		return d.claimPart().noteBegun(c)
	case Inquire:
		return d.claimPart().checkCarrier(c)
	case Bring:
		return d.claimPart().moveAttempt(c)
	case ExternalEnded:
		return d.externalPart().externalEnded(c)
	case RecordSteps:
		return recordSteps(d, c)
	case ReleaseFunction:
		return releaseFunction(d, c)
	case Working:
		d.externalPart().noteWorking(c)
	case Granted:
		d.permitPart().handleGranted(c)
	case Evict:
		d.permitPart().evictHolder(c)
	}
	return nil
}

// emitEvent records an event, applies it to the state and collects its effects.
func (d *decider) emitEvent(e Event) {
	e.At = d.env.Now
	if len(d.events) == 0 {
		e.Request = d.env.Request
		d.events = slices.Grow(d.events, d.expectedEvents)
	}
	d.events = append(d.events, e)
	now := &d.events[len(d.events)-1]
	if d.env.Refer != nil {
		d.referValues(now)
	}
	Evolve(d.s, now)
	d.effects = appendEffects(d.effects, d.s, now)
	if e.Type == AttemptsDispatched {
		d.startedAttempts += e.Total
	}
	d.tallyPart().tallyEvent(now)
	d.noteVars(now)
}

// startPending starts pending work until none is left or the decision is long enough. The latest
// entry comes first, so a scope inside a step proceeds before the scope around it.
func (d *decider) startPending() (more bool) {
	for d.failUnfilled(); len(d.pending) > 0; d.failUnfilled() {
		if d.isFull() {
			return true
		}
		w := d.pending[len(d.pending)-1]
		d.pending = d.pending[:len(d.pending)-1]
		switch {
		case d.isBlocked(w):
		case w.st == nil && w.sc.hasReadyNode() && d.hasStartedEnough():
			d.attemptsCapped = true
		case w.st == nil:
			d.beginNext(w.sc)
		case d.s.activeStep(w.st.Address()) == w.st:
			d.attemptPart().startUnits(w.st)
		}
	}
	return false
}

// isBlocked reports whether a pending start must be dropped because of one of these reasons:
//
//   - The task has ended or waits for a permit.
//   - The task is paused. Units of steps that have begun may still start, see
//     State.holdsStartedSteps.
//   - The scope is over.
//   - The task closes, and this is not the closing scope.
func (d *decider) isBlocked(w pendingStart) bool {
	s := d.s
	paused := s.holdsStartedSteps() || w.st == nil && s.Paused()
	over := s.Permits.Waits() && s.Closing == nil || s.scopes[w.sc.Path] != w.sc || s.Closing != nil && w.sc == s.Root
	return s.Status.Ended() || paused || over
}

// maxEffort is the work of conditions and expressions after which a decision is cut, because other
// tasks wait for it.
const maxEffort = expr.Budget / 3

// isFull reports whether the decision is long enough to be cut.
func (d *decider) isFull() bool { return len(d.events) >= d.limits.Events || d.effort >= maxEffort }

// hasStartedEnough reports whether the decision has started as many attempts as it may.
func (d *decider) hasStartedEnough() bool { return d.env.Most > 0 && d.startedAttempts >= d.env.Most }

// beginNext starts the next node of a scope: the node at the cursor, or the first ready node of a
// dag. During a gentle cancel no node begins.
func (d *decider) beginNext(sc *Scope) {
	if d.s.isCanceling() {
		return
	}
	switch m := sc.mode.(type) {
	case graphMode:
		m.beginNext(d, sc)
	case dagMode:
		m.beginNext(d, sc)
	case codeMode:
		m.beginNext(d, sc)
	case closingMode:
		m.beginNext(d, sc)
	}
}

// queueScope queues a scope in which work may be able to start.
func (d *decider) queueScope(sc *Scope) { d.pending = append(d.pending, pendingStart{sc: sc}) }

// queueStep queues a step that may be able to start more units. A step that is already the last
// entry is not added again.
func (d *decider) queueStep(st *Step) {
	w := pendingStart{st.scope, st}
	if n := len(d.pending); n == 0 || d.pending[n-1] != w {
		d.pending = append(d.pending, w)
	}
}

// queueAll queues every scope, so that inner ones come first.
func (d *decider) queueAll() {
	d.queueTree(d.s.actingScope())
}

// queueTree queues a scope and all active steps in it. Inner scopes are queued later, so that they
// come first.
func (d *decider) queueTree(sc *Scope) {
	d.queueScope(sc)
	for _, st := range sc.Active() {
		switch {
		case st.Child != nil:
			d.queueTree(st.Child)
		case len(st.Retrying) > 0 || st.Next < len(st.Units) || st.Signal != nil:
			d.queueStep(st)
		}
	}
}

// startTask creates the task. Its first step begins in the same decision.
func (d taskDecider) startTask(c Start) error {
	if d.s.Status != "" {
		return Errorf(Conflict, "task %s has been started before", d.s.Task)
	}
	c, err := c.Fit(d.s.Plan, d.limits)
	if err != nil {
		return err
	}
	if c.Fork == nil {
		e := Event{Type: TaskCreated, Version: c.Version, Params: c.paramsOrEmpty(),
			Origin: c.Origin, Traced: c.Traced, Permits: d.s.Plan.taskPermits(c.paramsOrEmpty())}
		if c.Apart {
			e.Total = 1
		}
		d.emitEvent(e)
	} else {
		d.emitEvent(Event{Type: TaskCreated, Version: c.Version, Params: c.Fork.Began, Origin: c.Fork.Task, Traced: c.Traced})
		d.goOnFrom(c.Fork)
		d.emitEvent(Event{Type: TaskRetried, Params: c.paramsOrEmpty(), Permits: d.s.Plan.taskPermits(c.paramsOrEmpty())})
		d.signalShared(c.Fork)
	}
	if d.s.Deadline > 0 {
		d.effects = append(d.effects, Alarm{At: d.s.Deadline, Kind: AlarmTask})
	}
	d.queueAll()
	return nil
}

// signalTask sets a key in the shared of the root, in any state of the task. A step that is entered
// later finds the value there.
func (d signalDecider) signalTask(c Signal) error {
	if err := checkSharedKey(c.Key); err != nil {
		return err
	}
	if c.Alive && d.s.Status.Ended() && d.s.Status != TaskFailed {
		return Errorf(Conflict, "the task is %s: it reads no more signals", d.s.Status)
	}
	if err := d.limits.checkValue("the signal's value", c.Value); err != nil {
		return err
	}
	if len(c.By) > MaxName || !IsText(c.By) {
		return Errorf(Invalid, "the sender of a signal must be UTF-8 text of at most %d bytes", MaxName)
	}
	e := Event{Type: SignalReceived, Key: c.Key, Output: orNull(c.Value), By: c.By}
	if err := d.fillSharedPath(d.s.Root, &e, "the signal's value"); err != nil {
		return err
	}
	if err := d.checkRoom(&e); err != nil {
		return err
	}
	if err := d.checkStored(StoredSignal{Key: e.Key, Value: e.Output}); err != nil {
		return err
	}
	d.approvals.by = c.By
	d.emitEvent(e)
	d.wakeWaiting()
	d.approvals.by = ""
	return nil
}

// fillSharedPath completes an event that sets a path in a scope's shared. It adds the new value of
// the first key of the path.
func (d *decider) fillSharedPath(sc *Scope, e *Event, what string) error {
	if !sc.Plan.Pocketflow && strings.Contains(e.Key, ".") {
		if err := checkWaitKey(e.Key); err != nil {
			return err
		}
	}
	e.Input = sc.withPathSet(e.Key, e.Output)
	if err := d.orContentError(nil); err != nil {
		return err
	}
	return d.limits.checkValue(what, e.Input)
}

// wakeWaiting ends the waiting steps whose value is present.
func (d *decider) wakeWaiting() {
	for _, st := range slices.Clone(d.s.waiting) {
		if d.isFull() {
			d.continuation = Proceed{Waits: true}
			return
		}
		d.stepPart().wakeStep(st)
	}
}

// cancelTask ends the task in one of three ways. By default the task ends now. With Gently it ends
// when nothing is in flight. With Force a closing task ends, although not everything was undone. An
// ended task stays as it is. A function undoes its work first, unless Force is set.
func (d taskDecider) cancelTask(c Cancel) error {
	switch closing := d.s.Closing; {
	case d.s.Status.Ended():
	case closing != nil && c.Force:
		d.attemptPart().withdrawScope(closing.Scope)
		d.emitEvent(Event{Type: TaskEnded, Status: string(closing.cutShort()),
			Error: cmp.Or(closing.Error, "canceled before everything was undone")})
	case closing != nil:
	case c.Gently && d.s.CancelAt == 0:
		paused := d.s.Paused()
		d.emitEvent(Event{Type: CancelRequested})
		if paused {
			d.setClocks()
		}
		d.cancelUnbegun(d.s.actingScope())
		d.queueAll() // with the pgflow profile, retries that a pause held back continue
	case !c.Force && d.s.undoesFunction():
	case !c.Gently && undoFunction(d.decider, ""):
	case !c.Gently:
		d.endTask(TaskCanceled, "")
	}
	return nil
}

// afterCancel ends a gently canceled task when nothing is in flight any more. A function that still
// waits is canceled first.
func (d taskDecider) afterCancel() {
	if d.s.isCanceling() && !d.s.Status.Ended() && !d.s.Root.onlyWaits() && !d.s.Root.mode.isBusy(d.s.Root, !d.s.isDraining()) {
		d.endCanceledTask()
	}
}

// endCanceledTask ends a task whose cancel waited until nothing was in flight.
func (d taskDecider) endCanceledTask() {
	if d.s.CancelError != "" {
		d.endTask(TaskFailed, d.s.CancelError)
		return
	}
	d.endTask(TaskCanceled, "")
}

// isBusy reports whether attempts of the step are in flight. If retries is set, units that wait for
// a retry count, too.
func (st *Step) isBusy(retries bool) bool {
	return st.Child != nil && st.Child.mode.isBusy(st.Child, retries) ||
		retries && len(st.Retrying) > 0 || st.Flying > 0 && st.Node.Exec.Type != ExecDirect
}

// endTask ends the task in any state and withdraws the attempts in flight. Compensations run before
// the end.
func (d taskDecider) endTask(status TaskStatus, text string) {
	d.attemptPart().withdrawScope(d.s.Root)
	if d.s.Closing != nil {
		d.attemptPart().withdrawScope(d.s.Closing.Scope)
	}
	if !d.s.hasToClose(status) {
		d.emitEvent(Event{Type: TaskEnded, Status: string(status), Error: text})
		return
	}
	d.pruneAll(d.s.Root)
	e := Event{Type: TaskClosing, Status: string(status), Error: text}
	if status != TaskCompleted {
		e.Total = d.s.undoPart().countDone()
	}
	d.emitEvent(e)
	d.queueScope(d.s.Closing.Scope)
}

// pruneAll emits a Prune for each composite step of a scope whose steps will be cut.
func (d *decider) pruneAll(sc *Scope) {
	for _, st := range sc.Active() {
		if st.Node.isComposite() {
			d.effects = append(d.effects, Prune{st.Address()})
		}
	}
}

// retryTask continues a failed task where it failed. A graph that has undone steps cannot continue,
// because its cursor is after them. A dag can run undone steps again, if they are in the root.
func (d taskDecider) retryTask(cmd RetryTask) error {
	switch c := d.s.Closing; {
	case !d.s.Status.Ended() && d.s.Root != nil && !d.s.Paused() && releaseHeld(d.decider, d.s.actingScope(), isAnyReason):
		return nil
	case d.s.Status == TaskCanceled && d.s.Plan.Profile == ProfileOrk && c == nil:
	case d.s.Status != TaskFailed:
		return Errorf(Conflict, "the task is %s: only a failed one can be retried", d.s.Status)
	case c != nil && len(c.Undone) > 0 && (!d.s.Root.mode.canRedoUndone() || d.s.undoPart().undidInside()):
		return Errorf(Conflict, "the task has undone what it did: rerun it, which starts a new one with the same params")
	}
	if d.s.Root.hasUndone() {
		return Errorf(Conflict, "the task has undone what it did: rerun it, which starts a new one with the same params")
	}
	if err := d.s.checkRetriable(cmd.Node); err != nil {
		return err
	}
	d.pruneAll(d.s.Root)
	if c := d.s.Closing; c != nil {
		d.pruneAll(c.Scope)
	}
	d.emitEvent(Event{Type: TaskRetried, Node: cmd.Node, Permits: d.s.Plan.taskPermits(d.s.Params)})
	if d.s.Paused() { // a retry also resumes the task
		d.emitEvent(Event{Type: TaskResumed})
	}
	if d.s.Deadline > 0 {
		d.effects = append(d.effects, Alarm{At: d.s.Deadline, Kind: AlarmTask})
	}
	d.queueAll()
	return nil
}

// pauseTask prevents new work from starting. Attempts in flight go on, and their reports are
// accepted.
func (d taskDecider) pauseTask() error {
	switch {
	case d.s.Status.Ended():
		return Errorf(Conflict, "the task has ended (%s): it cannot be paused", d.s.Status)
	case d.s.CancelAt != 0:
		return Errorf(Conflict, "the task is being canceled: it cannot be paused")
	case d.s.Paused():
		return Errorf(Conflict, "the task is paused already")
	}
	d.emitEvent(Event{Type: TaskPaused})
	return nil
}

// resumeTask starts the work that the pause held back.
func (d taskDecider) resumeTask() error {
	switch {
	case d.s.Status.Ended():
		return Errorf(Conflict, "the task has ended (%s): it cannot be resumed", d.s.Status)
	case !d.s.Paused():
		return Errorf(Conflict, "the task is not paused")
	}
	d.emitEvent(Event{Type: TaskResumed})
	d.setClocks()
	releaseHeld(d.decider, d.s.actingScope(), isPauseReason)
	d.queueAll()
	return nil
}

// timeOutTask ends a task that exceeds its timeout. A gently canceled task ends as canceled. A
// function undoes its work first, without a time limit.
func (d taskDecider) timeOutTask() {
	const text = "timeout: the task has not ended within its timeout_ms"
	switch {
	case d.s.undoesFunction():
	case undoFunction(d.decider, text):
	case d.s.isCanceling():
		d.endTask(TaskCanceled, "")
	default:
		d.endTask(TaskFailed, text)
	}
}
