package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// startUnits starts units of a step while its window has room: first those whose retry is due, then
// those not started yet. The rest start when others end (see afterAttempt). For a later retry it
// sets an alarm. A step with a scope inside has no units, so the scope is queued instead.
func (d attemptDecider) startUnits(st *Step) {
	if st.Child != nil {
		d.queueScope(st.Child)
		return
	}
	if st.Signal != nil {
		d.stepPart().wakeStep(st)
		return
	}
	if st.StartAt > d.env.Now && st.Next == 0 {
		return
	}
	window := st.unitWindow(d.s.Plan)
	for len(st.Retrying) > 0 && !d.s.isDraining() && st.Flying < window && st.Units[st.Retrying[0]].RetryAt <= d.env.Now {
		if d.isFull() {
			d.queueStep(st)
			return
		}
		unit := st.Retrying[0]
		d.startAttempts(st, unit, 1, int(st.Units[unit].Attempt)+1)
	}
	if st.inTurn() && len(st.Retrying) > 0 {
		window = st.Flying // the next unit waits for the unit that is retried
	}
	for from, n := st.nextUnstarted(window - st.Flying); n > 0 && !d.s.isCanceling(); from, n = st.nextUnstarted(window - st.Flying) {
		if d.isFull() {
			d.queueStep(st)
			return
		}
		// permits and variables of a unit may take some effort
		if st.Node.Keys != nil && st.Node.Keys.PerUnit || len(st.Node.Exec.Vars) > 0 {
			n = 1
		}
		d.startAttempts(st, from, n, st.firstAttempt())
	}
	if len(st.Retrying) > 0 && !d.s.isDraining() && st.Flying < st.unitWindow(d.s.Plan) {
		d.effects = append(d.effects, st.retryAlarm())
	}
}

// inTurn reports whether the units of a step run one after another.
func (st *Step) inTurn() bool {
	return st.Node.Dag == nil && st.Node.Each != nil && st.Node.Each.Window == 1
}

// nextUnstarted returns the next range of consecutive units that have not started, with at most the
// given number. Units with kept results, or that finished before their turn, lie between such
// ranges.
func (st *Step) nextUnstarted(most int) (from, n int) {
	for from = st.Next; from < len(st.Units) && st.Units[from].Attempt > 0; from++ {
	}
	for n < most && from+n < len(st.Units) && st.Units[from+n].Attempt == 0 {
		n++
	}
	return from, n
}

// unitWindow returns how many units of a step may be in flight at once.
func (st *Step) unitWindow(p *Plan) int {
	window := p.Window
	if st.Node.Each != nil && st.Node.Each.Window > 0 {
		window = min(window, st.Node.Each.Window)
	}
	return max(1, min(window, maxCopiedBytes/(1+st.copiedBytes())))
}

// maxCopiedBytes is the maximum number of bytes of shared unit data that the jobs in flight of one
// step may hold as copies.
const maxCopiedBytes = 64 << 20

// copiedBytes returns how many bytes of the units' common data each job copies. A job needs a copy
// if its own data is merged into the common data.
func (st *Step) copiedBytes() int {
	kept := 0 // number of variables that an attempt keeps
	for i := range st.Node.Exec.Vars {
		if st.Node.Exec.Vars[i].readsShared() {
			kept++
		}
	}
	switch n := st.Node; {
	case kept > 0:
		return min(kept*MaxVariable, maxVariables)
	case n.Kind == KindFanout && n.Dag.Items != nil && n.Dag.Shape == ShapeMerged:
		return len(st.stepInput())
	case n.Each != nil && len(st.Params) > maxCopiedBytes/DefaultLimits.Window && st.ownParams():
		return len(st.Params)
	}
	return 0
}

// ownParams reports whether any unit has params that differ from those of the step.
func (st *Step) ownParams() bool {
	for _, b := range st.Node.Each.Branches {
		if len(b.Exec.Params) > 0 {
			return true
		}
	}
	for _, x := range st.Node.Each.Items {
		if len(x.Params) > 0 {
			return true
		}
	}
	return false
}

// startAttempts starts n consecutive units with the same keys, beginning with the given one. Their
// timeout counts from now, from their claim (Exec.FromClaim), or from when they get their permits.
func (d attemptDecider) startAttempts(st *Step, unit, n, attempt int) {
	e := st.newEvent(AttemptsDispatched)
	e.Unit, e.Total, e.Attempt, e.Carrier = unit, n, attempt, d.env.Member
	switch {
	case st.Node.Keys != nil:
		e.Carrier, e.Permits = "", st.unitPermits(d.s.Plan, unit)
	case st.Node.TimeoutMS > 0 && !st.Node.Exec.FromClaim:
		e.Due = d.timeAfter(st.Node.TimeoutMS)
	}
	d.emitEvent(e)
}

// newEvent returns an event of the given type at the step's address.
func (st *Step) newEvent(t EventType) Event {
	return Event{Type: t, Scope: st.scope.Path, Node: st.Node.Key, Visit: st.Visit}
}

