package flow

import (
	"cmp"
	"fmt"
	"slices"
)

// claimAttempt gives a queue job to a poller. The same claim again, known by its token, changes
// nothing: its answer was lost.
func (d *decider) claimAttempt(c Claim) error {
	st, u := d.deliverableAttempt(c.Address)
	if u == nil || st.unitExec(c.Unit).Type != ExecQueue {
		return ErrOver
	}
	switch {
	case u.Live.Worker != "" && c.Token != "" && c.Token == u.Live.Token:
		return nil // it is this claim that has it
	case u.Live.Worker != "":
		return Errorf(Conflict, "the job is claimed by another worker")
	}
	d.env.Now = max(d.env.Now, c.Since) // what led to a claim is not after it: that would end it, see survivesWith
	e := Event{Type: AttemptClaimed, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt,
		Worker: cmp.Or(truncateText(c.Worker, MaxName), "anonymous"), Token: truncateText(c.Token, MaxName), Until: d.claimExpiry(st, c.Unit, c.Until)}
	if st.Node.TimeoutMS > 0 && st.Node.Exec.FromClaim {
		e.Due = d.timeAfter(st.Node.TimeoutMS)
	}
	d.emitEvent(e)
	return nil
}

// extendClaim prolongs a claim. It is written down only when that gains a good part of the claim's
// time, so frequent heartbeats cost nothing.
func (d *decider) extendClaim(c Extend) error {
	st, u := d.deliverableAttempt(c.Address)
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
		d.emitEvent(Event{Type: AttemptExtended, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt, Until: until})
	}
	return nil
}

// claimExpiry is how long a claim holds: the node's own visibility before what the claim asks for.
func (d *decider) claimExpiry(st *Step, unit int, asked int64) int64 {
	x := st.unitExec(unit)
	if ms := max(x.VisibilityMS, x.HeartbeatMS); ms > 0 {
		return d.timeAfter(ms)
	}
	return asked
}

// recordNote keeps what a worker calls the state of its attempt. The same word again is no event.
func (d *decider) recordNote(c Note) error {
	_, u := d.deliverableAttempt(c.Address)
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
	d.emitEvent(Event{Type: AttemptNoted, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt, Note: truncateText(c.Text, MaxName)})
	return nil
}

// noteBegun says that an attempt's carrier has begun with what may be what its carriers die of:
// only then it matters, see Recover.
func (d *decider) noteBegun(c Begin) error {
	st, u := d.deliverableAttempt(c.Address)
	if u == nil || u.Live.Carrier == "" || u.Live.Carrier != c.Carrier {
		return ErrOver
	}
	if u.Status != UnitRunning {
		e := st.newEvent(AttemptBegun)
		e.Unit, e.Attempt = c.Unit, c.Attempt
		d.emitEvent(e)
	}
	return nil
}

func (d *decider) checkCarrier(c Inquire) error {
	if _, u := d.deliverableAttempt(c.Address); u == nil || u.Live.Carrier != c.Carrier || u.Live.Given != c.Given {
		return ErrOver
	}
	return nil
}

// giveBack returns a claimed attempt. Nobody worked on it, so that is no delivery in vain.
func (d *decider) giveBack(c GiveBack) {
	if st, u := d.deliverableAttempt(c.Address); u != nil && u.Live.Worker != "" && u.Live.Token == c.Token {
		d.returnAttempt(st, c.Address, "", u.Live.Deliveries)
	}
}

// redeliverLost takes an attempt from a carrier that is gone and dispatches it again: a bounded
// number of times what a carrier may have died of, and however often what is only taken over, since
// giving that up would end nothing where it goes on.
func (d *decider) redeliverLost(a Address, carrier string) {
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
		d.settleAttempt(st, u, Report{Address: a, Error: fmt.Sprintf("given up after %d deliveries: each carrier was lost before it reported", u.Live.Deliveries+1)})
	default:
		d.returnAttempt(st, a, carrier, u.Live.Deliveries+1)
	}
}

// programLost ends an attempt whose program has ended with the member that had begun it.
func (d *decider) programLost(st *Step, u *Unit, a Address) {
	d.effects = append(d.effects, st.withdrawEffect(a, u))
	d.settleAttempt(st, u, Report{Address: a, Error: ProgramLost})
}

// carrierLost is about an attempt that a member carries, or had others carry out.
func (d *decider) carrierLost(st *Step, u *Unit, c Report) {
	switch {
	case u.Live.Carrier == "" || c.Given != u.Live.Given:
	case c.Unbegun && d.s.isDraining():
		d.cancelAttempt(st, u, c.Address)
	case c.Unbegun && c.To != "":
		d.passAttempt(st, c.Address, c.To, "")
	case c.Unbegun:
		d.returnAttempt(st, c.Address, d.env.Member, u.Live.Deliveries)
	default:
		d.redeliverLost(c.Address, d.env.Member)
	}
}

// returnAttempt returns an attempt, so that it goes to the next carrier. It stays the same attempt.
// Of a task that is being canceled gently only what goes on without its carrier is returned, to be
// found there; anything else would begin anew.
func (d *decider) returnAttempt(st *Step, a Address, carrier string, deliveries int) {
	if d.s.isDraining() && !st.unitExec(a.Unit).Type.Adopted() {
		_, u := d.s.findAttempt(a)
		d.cancelAttempt(st, u, a)
		return
	}
	e := st.newEvent(AttemptReturned)
	e.Unit, e.Attempt, e.Carrier, e.Total = a.Unit, a.Attempt, carrier, deliveries
	d.emitEvent(e)
}

