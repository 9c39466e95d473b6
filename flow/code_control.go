package flow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ErrCodeStops is the answer to recorded steps when the function must not continue now. The task is
// paused, or ends when nothing is in flight.
var ErrCodeStops = &Error{Conflict, "the results are stored, but the function may not go on now"}

// codeStops reports whether functions must stop at their next step: the task is paused, or ends
// when nothing is in flight.
func (s *State) codeStops() bool { return s.Paused() || s.isCanceling() }

// CodeStops reports whether the function of an attempt must stop after its recorded steps.
func (s *State) CodeStops(a Address) bool {
	_, u := s.findAttempt(a)
	return u != nil && s.codeStops() && !u.Live.Undoes
}

// GivenUp contains the reason why the carrier of a function has returned the attempt before the
// end of the function.
type GivenUp struct {
	Reason string
	Waits  []CodeWait // with HeldWaiting: all waits whose results the function does not have
	// Restarts is set if the function starts again without its recorded steps. The output of the
	// report is the new input. Reason is "" then.
	Restarts bool
}

// holdAttempt takes a function away from the carrier that returned it. The function is delivered
// again when the task is resumed, retried, or loaded by another incarnation of a member.
func holdAttempt(d *decider, st *Step, u *Unit, c Report) error {
	switch {
	case u.Live.Carrier == "" || c.Given != u.Live.Given:
	case d.s.isCanceling():
		d.taskPart().cancelAttempt(st, u, c.Address)
	case c.GivenUp.Restarts:
		return restartFunction(d, st, u, c)
	case c.GivenUp.Reason == HeldWaiting:
		return holdWaiting(d, st, u, c)
	case c.GivenUp.Reason == HeldPaused && !d.s.Paused():
		d.claimPart().returnAttempt(st, c.Address, d.env.Member, u.Live.Deliveries)
	default:
		e := st.newEvent(AttemptHeld)
		e.Unit, e.Attempt, e.Error = c.Unit, c.Attempt, truncateText(c.GivenUp.Reason, maxErrorText)
		d.emitEvent(e)
	}
	return nil
}

// ActionRestart is the action of a function that restarts.
const ActionRestart = "restart"

// restartFunction ends a visit of the function. The next visit has an empty record and another
// input. A function that restarts without recording a step fails, because it would restart forever.
func restartFunction(d *decider, st *Step, u *Unit, c Report) error {
	c.GivenUp = nil
	if err := checkRestart(d, st, c.Output); err != nil {
		c.Output, c.Error, c.Fatal = nil, "the function cannot begin anew: "+err.Error(), true
	}
	d.restarts = c.Error == ""
	return d.attemptPart().settleResult(st, u, c)
}

func checkRestart(d *decider, st *Step, input json.RawMessage) error {
	if len(st.scope.Function.Steps) == 0 {
		return Errorf(Invalid, "it has run no step and waited for nothing, so this would never end")
	}
	if kind := expr.KindOf(st.scope.openValue(input)); kind != expr.KindObject {
		return Errorf(Invalid, "its input must be a JSON object, and is %s", kind)
	}
	problems, err := d.stepPart().findProblems(st.scope.Plan.Inputs, input)
	if err == nil && len(problems) > 0 {
		return problems
	}
	return err
}

// restartMark begins the step names of a function that has restarted. The visit of its node and a
// slash follow.
const restartMark = "~"

// RestartPrefix returns the prefix of the recorded names of the steps of a function.
func (j *Job) RestartPrefix() string {
	visit := keyAddress(j.Since, j.Address).Visit
	if visit < 2 {
		return ""
	}
	return restartMark + strconv.Itoa(visit) + "/"
}

// TrimRestartPrefix returns the name of a step without the prefix of a restart, as the function
// knows the step.
func TrimRestartPrefix(name string) string {
	if strings.HasPrefix(name, restartMark) {
		_, name, _ = strings.Cut(name, "/")
	}
	return name
}

// restartNumber returns the visit of the function in which a step name was recorded; 1 for the
// first visit.
func restartNumber(name string) int {
	number, _, _ := strings.Cut(strings.TrimPrefix(name, restartMark), "/")
	n, err := strconv.Atoi(number)
	if err != nil || !strings.HasPrefix(name, restartMark) {
		return 1
	}
	return n
}

// HeldPaused is the reason for holding a function that stopped at a step because its task is
// paused.
const HeldPaused = "the task is paused"

// releaseHeld delivers held functions of a scope again: those for whose reason which returns true.
// It reports whether there was one.
func releaseHeld(d *decider, sc *Scope, which func(reason string) bool) (released bool) {
	for _, st := range sc.Active() {
		for i := range st.Units {
			if u := &st.Units[i]; u.Live != nil && u.Live.Held != "" && which(u.Live.Held) {
				a := st.Address()
				a.Unit, a.Attempt = i, int(u.Attempt)
				d.claimPart().returnAttempt(st, a, d.env.Member, u.Live.Deliveries)
				released = true
			}
		}
		if st.Child != nil && releaseHeld(d, st.Child, which) {
			released = true
		}
	}
	return released
}

