package flow

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// fill starts units while the window has room, and looks at the scope below.
func (d *decider) fill(st *Step) {
	if st.Child != nil {
		d.later(st.Child)
		return
	}
	if st.StartAt > d.env.Now && st.Next == 0 {
		return
	}
	window := st.window(d.s.Plan)
	for len(st.Retrying) > 0 && st.Flying < window && st.Units[st.Retrying[0]].RetryAt <= d.env.Now {
		if d.full() {
			d.refill(st)
			return
		}
		unit := st.Retrying[0]
		d.launch(st, unit, 1, int(st.Units[unit].Attempt)+1)
	}
	for from, n := st.unstarted(window - st.Flying); n > 0 && !d.s.canceling(); from, n = st.unstarted(window - st.Flying) {
		if d.full() {
			d.refill(st)
			return
		}
		d.launch(st, from, n, 1)
	}
	if len(st.Retrying) > 0 && st.Flying < window {
		d.effects = append(d.effects, st.retryAlarm())
	}
}

// unstarted are the next units in a row that have not been started, at most so many. What is kept, or was
// finished before its turn, lies between them.
func (st *Step) unstarted(most int) (from, n int) {
	for from = st.Next; from < len(st.Units) && st.Units[from].Attempt > 0; from++ {
	}
	for n < most && from+n < len(st.Units) && st.Units[from+n].Attempt == 0 {
		n++
	}
	return from, n
}

// window is how many units of a step are in flight at once.
func (st *Step) window(p *Plan) int {
	window := p.Window
	if st.Node.Each != nil && st.Node.Each.Window > 0 {
		window = min(window, st.Node.Each.Window)
	}
	return max(1, min(window, maxCopied/(1+st.copied())))
}

// maxCopied is how many bytes of what all units have the jobs in flight of one step may hold copies of.
const maxCopied = 64 << 20

// copied is how many bytes of what all units have each job gets a copy of, because it is laid over something of its own.
func (st *Step) copied() int {
	switch n := st.Node; {
	case n.Kind == KindFanout && n.Dag.Items != nil && n.Dag.Shape == ShapeMerged:
		return len(st.stepInput())
	case n.Each != nil && len(st.Params) > maxCopied/DefaultLimits.Window && st.ownParams():
		return len(st.Params)
	}
	return 0
}

// ownParams says whether there are units with params of their own.
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

func (d *decider) launch(st *Step, unit, n, attempt int) {
	e := st.event(AttemptsStarted)
	e.Unit, e.Total, e.Attempt, e.Carrier = unit, n, attempt, d.env.Member
	if st.Node.TimeoutMS > 0 && !st.Node.Exec.FromClaim {
		e.Due = d.in(st.Node.TimeoutMS)
	}
	d.emit(e)
}

// event of a type at the step's address.
func (st *Step) event(t EventType) Event {
	return Event{Type: t, Scope: st.scope.Path, Node: st.Node.Key, Visit: st.Visit}
}

// attempt finds the attempt in flight that a command names, nil when it, or the task, is over.
func (d *decider) attempt(a Address) (*Step, *Unit) {
	if d.s.Status.Ended() {
		return nil, nil
	}
	return d.s.attempt(a)
}

func (d *decider) claim(c Claim) error {
	st, u := d.attempt(c.Address)
	if u == nil || st.exec(c.Unit).Type != ExecQueue {
		return ErrOver
	}
	switch {
	case u.Live.Worker != "" && c.Token != "" && c.Token == u.Live.Token:
		return nil // it is this claim that has it
	case u.Live.Worker != "":
		return Errorf(Conflict, "the job is claimed by another worker")
	}
	e := Event{Type: AttemptClaimed, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt,
		Worker: cmp.Or(text(c.Worker, MaxName), "anonymous"), Token: text(c.Token, MaxName), Until: d.until(st, c.Unit, c.Until)}
	if st.Node.TimeoutMS > 0 && st.Node.Exec.FromClaim {
		e.Due = d.in(st.Node.TimeoutMS)
	}
	d.emit(e)
	return nil
}

