package flow

import (
	"cmp"
	"fmt"
	"slices"
)

// claimAttempt gives a queue job to a poller. A repeated claim with the same token changes nothing,
// because the first response may have been lost.
func (d claimDecider) claimAttempt(c Claim) error {
	st, u := d.attemptPart().deliverableAttempt(c.Address)
	if u == nil || st.unitExec(c.Unit).Type != ExecQueue {
		return ErrOver
	}
	switch {
	case u.Live.Worker != "" && c.Token != "" && c.Token == u.Live.Token:
		return nil // the same claim already holds the job
	case u.Live.Worker != "":
		return Errorf(Conflict, "the job is claimed by another worker")
	case d.s.isDraining():
		return ErrOver // the rest of a long decision cancels the attempt
	}
	// the claim must not be earlier than the poller's request; otherwise survivesWith would end it
	d.env.Now = max(d.env.Now, c.Since)
	e := Event{Type: AttemptClaimed, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt,
		Worker: cmp.Or(truncateText(c.Worker, MaxName), "anonymous"),
		Token:  truncateText(c.Token, MaxName), Until: d.claimExpiry(st, c.Unit, c.Until)}
	if st.Node.TimeoutMS > 0 && st.Node.Exec.FromClaim {
		e.Due = d.timeAfter(st.Node.TimeoutMS)
	}
	d.emitEvent(e)
	return nil
}

// extendClaim prolongs a claim. A small gain compared to the claim's duration is not recorded, so
// frequent heartbeats cost nothing.
func (d claimDecider) extendClaim(c Extend) error {
	st, u := d.attemptPart().deliverableAttempt(c.Address)
	if u == nil || u.Live.Worker == "" {
		return ErrOver
	}
	if c.Token != "" && c.Token != u.Live.Token || c.Token == "" && c.Worker != "" && c.Worker != u.Live.Worker {
		return Errorf(Conflict, "the job is claimed by another worker")
	}
	until := d.claimExpiry(st, c.Unit, c.Until)
	if c.MS > 0 {
		until = d.timeAfter(c.MS)
	}
	if gain := until - u.Live.Until; gain*2 >= until-d.env.Now {
		d.emitEvent(Event{Type: AttemptExtended, Scope: c.Scope, Node: c.Node, Visit: c.Visit,
			Unit: c.Unit, Attempt: c.Attempt, Until: until})
	}
	return nil
}

// claimExpiry returns when a claim expires. The visibility of the node takes precedence over the
// requested time.
func (d claimDecider) claimExpiry(st *Step, unit int, asked int64) int64 {
	x := st.unitExec(unit)
	if ms := max(x.VisibilityMS, x.HeartbeatMS); ms > 0 {
		return d.timeAfter(ms)
	}
	return asked
}

// recordNote stores the worker's description of the state of its attempt. A repeated text is no
// event.
func (d claimDecider) recordNote(c Note) error {
	_, u := d.attemptPart().deliverableAttempt(c.Address)
	switch {
	case u == nil:
		return nil
	case c.Token != "" && (u.Live.Worker == "" || c.Token != u.Live.Token):
		return Errorf(Conflict, "the job is no longer claimed with that token")
	case u.Live.Note == c.Text:
		return nil
	}
	if len(c.Text) > MaxName {
		return Errorf(Invalid, "status has %d bytes, more than the limit of %d", len(c.Text), MaxName)
	}
	d.emitEvent(Event{Type: AttemptStatusChanged, Scope: c.Scope, Node: c.Node, Visit: c.Visit,
		Unit: c.Unit, Attempt: c.Attempt, Note: truncateText(c.Text, MaxName)})
	return nil
}

// noteBegun records that the carrier has begun an attempt that may kill its carriers. For other
// attempts the begin does not matter; see Recover.
func (d claimDecider) noteBegun(c Begin) error {
	st, u := d.attemptPart().deliverableAttempt(c.Address)
	if u == nil || u.Live.Carrier == "" || u.Live.Carrier != c.Carrier {
		return ErrOver
	}
	if u.Status != UnitRunning {
		e := st.newEvent(AttemptStarted)
		e.Unit, e.Attempt = c.Unit, c.Attempt
		d.emitEvent(e)
	}
	return nil
}

func (d claimDecider) checkCarrier(c Inquire) error {
	if _, u := d.attemptPart().deliverableAttempt(c.Address); u == nil || u.Live.Carrier != c.Carrier || u.Live.Given != c.Given {
		return ErrOver
	}
	return nil
}

// giveBack returns a claimed attempt. The worker has not begun it, so it does not count as a lost
// delivery.
func (d claimDecider) giveBack(c GiveBack) {
	if st, u := d.attemptPart().deliverableAttempt(c.Address); u != nil && u.Live.Worker != "" && u.Live.Token == c.Token {
		d.returnAttempt(st, c.Address, "", u.Live.Deliveries)
	}
}

