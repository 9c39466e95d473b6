package flow

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ErrOver answers a claim, a beginning, an inquiry, a heartbeat, a note or what a worker brings
// along, about an attempt that is no longer in flight.
var ErrOver = &Error{Conflict, "the attempt is over or was never started: nobody waits for it any longer"}

// decider makes one decision: it emits events, evolves the state by them and collects their
// effects.
type decider struct {
	s               *State
	env             Env
	limits          Limits
	events          []Event
	effects         []Effect
	expectedEvents  int            // events, at a guess
	effort          int            // of conditions and expressions
	pending         []pendingStart // where something may be able to start
	unfilled        []Address      // attempts to be failed, because their variables cannot be filled in
	tallies         []Tally
	approvals       approvalLog
	startedAttempts int     // attempts
	attemptsCapped  bool    // a dag has nodes that were not begun because of that
	continuation    Command // goes on with what this decision has no room for
}

// pendingStart is a step whose units may start, or a scope in which a step may.
type pendingStart struct {
	sc *Scope
	st *Step // nil = the scope
}

// Decide says what a command makes happen. The state is afterwards what the events make of it; an
// error means that nothing happened, unless it is a SpoiledError. A request that had its effect
// before has none now.
func Decide(s *State, c Command, env Env) (Decision, error) {
	if err := checkRequest(env.Request); err != nil {
		return Decision{}, err
	}
	if env.Request != "" && s.Answered(env.Request) {
		return Decision{}, nil
	}
	d := &decider{s: s, env: env, limits: env.Limits.OrDefault(), events: env.Buffer[:0], expectedEvents: 2}
	s.waits.log = &d.approvals
	s.lost.takeError() // of whoever only looked
	defer func() { s.waits.log = nil }()
	if err := d.handleCommand(c); err != nil {
		return Decision{}, err
	}
	more := d.startPending()
	if s.CancelAt != 0 && !more {
		d.afterCancel()
		more = d.startPending()
	}
	if (more || d.attemptsCapped && !s.Status.Ended()) && d.continuation == nil {
		d.continuation = Proceed{}
	}
	if err := s.Lost(); err != nil {
		return Decision{}, &SpoiledError{err}
	}
	return Decision{Events: d.events, Effects: d.effects, Tallies: d.tallies, Started: d.startedAttempts, Approvals: MergeApprovals(nil, d.approvals.changes...), Effort: d.effort, More: d.continuation}, nil
}

// handleCommand decides about the command itself. What may start because of that is started by
// advance.
func (d *decider) handleCommand(c Command) error {
	if start, ok := c.(Start); ok {
		return d.startTask(start)
	}
	if d.s.Status == "" {
		return Errorf(NotFound, "task %s has not been started", d.s.Task)
	}
	switch c := c.(type) {
	case Signal:
		return d.signalTask(c)
	case Answer:
		return d.answerApproval(c)
	case Cancel:
		return d.cancelTask(c)
	case RetryTask:
		return d.retryTask(c)
	case HoldStep:
		return d.holdStep(c.Address, true)
	case ReleaseStep:
		return d.holdStep(c.Address, false)
	case Append:
		return d.appendItems(c)
	case Pause:
		return d.pauseTask()
	case Resume:
		return d.resumeTask()
	case Ring:
		d.handleAlarm(Lapse{Alarm: c.Alarm})
	case Lapse:
		d.handleAlarm(c)
	case Proceed:
		if d.s.isCanceling() {
			d.cancelUnbegun(d.s.actingScope())
		}
		d.queueAll()
		if c.Waits {
			d.wakeWaiting()
		}
	case Leave:
		d.releaseCarried(c)
	case Recover:
		d.recoverAttempts(c)
	case FailStep:
		d.failStep(c)
	default:
		return d.handleAttempt(c)
	}
	return nil
}

// handleAttempt decides about commands to attempts.
func (d *decider) handleAttempt(c Command) error {
	switch c := c.(type) {
	case Claim:
		return d.claimAttempt(c)
	case Extend:
		return d.extendClaim(c)
	case GiveBack:
		d.giveBack(c)
	case Note:
		return d.recordNote(c)
	case Report:
		return d.handleReport(c)
	case Reports:
		return d.handleReports(c)
	case Begin:
		return d.noteBegun(c)
	case Inquire:
		return d.checkCarrier(c)
	case Bring:
		return d.moveAttempt(c)
	case ExternalEnded:
		return d.externalEnded(c)
	case Working:
		d.noteWorking(c)
	case Granted:
		d.handleGranted(c)
	case Evict:
		d.evictHolder(c)
	}
	return nil
}