// extend prolongs a claim. It is written down only when that gains a good part of the claim's time,
// so frequent heartbeats cost nothing.
func (d *decider) extend(c Extend) error {
	st, u := d.attempt(c.Address)
	if u == nil || u.Live.Worker == "" {
		return ErrOver
	}
	if c.Token != "" && c.Token != u.Live.Token || c.Token == "" && c.Worker != "" && c.Worker != u.Live.Worker {
		return Errorf(Conflict, "the job is claimed by another worker")
	}
	until := d.until(st, c.Unit, c.Until)
	if c.MS > 0 {
		until = d.in(c.MS)
	}
	if gain := until - u.Live.Until; gain*2 >= until-d.env.Now {
		d.emit(Event{Type: AttemptExtended, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt, Until: until})
	}
	return nil
}

// until is how long a claim holds: the node's own visibility before what the claim asks for.
func (d *decider) until(st *Step, unit int, asked int64) int64 {
	x := st.exec(unit)
	if ms := max(x.VisibilityMS, x.HeartbeatMS); ms > 0 {
		return d.in(ms)
	}
	return asked
}

func (d *decider) note(c Note) error {
	_, u := d.attempt(c.Address)
	if u == nil || u.Live.Note == c.Text {
		return nil
	}
	if len(c.Text) > MaxName {
		return Errorf(Invalid, "status has %d bytes, more than the limit of %d", len(c.Text), MaxName)
	}
	d.emit(Event{Type: AttemptNoted, Scope: c.Scope, Node: c.Node, Visit: c.Visit, Unit: c.Unit, Attempt: c.Attempt, Note: text(c.Text, MaxName)})
	return nil
}

// reports ends several attempts. What waits for a place in a step waits for the last of them; whatever else one of them
// leads to is decided before the next is looked at.
func (d *decider) reports(c Reports) error {
	if len(c) > MaxReports {
		return Errorf(Limit, "limit: %d reports at once, more than the %d there may be", len(c), MaxReports)
	}
	d.expected = len(c) + 2
	for _, r := range c {
		before := len(d.todo)
		if d.report(r) == nil && slices.ContainsFunc(d.todo[before:], func(w work) bool { return w.st == nil }) {
			d.advance()
		}
	}
	return nil
}

// report ends an attempt. A stale one changes nothing.
func (d *decider) report(c Report) error {
	if c.Direct {
		return d.reportDirect(c)
	}
	if c.Poller && c.Visit == 0 && c.Attempt == 0 {
		return d.reportHeld(c)
	}
	st, u := d.attempt(c.Address)
	if u == nil {
		return nil
	}
	if st.exec(c.Unit).Type == ExecDirect {
		return wrongRoute(st.Node)
	}
	if c.Poller && st.exec(c.Unit).Type != ExecQueue {
		return Errorf(Conflict, "the attempt is not a queue job: only the member that carries it can end it")
	}
	if c.Poller && u.Live.Worker == "" && u.Live.Token == "" {
		return Errorf(Conflict, "nobody has claimed the job: it can be completed by whoever has polled for it")
	}
	if c.Token != "" && c.Token != u.Live.Token {
		return Errorf(Conflict, "the token is not that of the newest claim: another worker holds the job")
	}
	return d.settled(st, u, c)
}

// settled ends an attempt whose result may be too large.
func (d *decider) settled(st *Step, u *Unit, c Report) error {
	if c.Error == "" {
		if expr.KindOf(c.Output) == expr.KindNull {
			c.Output = nil
		}
		if err := cmp.Or(d.limits.checkValue("the output", c.Output), d.limits.checkOutputs(st, c.Output)); err != nil {
			c.Error, c.Fatal, c.Output = err.Error(), true, nil
		}
	}
	d.settle(st, u, c)
	return nil
}

// settle records the end of an attempt and what follows from it for its step.
func (d *decider) settle(st *Step, u *Unit, c Report) {
	if st.Node.Single {
		d.expected = max(d.expected, 4) // this one, its step's, and two of the next step
	}
	e := st.event(AttemptEnded)
	e.Unit, e.Attempt = c.Unit, c.Attempt
	e.Worker, e.URL, e.Log = text(c.Worker, MaxName), text(c.URL, MaxName), c.Log
	if e.Worker == "" {
		e.Worker = u.Live.Worker
	}
	switch {
	case c.Error == "":
		e.Status, e.Output = string(AttemptOK), c.Output
	default:
		e.Status, e.Error = string(AttemptError), text(c.Error, maxErrorText)
		if c.TimedOut {
			e.Status = string(AttemptTimeout)
		}
		if !c.Fatal && int(u.Attempt) <= st.retries() {
			e.Due = d.in(st.Node.Retry.wait(d.s.Task, e.Address()))
		}
	}
	d.emit(e)
	d.landed(st)
}