// ReleaseFunction reports that a carrier may exist for a function that had none. Given is the
// delivery number of the function, which is delivered again. The answer is Busy while the task does
// not know yet that the function is held.
type ReleaseFunction struct {
	Address
	Given int
}

// releaseFunction delivers a held function again. In a paused task the function stays held until
// the task is resumed.
func releaseFunction(d *decider, c ReleaseFunction) error {
	st, u := d.s.findAttempt(c.Address)
	switch {
	case d.s.Status.Ended() || u == nil || u.Live.Given != c.Given || u.Live.Held == HeldPaused || u.Live.Held == HeldWaiting:
		return ErrOver
	case u.Live.Held == "":
		return Errorf(Busy, "the function is not held yet: try again in a moment")
	case d.s.Paused():
		e := st.newEvent(AttemptHeld)
		e.Unit, e.Attempt, e.Error = c.Unit, c.Attempt, HeldPaused
		d.emitEvent(e)
	default:
		d.claimPart().returnAttempt(st, c.Address, d.env.Member, u.Live.Deliveries)
	}
	return nil
}

// isAnyReason selects the held functions that may continue when something outside their tasks has
// changed.
func isAnyReason(reason string) bool { return reason != HeldWaiting }

// isHeldHere reports whether a held function keeps its task in memory. This is so if something
// other than the task may release the function.
func isHeldHere(reason string) bool { return reason != "" && reason != HeldWaiting }

func isPauseReason(reason string) bool { return reason == HeldPaused }

// hasUndone reports whether the function has recorded an undo step.
func (sc *Scope) hasUndone() bool {
	return sc.Function != nil && slices.ContainsFunc(sc.Function.Steps, func(s CodeStep) bool { return s.Kind == CodeUndo })
}

// undoFunction takes the function of the root from its carrier and calls the function again to undo
// its work. Then the task ends with the error, or as canceled if the error is "". It returns false
// if there is nothing to call.
func undoFunction(d *decider, failure string) bool {
	st := d.s.Root.Step
	if !d.s.Root.Plan.Code || d.s.Closing != nil || st == nil || d.s.Permits.Waits() {
		return false
	}
	u := &st.Units[0]
	if u.Live == nil || u.Live.Undoes || u.Live.Permits.Waits() || !canReplay(u.Live.Held) {
		return false
	}
	if isAbsent(u.Live.Held) && len(d.s.Root.Function.Steps) == 0 {
		return false // the function may never have run
	}
	if d.s.CancelAt == 0 {
		paused := d.s.Paused()
		d.emitEvent(Event{Type: CancelRequested, Error: failure})
		if paused {
			d.setClocks()
		}
	}
	cancelCalls(d, st.scope)
	requeueToUndo(d, st, u)
	return true
}

// HeldAbsent begins the reason for holding a function that neither a member nor a worker offers.
const HeldAbsent = "no program and no attached worker has the flow "

// canReplay reports whether a function that is held for the given reason may be called again.
func canReplay(held string) bool {
	return held == "" || held == HeldPaused || held == HeldWaiting || isAbsent(held)
}

func isAbsent(held string) bool { return strings.HasPrefix(held, HeldAbsent) }

// requeueToUndo takes a function from its carrier and delivers it again. The new delivery asks for
// the undo of its work.
func requeueToUndo(d *decider, st *Step, u *Unit) {
	a := st.Address()
	a.Attempt = int(u.Attempt)
	d.effects = append(d.effects, st.withdrawEffect(a, u))
	e := st.newEvent(AttemptRequeued)
	e.Attempt, e.Carrier, e.Total, e.Reason = a.Attempt, d.env.Member, u.Live.Deliveries, ReasonUndo
	d.emitEvent(e)
}

// undoesFunction reports whether the function of the root is being called to undo its work.
func (s *State) undoesFunction() bool {
	st := s.Root.Step
	return s.Root.Plan.Code && st != nil && st.Units[0].Live != nil && st.Units[0].Live.Undoes
}

// mustUndo reports whether a canceled function has work to undo.
func mustUndo(st *Step, u *Unit) bool {
	return st.scope.Plan.Code && st.Key == CodeMain && len(st.scope.Function.Steps) > 0 && !u.Live.Undoes && canReplay(u.Live.Held)
}

// ReplayedCall is the input of a function, with the recorded steps to repeat.
type ReplayedCall struct {
	Key   string // idempotency key of its job
	Input json.RawMessage
	Steps []CodeStep
}

// ReplayedCall returns the input and recorded steps of the task's function. The task may have
// ended. It returns false if the flow is not a function.
func (s *State) ReplayedCall() (c ReplayedCall, ok bool) {
	sc := s.Root
	if !sc.Plan.Code {
		return c, false
	}
	at := Address{Node: CodeMain, Visit: 1}
	if len(sc.Function.Steps) > 0 {
		at.Visit = restartNumber(sc.Function.Steps[0].Name)
	}
	return ReplayedCall{Key: UnitKey(s.Task, at), Input: sc.mode.stepParams(sc, sc.Plan.Nodes[CodeMain]),
		Steps: slices.Clone(sc.Function.Steps)}, true
}