// redeliverLost takes an attempt from a lost carrier and dispatches it again. The number of
// deliveries is bounded if the attempt may have killed its carrier. It is not bounded if the next
// carrier only adopts running work, because giving up would not end that work.
func (d claimDecider) redeliverLost(a Address, carrier string) {
	st, u := d.s.findAttempt(a)
	x := st.unitExec(a.Unit)
	d.effects = append(d.effects, Lost{a, x, carrier == ""})
	switch {
	case x.Type.Started():
		d.programLost(st, u, a)
	case x.Type.Adopted():
		d.returnAttempt(st, a, carrier, u.Live.Deliveries)
	case u.Live.Deliveries+1 >= d.limits.Deliveries:
		d.effects = append(d.effects, st.withdrawEffect(a, u))
		d.attemptPart().settleAttempt(st, u, Report{Address: a,
			Error: fmt.Sprintf(
				"given up after %d deliveries: each carrier was lost before it reported",
				u.Live.Deliveries+1)})
	default:
		d.returnAttempt(st, a, carrier, u.Live.Deliveries+1)
	}
}

// programLost ends an attempt whose program ended together with the member that had started it.
func (d claimDecider) programLost(st *Step, u *Unit, a Address) {
	d.effects = append(d.effects, st.withdrawEffect(a, u))
	d.attemptPart().settleAttempt(st, u, Report{Address: a, Error: ProgramLost})
}

// carrierLost handles the loss of an attempt that a member carries, or that others carry out for
// it.
func (d claimDecider) carrierLost(st *Step, u *Unit, c Report) {
	switch {
	case u.Live.Carrier == "" || c.Given != u.Live.Given:
	case c.Unbegun && d.s.isDraining():
		d.taskPart().cancelAttempt(st, u, c.Address)
	case c.Unbegun && c.To != "":
		d.passAttempt(st, c.Address, c.To, "")
	case c.Unbegun:
		d.returnAttempt(st, c.Address, d.env.Member, u.Live.Deliveries)
	default:
		d.redeliverLost(c.Address, d.env.Member)
	}
}

// returnAttempt dispatches an attempt to another carrier, with the same attempt number. During a
// gentle cancel, only work that runs without its carrier is returned, so that another carrier can
// adopt it. All other attempts are canceled, because they would begin again.
func (d claimDecider) returnAttempt(st *Step, a Address, carrier string, deliveries int) {
	_, u := d.s.findAttempt(a)
	if d.s.isDraining() && !st.unitExec(a.Unit).Type.Adopted() && !u.Live.Undoes {
		d.taskPart().cancelAttempt(st, u, a)
		return
	}
	e := st.newEvent(AttemptRequeued)
	e.Unit, e.Attempt, e.Carrier, e.Total = a.Unit, a.Attempt, carrier, deliveries
	d.emitEvent(e)
}

// passAttempt passes an attempt to another member. This is not a return, so the begin of the
// attempt need not be stored.
func (d claimDecider) passAttempt(st *Step, a Address, to, worker string) {
	e := st.newEvent(AttemptMoved)
	e.Unit, e.Attempt, e.Carrier, e.Worker = a.Unit, a.Attempt, to, truncateText(worker, MaxName)
	d.emitEvent(e)
}

// moveAttempt makes a member the carrier of an attempt whose worker has connected to it. The
// previous carrier may still wait for the worker.
func (d claimDecider) moveAttempt(c Bring) error {
	st, u := d.attemptPart().deliverableAttempt(c.Address)
	switch {
	case u == nil || u.Live.Carrier == "" || !st.unitExec(c.Unit).Attachable():
		return ErrOver
	case c.Given > u.Live.Given || c.Given < u.Live.Given-u.Live.Brought:
		return Errorf(Conflict, "another worker has the job by now")
	case c.Since != u.Live.StartedAt:
		return Errorf(Conflict, "the job is that of another task of the same id, which was started anew")
	case u.Live.Carrier == c.Carrier:
		return nil
	}
	d.effects = append(d.effects, st.withdrawEffect(c.Address, u))
	d.passAttempt(st, c.Address, c.Carrier, cmp.Or(c.Worker, "anonymous"))
	return nil
}

// canMoveJob reports whether a worker may bring such a job to another member.
func (r *Return) canMoveJob(x *Exec) bool {
	return r.Grace > 0 && (x.Type == ExecRemote || x.Type == ExecPush && !slices.Contains(r.Pushed, x.Service))
}

// ownerLookupMS is the maximum time in milliseconds that it takes to find the new owner of a task.
const ownerLookupMS = 1000

// returnDeadline returns until when to wait for a worker that may bring back a job of a lost
// carrier. It returns 0 if there is nothing to wait for.
func (c *Recover) returnDeadline(x *Exec, carrier string) int64 {
	for _, gone := range c.Gone {
		if gone.Member == carrier && (gone.Left && c.Grace > 0 && x.Attachable() || c.canMoveJob(x)) {
			return max(gone.At+c.Grace, c.Since+min(c.Grace, ownerLookupMS))
		}
	}
	if c.canMoveJob(x) {
		return c.Since + c.Grace
	}
	return 0
}