func wrongRoute(n *PlanNode) error {
	if n.Exec.Type == ExecDirect {
		return Errorf(Conflict, "step %.80q has the route direct: its units are finished directly, not as jobs", n.Key)
	}
	return Errorf(Conflict, "step %.80q has the route %s, not direct: only whoever carries its jobs can end them", n.Key, n.Exec.Route())
}

// retries of a unit. The branches and items of graph mode have none, nor has what nobody carries out.
func (st *Step) retries() int {
	if st.Node.Retry.Units && st.Node.Exec.Type != ExecDirect {
		return st.Node.Retry.Max
	}
	return 0
}

// wait is how long it is until the attempt after this one. What is left to chance follows from the
// attempt's address, so that it is the same whoever asks.
func (r *Retry) wait(task string, a Address) int64 {
	ms := float64(r.WaitMS)
	if r.Exponential && ms > 0 { // nothing times infinity is no number
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

// landed ends the step when its units are done, else goes on with them.
func (d *decider) landed(st *Step) {
	switch {
	case st.Node.Single && st.Done == 1:
		st.scope.mode.endSingle(d, st)
	case !st.Node.Single && (st.Done == len(st.Units) || st.Failures > 0 && st.Node.Strategy == FailFast):
		d.endEach(st)
	default:
		d.refill(st)
	}
}

// unclaimed ends an attempt that nobody has taken in time.
func (d *decider) unclaimed(a Address) {
	st, _ := d.s.attempt(a)
	d.expire(a, fmt.Sprintf("timeout: no worker has taken the job within %d ms", st.exec(a.Unit).StartMS))
}

// silent deals with a claim that has run out: a heartbeat_timeout ends the attempt, else somebody else
// gets the job, unless its worker shows that it lives and has it.
func (d *decider) silent(c Lapse) {
	a := c.Address
	st, u := d.s.attempt(a)
	if st.exec(a.Unit).HeartbeatMS > 0 {
		d.expire(a, fmt.Sprintf("timeout: worker %s has not been heard of for %d ms", u.Live.Worker, st.exec(a.Unit).HeartbeatMS))
		return
	}
	visibility := d.until(st, a.Unit, d.env.Now+c.Visibility) - d.env.Now
	if until := c.Signs.Heard + visibility; until > d.env.Now && u.Live.keptBy(c.Signs) {
		e := st.event(AttemptExtended)
		e.Unit, e.Attempt, e.Until = a.Unit, a.Attempt, until
		d.emit(e)
		return
	}
	d.lost(a, "")
}

// keptBy says whether a worker that lives can still have a claim. One that began anew since, or that asks for other
// jobs and has never noted what this one's state is, may not have got the answer that gave it the job.
func (l *Live) keptBy(s Signs) bool {
	return s.Heard > 0 && s.Joined <= l.ClaimedAt && (s.Polled <= l.ClaimedAt || l.Note != "")
}

func (d *decider) timeOut(a Address) {
	st, _ := d.s.attempt(a)
	d.expire(a, fmt.Sprintf("timeout: no result within %d ms", st.Node.TimeoutMS))
}

// expire ends an attempt whose time is up.
func (d *decider) expire(a Address, text string) {
	st, u := d.s.attempt(a)
	d.effects = append(d.effects, Withdraw{a, st.exec(a.Unit).Type == ExecQueue})
	d.settle(st, u, Report{Address: a, TimedOut: true, Error: text})
}

// giveBack returns a claimed attempt. Nobody worked on it, so that is no delivery in vain.
func (d *decider) giveBack(c GiveBack) {
	if st, u := d.attempt(c.Address); u != nil && u.Live.Worker != "" && u.Live.Token == c.Token {
		d.again(st, c.Address, "", u.Live.Deliveries)
	}
}

// lost takes an attempt from a carrier that is gone and dispatches it again, a bounded number of times.
func (d *decider) lost(a Address, carrier string) {
	st, u := d.s.attempt(a)
	if u.Live.Deliveries+1 >= d.limits.Deliveries {
		d.effects = append(d.effects, Withdraw{a, st.exec(a.Unit).Type == ExecQueue})
		d.settle(st, u, Report{Address: a, Error: fmt.Sprintf("given up after %d deliveries: each carrier was lost before it reported", u.Live.Deliveries+1)})
		return
	}
	d.again(st, a, carrier, u.Live.Deliveries+1)
}

func (d *decider) again(st *Step, a Address, carrier string, deliveries int) {
	e := st.event(AttemptReturned)
	e.Unit, e.Attempt, e.Carrier, e.Total = a.Unit, a.Attempt, carrier, deliveries
	d.emit(e)
}

func (d *decider) noteBegun(a Address) error {
	st, u := d.attempt(a)
	if u == nil || u.Live.Carrier == "" || u.Live.Carrier != d.env.Member {
		return ErrOver
	}
	if u.Status != UnitRunning {
		e := st.event(AttemptBegun)
		e.Unit, e.Attempt = a.Unit, a.Attempt
		d.emit(e)
	}
	return nil
}

// leave returns to the member itself, which nobody waits for, what it has begun: the next one takes over
// what was not.
func (d *decider) leave(c Leave) {
	all := d.eachCarried(func(st *Step, u *Unit, a Address) {
		if u.Live.Carrier == d.env.Member && u.Status == UnitRunning {
			d.again(st, a, d.env.Member, u.Live.Deliveries)
		}
	})
	if !all {
		d.rest = c
	}
}

// recover takes over every attempt that a member carried which is gone. One that it had not begun, or of
// which that is not known because it was never returned before, was not lost with it.
func (d *decider) recover(c Recover) {
	all := d.eachCarried(func(st *Step, u *Unit, a Address) {
		switch {
		case u.Live.Worker != "":
			d.reprieve(st, u, a, c)
		case u.Live.Carrier == d.env.Member:
		case u.Status == UnitRunning:
			d.lost(a, d.env.Member)
		default:
			d.again(st, a, d.env.Member, u.Live.Deliveries)
		}
	})
	switch {
	case !all:
		d.rest = c // what was taken over stays so
	case !d.s.Status.Ended():
		d.everywhere()
		d.wake() // a signal may have come for which there was no room
	}
}

// reprieve prolongs a claim whose holder may have had nobody to tell that it is alive. One of the member's
// own time is never touched: it holds for all of its time.
func (d *decider) reprieve(st *Step, u *Unit, a Address, c Recover) {
	visibility := d.until(st, a.Unit, d.in(c.Visibility)) - d.env.Now
	if until := c.Since + visibility/2; until > d.env.Now && until > u.Live.Until {
		e := st.event(AttemptExtended)
		e.Unit, e.Attempt, e.Until = a.Unit, a.Attempt, until
		d.emit(e)
	}
}

// eachCarried calls f for every attempt that a member carries or a worker has claimed, as long as the
// decision has room; else it is false. f may end the attempt, its step and the task.
func (d *decider) eachCarried(f func(*Step, *Unit, Address)) (all bool) {
	if d.s.Status.Ended() {
		return true
	}
	return d.carriedIn(d.s.stage(), f)
}

func (d *decider) carriedIn(sc *Scope, f func(*Step, *Unit, Address)) (all bool) {
	for _, st := range sc.Active() {
		at := st.Address()
		for i := 0; st.Flying > 0 && i < len(st.Units); i++ {
			if d.s.step(at) != st {
				break // giving up on a unit ended the step, or the task
			}
			if u := &st.Units[i]; u.Live != nil && (u.Live.Carrier != "" || u.Live.Worker != "") {
				if d.full() {
					return false
				}
				a := at
				a.Unit, a.Attempt = i, int(u.Attempt)
				f(st, u, a)
			}
		}
		if st.Child != nil && d.s.step(at) == st && !d.carriedIn(st.Child, f) {
			return false
		}
	}
	return true
}

// withdraw takes back everything in flight in a step and below it.
func (d *decider) withdraw(st *Step) {
	if st == nil {
		return
	}
	if st.Flying > 0 {
		for i := range st.Next {
			if u := &st.Units[i]; u.Live != nil {
				a := st.Address()
				a.Unit, a.Attempt = i, int(u.Attempt)
				d.effects = append(d.effects, Withdraw{a, st.exec(i).Type == ExecQueue})
			}
		}
	}
	if st.Child != nil {
		d.withdrawAll(st.Child)
	}
}

// withdrawAll takes back everything in flight in a scope and below it.
func (d *decider) withdrawAll(sc *Scope) {
	for _, st := range sc.Active() {
		d.withdraw(st)
	}
}