// passAttempt has another member carry an attempt out. It is no return: nobody needs to store that
// it begins.
func (d *decider) passAttempt(st *Step, a Address, to, worker string) {
	e := st.newEvent(AttemptPassed)
	e.Unit, e.Attempt, e.Carrier, e.Worker = a.Unit, a.Attempt, to, truncateText(worker, MaxName)
	d.emitEvent(e)
}

// moveAttempt has the member carry an attempt to which its worker has come with it. The one that it
// was with until now may still wait for the worker.
func (d *decider) moveAttempt(c Bring) error {
	st, u := d.deliverableAttempt(c.Address)
	switch {
	case u == nil || u.Live.Carrier == "" || !st.unitExec(c.Unit).Attachable():
		return ErrOver
	case c.Given > u.Live.Given || c.Given < u.Live.Given-u.Live.Brought:
		return Errorf(Conflict, "the job was given to somebody else meanwhile")
	case c.Since != u.Live.StartedAt:
		return Errorf(Conflict, "the job is that of another task of the same id, which was started anew")
	case u.Live.Carrier == c.Carrier:
		return nil
	}
	d.effects = append(d.effects, st.withdrawEffect(c.Address, u))
	d.passAttempt(st, c.Address, c.Carrier, cmp.Or(c.Worker, "anonymous"))
	return nil
}

// canMoveJob reports whether a worker may come with such jobs.
func (r *Return) canMoveJob(x *Exec) bool {
	return r.Grace > 0 && (x.Type == ExecRemote || x.Type == ExecHTTP && !slices.Contains(r.Pushed, x.Service))
}

// ownerLookupMS is how long it takes at most until somebody who asks for the owner of a task has
// found the new one, in milliseconds.
const ownerLookupMS = 1000

// returnDeadline is for how long a worker is waited for that may come with such a job, whose
// carrier is gone.
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

// releaseCarried returns to the member itself, which nobody waits for, what it has begun: the next
// one takes over what was not.
func (d *decider) releaseCarried(c Leave) {
	all := d.eachCarried(func(st *Step, u *Unit, a Address) {
		if u.Live.Carrier == d.env.Member && u.Status == UnitRunning && !c.canMoveJob(st.unitExec(a.Unit)) && !slices.Contains(c.Parted, a) {
			d.releaseAttempt(st, u, a)
		}
	})
	if !all {
		d.continuation = c
	}
}

// releaseAttempt is about what the member has begun and does not finish, because it stops.
func (d *decider) releaseAttempt(st *Step, u *Unit, a Address) {
	if st.unitExec(a.Unit).Type.Started() {
		d.programLost(st, u, a)
		return
	}
	d.returnAttempt(st, a, d.env.Member, u.Live.Deliveries)
}

// takeOver has the member carry what one that is gone carried.
func (d *decider) takeOver(st *Step, u *Unit, a Address) {
	if u.Status == UnitRunning {
		d.redeliverLost(a, d.env.Member)
		return
	}
	d.returnAttempt(st, a, d.env.Member, u.Live.Deliveries)
}

// recoverAttempts takes over every attempt that a member carried which is gone. One that it had not
// begun, or of which that is not known because it was never returned before, or only once, was not
// lost with it. One that lives reports to whoever has the task.
func (d *decider) recoverAttempts(c Recover) {
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
	if again > 0 {
		d.effects = append(d.effects, Alarm{At: again, Kind: AlarmReturn})
	}
	switch {
	case !all:
		d.continuation = c // what was taken over stays so
	case !d.s.Status.Ended():
		if d.s.isCanceling() {
			d.cancelUnbegun(d.s.actingScope())
		}
		d.queueAll()
		d.wakeWaiting() // a signal may have come for which there was no room
	}
}

// extendOrphanedClaim prolongs a claim whose holder may have had nobody to tell that it is alive.
// One of the member's own time is never touched: it holds for all of its time.
func (d *decider) extendOrphanedClaim(st *Step, u *Unit, a Address, c Recover) {
	visibility := d.claimExpiry(st, a.Unit, d.timeAfter(c.Visibility)) - d.env.Now
	if until := c.Since + visibility/2; until > d.env.Now && until > u.Live.Until {
		e := st.newEvent(AttemptExtended)
		e.Unit, e.Attempt, e.Until = a.Unit, a.Attempt, until
		d.emitEvent(e)
	}
}

// eachCarried calls f for every attempt that a member carries or a worker has claimed, as long as
// the decision has room; else it is false. f may end the attempt, its step and the task.
func (d *decider) eachCarried(f func(*Step, *Unit, Address)) (all bool) {
	if d.s.Status.Ended() {
		return true
	}
	return d.carriedIn(d.s.actingScope(), f)
}

// carriedIn is eachCarried for a scope and those inside its steps.
func (d *decider) carriedIn(sc *Scope, f func(*Step, *Unit, Address)) (all bool) {
	for _, st := range sc.Active() {
		at := st.Address()
		for i := 0; st.Flying > 0 && i < len(st.Units); i++ {
			if d.s.activeStep(at) != st {
				break // giving up on a unit ended the step, or the task
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