// deliverableAttempt returns the attempt in flight that a command names. It returns nil if the
// attempt or the task is over. It also returns nil if the attempt waits for a permit or for
// external jobs, or is held, because then it has no carrier.
func (d attemptDecider) deliverableAttempt(a Address) (*Step, *Unit) {
	if d.s.Status.Ended() {
		return nil, nil
	}
	st, u := d.s.findAttempt(a)
	if u != nil && !u.Live.isDeliverable() {
		return nil, nil
	}
	return st, u
}

// isDeliverable reports whether an attempt in flight can be carried out: it waits neither for a
// permit nor for external jobs, and it is not held.
func (l *Live) isDeliverable() bool {
	return !l.Permits.Waits() && l.Outside == nil && l.Held == ""
}

// handleReports ends several attempts. Units that wait for a place in a step wait until the last
// report is handled. All other consequences of a report are decided before the next one.
func (d attemptDecider) handleReports(c Reports) error {
	if len(c) > MaxReports {
		return Errorf(Limit, "limit: %d reports at once, more than the %d there may be", len(c), MaxReports)
	}
	d.expectedEvents = len(c) + 2
	for _, r := range c {
		before := len(d.pending)
		if d.handleReport(r) == nil && slices.ContainsFunc(d.pending[before:], func(w pendingStart) bool { return w.st == nil }) {
			d.startPending()
		}
	}
	return nil
}

// WrongToken is the error text for a token that differs from the token of the newest claim.
const WrongToken = "the token is not that of the newest claim: another worker holds the job"

// handleReport ends an attempt. A stale report changes nothing.
func (d attemptDecider) handleReport(c Report) error {
	if c.Direct {
		return d.reportDirect(c)
	}
	if c.Poller && c.Visit == 0 && c.Attempt == 0 {
		return d.reportHeld(c)
	}
	st, u := d.deliverableAttempt(c.Address)
	if u == nil {
		d.externalPart().cancelOrphaned(&c)
		return nil
	}
	switch st.unitExec(c.Unit).Type {
	case ExecDirect:
		return wrongRoute(st.Node)
	case ExecCode:
		if c.Given != u.Live.Given {
			return nil // another carrier has the function now
		}
		if c.Error == "" && c.GivenUp == nil && d.s.isCanceling() && mustUndo(st, u) {
			requeueToUndo(d.decider, st, u) // it was returned after the cancel of the task
			return nil
		}
	}
	if c.Poller && st.unitExec(c.Unit).Type != ExecQueue {
		return Errorf(Conflict, "the attempt is not a queue job: only the member that carries it can end it")
	}
	if c.Poller && u.Live.Worker == "" && u.Live.Token == "" {
		return Errorf(Conflict, "no worker has claimed the job: a worker must poll it before it can complete it")
	}
	if c.Token != "" && c.Token != u.Live.Token {
		return Errorf(Conflict, WrongToken)
	}
	if c.GivenUp != nil {
		return holdAttempt(d.decider, st, u, c)
	}
	if c.Lost {
		d.claimPart().carrierLost(st, u, c)
		return nil
	}
	return d.settleResult(st, u, c)
}

// settleResult ends an attempt, and makes it fail if its result is too large. If the result names
// external jobs, the attempt waits for those instead.
func (d attemptDecider) settleResult(st *Step, u *Unit, c Report) error {
	if c.Error == "" {
		if expr.KindOf(c.Output) == expr.KindNull {
			c.Output = nil
		}
		if err := cmp.Or(d.checkOutputContent(st, c.Output), d.limits.checkValue("the output",
			c.Output), d.limits.checkOutputs(st, c.Output)); err != nil {
			c.Error, c.Fatal, c.Output = err.Error(), true, nil
		}
	}
	if c.Error == "" && u.Live.Outside == nil && d.externalPart().waitsOutside(st, u, &c) {
		return nil
	}
	// a result that names external jobs does not describe their output
	if c.Error == "" && st.Node.Out != nil && u.Live.Outside == nil {
		if problems := st.Node.Out.Check(st.scope.openValue(orNull(c.Output))); len(problems) > 0 {
			c.Error, c.Output = "the output does not fit output_type: "+problems.Below("output"), nil
		}
	}
	d.settleAttempt(st, u, c)
	return nil
}

// settleAttempt records the end of an attempt and its consequences for the step.
func (d attemptDecider) settleAttempt(st *Step, u *Unit, c Report) {
	if st.Node.Single {
		// this event, that of its step, and two of the next step
		d.expectedEvents = max(d.expectedEvents, 4)
	}
	e := st.newEvent(AttemptEnded)
	e.Unit, e.Attempt = c.Unit, c.Attempt
	e.Worker, e.URL, e.Log, e.Metrics = truncateText(c.Worker, MaxName), truncateText(c.URL, MaxName), c.Log, metricsOf(&c)
	if e.Worker == "" {
		e.Worker = u.Live.Worker
	}
	switch {
	case c.Error == "":
		e.Status, e.Output = string(AttemptOK), c.Output
	default:
		e.Status, e.Error = string(AttemptError), truncateText(c.Error, maxErrorText)
		e.Details, e.Error = d.limits.detailsOf(&c, e.Error)
		if c.TimedOut {
			e.Status = string(AttemptTimeout)
		}
		if !c.Fatal && !d.s.isDraining() && int(u.Attempt) <= st.maxRetries() {
			e.Due = d.timeAfter(st.retryDelay(d.s.Task, e.Address()))
		}
	}
	d.effects = u.Live.Permits.appendReleases(d.effects, e.Address())
	over := d.overEffect(st, u, &e)
	d.emitEvent(e)
	d.effects = append(d.effects, over)
	d.afterAttempt(st)
}