// emitEvent makes an event happen.
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
	if e.Type == AttemptsStarted {
		d.startedAttempts += e.Total
	}
	d.tallyEvent(now)
	d.noteVars(now)
}

// startPending starts what may start, until nothing may or the decision is long enough. What was
// noted last comes first, so a scope inside a step goes on before the one around it.
func (d *decider) startPending() (more bool) {
	for d.failUnfilled(); len(d.pending) > 0; d.failUnfilled() {
		if d.isFull() {
			return true
		}
		w := d.pending[len(d.pending)-1]
		d.pending = d.pending[:len(d.pending)-1]
		switch {
		case d.isBlocked(w):
		case w.st == nil && len(w.sc.dag.ready) > 0 && d.hasStartedEnough():
			d.attemptsCapped = true
		case w.st == nil:
			d.beginNext(w.sc)
		case d.s.activeStep(w.st.Address()) == w.st:
			d.startUnits(w.st)
		}
	}
	return false
}

// isBlocked says that nothing may start where something was able to when it was noted: the task has
// ended, waits for a permit or is paused (what a pause does not hold back are the units of steps
// that have begun, see State.holdsStartedSteps), the scope is over, or the task closes, which only
// the closing scope takes part in.
func (d *decider) isBlocked(w pendingStart) bool {
	s := d.s
	paused := s.holdsStartedSteps() || w.st == nil && s.Paused()
	over := s.Permits.Waits() && s.Closing == nil || s.scopes[w.sc.Path] != w.sc || s.Closing != nil && w.sc == s.Root
	return s.Status.Ended() || paused || over
}

// maxEffort is what conditions and expressions may take before a decision is cut: others have to
// wait for it.
const maxEffort = expr.Budget / 3

// isFull says that the decision is long enough.
func (d *decider) isFull() bool { return len(d.events) >= d.limits.Events || d.effort >= maxEffort }

// hasStartedEnough says that the decision has begun as many attempts as it is to.
func (d *decider) hasStartedEnough() bool { return d.env.Most > 0 && d.startedAttempts >= d.env.Most }

// beginNext begins what is next in a scope: the node at its cursor, or the first node of a dag that
// nothing holds back. While the task is being canceled gently nothing new begins.
func (d *decider) beginNext(sc *Scope) {
	if d.s.isCanceling() {
		return
	}
	switch m := sc.mode.(type) {
	case graphMode:
		m.beginNext(d, sc)
	case dagMode:
		m.beginNext(d, sc)
	case closingMode:
		m.beginNext(d, sc)
	}
}

// queueScope notes a scope in which something may be able to start.
func (d *decider) queueScope(sc *Scope) { d.pending = append(d.pending, pendingStart{sc: sc}) }

// queueStep notes a step of which more units may be able to start. A step that was noted last is
// noted already.
func (d *decider) queueStep(st *Step) {
	w := pendingStart{st.scope, st}
	if n := len(d.pending); n == 0 || d.pending[n-1] != w {
		d.pending = append(d.pending, w)
	}
}

// queueAll looks at every scope again, the inner ones first.
func (d *decider) queueAll() {
	d.queueTree(d.s.actingScope())
}

