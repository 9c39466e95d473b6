package flow

import "fmt"

// ring answers an alarm. One whose reason is gone does nothing; one that rings before its time, because
// clocks differ, is set again.
func (d *decider) ring(c Lapse) {
	a := c.Alarm
	at := d.s.dueTime(a)
	switch {
	case at == 0 || d.s.Status.Ended():
	case at > d.env.Now && at == a.At:
		d.effects = append(d.effects, a)
	case at <= d.env.Now:
		d.rang(c)
	}
}

// rang does what an alarm was set for.
func (d *decider) rang(c Lapse) {
	switch a := c.Alarm; a.Kind {
	case AlarmTask:
		d.timeUp()
	case AlarmStep:
		d.due(d.s.step(a.Address))
	case AlarmEnter:
		d.later(d.s.scopes[a.Scope])
	case AlarmRetry, AlarmStart:
		d.refill(d.s.step(a.Address))
	case AlarmUnclaimed:
		d.unclaimed(a.Address)
	case AlarmAttempt:
		d.timeOut(a.Address)
	case AlarmClaim:
		d.silent(c)
	}
}

// Awaits says whether an alarm still has its reason.
func (s *State) Awaits(a Alarm) bool { return s.dueTime(a) == a.At }

// dueTime is when that happens which an alarm is about; 0 when it no longer does.
func (s *State) dueTime(a Alarm) int64 {
	switch a.Kind {
	case AlarmTask:
		return s.Deadline
	case AlarmReturn:
		return a.At
	case AlarmEnter:
		if sc := s.scopes[a.Scope]; sc != nil && sc.Step == nil && sc.Cursor == a.Node {
			return sc.EnterAt
		}
	case AlarmStep:
		if st := s.step(a.Address); st != nil {
			return s.dueOf(st)
		}
	case AlarmRetry:
		if st := s.step(a.Address); st != nil && !s.drains() && a.Unit >= 0 && a.Unit < len(st.Units) {
			return st.Units[a.Unit].RetryAt
		}
	case AlarmStart:
		if st := s.step(a.Address); st != nil && st.Next == 0 {
			return st.StartAt
		}
	case AlarmAttempt, AlarmClaim, AlarmUnclaimed:
		if _, u := s.attempt(a.Address); u != nil {
			return u.Live.dueTime(a.Kind)
		}
	}
	return 0
}

// dueOf returns when a step's time is up; 0 = never. Of a task that is being canceled gently only what runs has a time.
func (s *State) dueOf(st *Step) int64 {
	if s.drains() && st.Child == nil {
		return 0
	}
	return st.Due
}

func (l *Live) dueTime(kind AlarmKind) int64 {
	switch {
	case kind == AlarmAttempt:
		return l.Due
	case kind == AlarmClaim && l.Worker != "":
		return l.Until
	case kind == AlarmUnclaimed && l.Worker == "":
		return l.StartBy
	}
	return 0
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

// timeOut ends an attempt that has taken longer than its timeout_ms.
func (d *decider) timeOut(a Address) {
	st, _ := d.s.attempt(a)
	if t := st.exec(a.Unit).Type; t.Started() || t == ExecContainer {
		d.expire(a, ProgramTimeout)
		return
	}
	d.expire(a, fmt.Sprintf("timeout: no result within %d ms", st.Node.TimeoutMS))
}

// expire ends an attempt whose time is up.
func (d *decider) expire(a Address, text string) {
	st, u := d.s.attempt(a)
	d.effects = append(d.effects, st.withdrawal(a, u))
	d.settle(st, u, Report{Address: a, TimedOut: true, Error: text})
}