// overEffect returns the effect that reports the end of an attempt, while the state still holds the
// attempt.
func (d attemptDecider) overEffect(st *Step, u *Unit, e *Event) Over {
	x := st.unitExec(e.Unit)
	took := max(d.env.Now-max(u.Live.StartedAt, u.Live.ClaimedAt), 0)
	return Over{e.Address(), x.Type == ExecQueue, End{Exec: x, Status: AttemptStatus(e.Status),
		TookMS: took, Again: e.Due > 0, Metrics: e.Metrics}}
}

// detailsOf returns the details of a report and the text of its error. If the details cannot be
// kept, the text mentions that.
func (l Limits) detailsOf(c *Report, said string) (json.RawMessage, string) {
	switch {
	case expr.KindOf(c.Details) == expr.KindNull:
		return nil, said
	case len(c.Details) > maxDetails:
		return nil, fmt.Sprintf("%s (its details have %d bytes, more than the %d that are kept)", said, len(c.Details), maxDetails)
	case CheckJSON(c.Details) != nil || expr.Deeper(c.Details, l.Levels):
		return nil, said + " (its details are no JSON that can be kept)"
	}
	return expr.Compact(c.Details), said
}

// metricsOf returns the metrics of a report if they can be kept.
func metricsOf(c *Report) json.RawMessage {
	if expr.KindOf(c.Metrics) != expr.KindArray || len(c.Metrics) > maxMetrics || CheckJSON(c.Metrics) != nil {
		return nil
	}
	return expr.Compact(c.Metrics)
}

// maxRetries returns how often a unit may be retried. A direct unit has no attempts to repeat.
func (st *Step) maxRetries() int {
	if st.Node.Retry.Units && st.Node.Exec.Type != ExecDirect {
		return st.Node.Retry.Max
	}
	return 0
}

// backoffMS returns the delay until the next attempt. The random part derives from the attempt's
// address, so every call gives the same result.
func (r *Retry) backoffMS(task string, a Address) int64 {
	ms := float64(r.WaitMS)
	if r.Exponential && ms > 0 { // zero times infinity is not a number
		ms *= math.Pow(2, float64(a.Attempt-1))
	}
	if r.MaxWaitMS > 0 {
		ms = min(ms, float64(r.MaxWaitMS))
	}
	if r.Jitter > 0 {
		h := fnv.New64a()
		h.Write([]byte(JobID(task, a)))
		ms *= 1 - r.Jitter*float64(h.Sum64()>>11)/(1<<53)
	}
	return int64(min(ms, MaxDelay))
}

// afterAttempt ends the step when its units are done, otherwise it continues with them.
func (d attemptDecider) afterAttempt(st *Step) {
	switch {
	case st.Node.Single && st.Done == 1:
		d.stepPart().endSingle(st)
	case !st.Node.Single && (st.Done == len(st.Units) || st.Failures > 0 && st.Node.Strategy == FailFast):
		d.stepPart().endEach(st)
	default:
		d.queueStep(st)
	}
}

// withdrawStep withdraws all attempts in flight in a step and below it.
func (d attemptDecider) withdrawStep(st *Step) {
	if st == nil {
		return
	}
	if st.Flying > 0 {
		for i := range st.Next {
			if u := &st.Units[i]; u.Live != nil {
				a := st.Address()
				a.Unit, a.Attempt = i, int(u.Attempt)
				d.effects = u.Live.Permits.appendReleases(d.effects, a)
				if !u.Live.Permits.Waits() {
					d.effects = append(d.effects, st.withdrawEffect(a, u))
				}
			}
		}
	}
	if st.Child != nil {
		d.withdrawScope(st.Child)
	}
}

// withdrawEffect returns the effect that withdraws an attempt in flight.
func (st *Step) withdrawEffect(a Address, u *Unit) Effect {
	if x := u.Live.Outside; x != nil {
		return Recall{Address: a, Indexes: x.openIndexes()}
	}
	return Withdraw{Address: a, Queue: st.unitExec(a.Unit).Type == ExecQueue, Carrier: u.Live.Carrier, Given: u.Live.Given}
}

// withdrawScope withdraws all attempts in flight in a scope and below it.
func (d attemptDecider) withdrawScope(sc *Scope) {
	for _, st := range sc.Active() {
		d.withdrawStep(st)
	}
}