// queueTree notes a scope and all that is active in it. What is inside is noted later, so that it
// comes first.
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
func (d *decider) startTask(c Start) error {
	if d.s.Status != "" {
		return Errorf(Conflict, "task %s has been started before", d.s.Task)
	}
	c, err := c.Fit(d.s.Plan, d.limits)
	if err != nil {
		return err
	}
	if c.Fork == nil {
		e := Event{Type: TaskCreated, Version: c.Version, Params: c.paramsOrEmpty(), Origin: c.Origin, Traced: c.Traced, Permits: d.s.Plan.taskPermits(c.paramsOrEmpty())}
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

// signalTask writes into shared at the root, whatever the task is doing: a step that is entered
// later finds it there.
func (d *decider) signalTask(c Signal) error {
	if err := checkSharedKey(c.Key); err != nil {
		return err
	}
	if c.Alive && d.s.Status.Ended() && d.s.Status != TaskFailed {
		return Errorf(Conflict, "the task is %s: nobody reads a signal any more", d.s.Status)
	}
	if err := d.limits.checkValue("the signal's value", c.Value); err != nil {
		return err
	}
	if len(c.By) > MaxName || !IsText(c.By) {
		return Errorf(Invalid, "who sends a signal is UTF-8 text of at most %d bytes", MaxName)
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

// fillSharedPath completes an event that sets a path in a scope's shared: it keeps what the first
// key of the path holds from then on.
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

// wakeWaiting ends the waiting steps that have what they wait for.
func (d *decider) wakeWaiting() {
	for _, st := range slices.Clone(d.s.waiting) {
		if d.isFull() {
			d.continuation = Proceed{Waits: true}
			return
		}
		d.wakeStep(st)
	}
}

// cancelTask is three commands: to end the task now, to end it when nothing is in flight any more
// (Gently), and, while it closes, to end it although not everything was undone (Force). A task that
// has ended is as it was.
func (d *decider) cancelTask(c Cancel) error {
	switch closing := d.s.Closing; {
	case d.s.Status.Ended():
	case closing != nil && c.Force:
		d.withdrawScope(closing.Scope)
		d.emitEvent(Event{Type: TaskEnded, Status: string(closing.cutShort()), Error: cmp.Or(closing.Error, "canceled before everything was undone")})
	case closing != nil:
	case c.Gently && d.s.CancelAt == 0:
		paused := d.s.Paused()
		d.emitEvent(Event{Type: CancelAsked})
		if paused {
			d.setClocks()
		}
		d.cancelUnbegun(d.s.actingScope())
		d.queueAll() // with pgflow's profile retries go on that a pause has held
	case !c.Gently:
		d.endTask(TaskCanceled, "")
	}
	return nil
}

// afterCancel ends a canceled task when nothing is in flight any more.
func (d *decider) afterCancel() {
	if d.s.isCanceling() && !d.s.Status.Ended() && !d.s.Root.mode.isBusy(d.s.Root, !d.s.isDraining()) {
		d.endTask(TaskCanceled, "")
	}
}

// isBusy reports whether attempts are in flight in a step, or, with retries, units wait for their
// next try.
func (st *Step) isBusy(retries bool) bool {
	return st.Child != nil && st.Child.mode.isBusy(st.Child, retries) || retries && len(st.Retrying) > 0 || st.Flying > 0 && st.Node.Exec.Type != ExecDirect
}

// endTask ends the task whatever it is doing: what is in flight is withdrawn. What is to be undone
// comes before the end.
func (d *decider) endTask(status TaskStatus, text string) {
	d.withdrawScope(d.s.Root)
	if d.s.Closing != nil {
		d.withdrawScope(d.s.Closing.Scope)
	}
	if !d.s.hasToClose(status) {
		d.emitEvent(Event{Type: TaskEnded, Status: string(status), Error: text})
		return
	}
	d.pruneAll(d.s.Root)
	e := Event{Type: TaskClosing, Status: string(status), Error: text}
	if status != TaskCompleted {
		e.Total = d.s.countDone()
	}
	d.emitEvent(e)
	d.queueScope(d.s.Closing.Scope)
}

// pruneAll ends what is carried apart from the task in a scope whose steps will be cut.
func (d *decider) pruneAll(sc *Scope) {
	for _, st := range sc.Active() {
		if st.Node.isComposite() {
			d.effects = append(d.effects, Prune{st.Address()})
		}
	}
}

// retryTask has a failed task go on where it failed. A graph that has undone steps cannot: its
// cursor is behind them. A dag can run them again, as long as they are in its root.
func (d *decider) retryTask(cmd RetryTask) error {
	switch c := d.s.Closing; {
	case d.s.Status == TaskCanceled && d.s.Plan.Profile == ProfileOrk && c == nil:
	case d.s.Status != TaskFailed:
		return Errorf(Conflict, "the task is %s: only a failed one can be retried", d.s.Status)
	case c != nil && len(c.Undone) > 0 && (!d.s.Root.mode.canRedoUndone() || d.s.undidInside()):
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
	if d.s.Paused() { // who retries a task wants it to go on
		d.emitEvent(Event{Type: TaskResumed})
	}
	if d.s.Deadline > 0 {
		d.effects = append(d.effects, Alarm{At: d.s.Deadline, Kind: AlarmTask})
	}
	d.queueAll()
	return nil
}

// pauseTask keeps anything new from starting. What is in flight goes on, and its reports are taken.
func (d *decider) pauseTask() error {
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

// resumeTask starts what the pause has held back.
func (d *decider) resumeTask() error {
	switch {
	case d.s.Status.Ended():
		return Errorf(Conflict, "the task has ended (%s): it cannot be resumed", d.s.Status)
	case !d.s.Paused():
		return Errorf(Conflict, "the task is not paused")
	}
	d.emitEvent(Event{Type: TaskResumed})
	d.setClocks()
	d.queueAll()
	return nil
}

// timeOutTask ends a task that has run for too long. One that is being canceled does not wait any
// longer.
func (d *decider) timeOutTask() {
	if d.s.isCanceling() {
		d.endTask(TaskCanceled, "")
		return
	}
	d.endTask(TaskFailed, "timeout: the task has not ended within its timeout_ms")
}