// releaseCarried returns the attempts that the leaving member has begun and that no worker may
// bring back. The next owner takes over the attempts that were not begun.
func (d claimDecider) releaseCarried(c Leave) {
	all := d.eachCarried(func(st *Step, u *Unit, a Address) {
		if u.Live.Carrier == d.env.Member && u.Status == UnitRunning &&
			!c.canMoveJob(st.unitExec(a.Unit)) && !slices.Contains(c.Parted, a) {
			d.releaseAttempt(st, u, a)
		}
	})
	if !all {
		d.continuation = c
	}
}

// releaseAttempt handles an attempt that the stopping member has begun and does not finish.
func (d claimDecider) releaseAttempt(st *Step, u *Unit, a Address) {
	if st.unitExec(a.Unit).Type.Started() {
		d.programLost(st, u, a)
		return
	}
	d.returnAttempt(st, a, d.env.Member, u.Live.Deliveries)
}

// takeOver makes the member the carrier of an attempt of a lost carrier.
func (d claimDecider) takeOver(st *Step, u *Unit, a Address) {
	if u.Status == UnitRunning {
		d.redeliverLost(a, d.env.Member)
		return
	}
	d.returnAttempt(st, a, d.env.Member, u.Live.Deliveries)
}

// recoverAttempts takes over every attempt of a member that is gone. An attempt is lost with its
// carrier only if it is known to have begun. An attempt that was never returned, or only once, has
// no stored begin, so it does not count as lost. A live member reports to the current owner of the
// task.
func (d claimDecider) recoverAttempts(c Recover) {
	var again int64
	all := d.eachCarried(func(st *Step, u *Unit, a Address) {
		switch {
		case u.Live.Worker != "":
			d.extendOrphanedClaim(st, u, a, c)
		case u.Live.Carrier == d.env.Member:
		case slices.Contains(c.Alive, u.Live.Carrier):
			if c.Anew && !d.s.isDraining() {
				d.effects = append(d.effects, Dispatch{st.unitJob(d.s, a.Unit)})
			}
		default:
			until := c.returnDeadline(st.unitExec(a.Unit), u.Live.Carrier)
			if until <= d.env.Now {
				d.takeOver(st, u, a)
			} else if again == 0 || until < again {
				again = until
			}
		}
	})
	if !d.s.Paused() && !d.s.Status.Ended() {
		releaseHeld(d.decider, d.s.actingScope(), isAnyReason)
	}
	if again > 0 {
		d.effects = append(d.effects, Alarm{At: again, Kind: AlarmReturn})
	}
	switch {
	case !all:
		d.continuation = c // the attempts taken over so far stay so
	case !d.s.Status.Ended():
		if d.s.isCanceling() {
			d.taskPart().cancelUnbegun(d.s.actingScope())
		}
		d.queueAll()
		d.wakeWaiting() // a signal may have arrived that did not fit into an earlier decision
	}
}

// extendOrphanedClaim prolongs a claim whose holder may have had no member to send its heartbeat
// to. A claim made during this member's ownership is not changed, because it holds for its full
// duration.
func (d claimDecider) extendOrphanedClaim(st *Step, u *Unit, a Address, c Recover) {
	visibility := d.claimExpiry(st, a.Unit, d.timeAfter(c.Visibility)) - d.env.Now
	if until := c.Since + visibility/2; until > d.env.Now && until > u.Live.Until {
		e := st.newEvent(AttemptExtended)
		e.Unit, e.Attempt, e.Until = a.Unit, a.Attempt, until
		d.emitEvent(e)
	}
}

// eachCarried calls f for every attempt that a member carries or a worker has claimed. f may end
// the attempt, its step and the task. It returns false if the decision has no room for the rest.
func (d claimDecider) eachCarried(f func(*Step, *Unit, Address)) (all bool) {
	if d.s.Status.Ended() {
		return true
	}
	return d.carriedIn(d.s.actingScope(), f)
}

// carriedIn does the work of eachCarried for a scope and the scopes inside its steps.
func (d claimDecider) carriedIn(sc *Scope, f func(*Step, *Unit, Address)) (all bool) {
	for _, st := range sc.Active() {
		at := st.Address()
		for i := 0; st.Flying > 0 && i < len(st.Units); i++ {
			if d.s.activeStep(at) != st {
				break // f ended the step or the task
			}
			if u := &st.Units[i]; u.Live != nil && (u.Live.Carrier != "" || u.Live.Worker != "") {
				if d.isFull() {
					return false
				}
				a := at
				a.Unit, a.Attempt = i, int(u.Attempt)
				f(st, u, a)
			}
		}
		if st.Child != nil && d.s.activeStep(at) == st && !d.carriedIn(st.Child, f) {
			return false
		}
	}
	return true
}
