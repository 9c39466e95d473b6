package flow

import "fmt"

// handleAlarm handles an alarm that rings. An alarm that no longer has a reason is ignored. An
// alarm that rings too early, because clocks differ, is set again.
func (d alarmDecider) handleAlarm(c Lapse) {
	a := c.Alarm
	at := d.s.dueTime(a)
	switch {
	case at == 0 || d.s.Status.Ended():
	case at > d.env.Now && at == a.At:
		d.effects = append(d.effects, a)
	case at <= d.env.Now:
		d.fireAlarm(c)
	}
}

// fireAlarm carries out the purpose of an alarm.
func (d alarmDecider) fireAlarm(c Lapse) {
	switch a := c.Alarm; a.Kind {
	case AlarmTask:
		d.taskPart().timeOutTask()
	case AlarmStep:
		d.stepPart().handleStepDue(d.s.activeStep(a.Address))
	case AlarmEnter:
		d.queueScope(d.s.scopes[a.Scope])
	case AlarmRetry, AlarmStart:
		d.queueStep(d.s.activeStep(a.Address))
	case AlarmUnclaimed:
		d.expireUnclaimed(a.Address)
	case AlarmAttempt:
		d.timeOutAttempt(a.Address)
	case AlarmClaim:
		d.expireClaim(c)
	}
}

// Awaits reports whether an alarm still has a reason to ring.
func (s *State) Awaits(a Alarm) bool { return s.dueTime(a) == a.At }

// dueTime returns the time for which an alarm must be set now, or 0 if the alarm has no reason any
// more.
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
		if st := s.activeStep(a.Address); st != nil {
			return s.dueOf(st)
		}
	case AlarmRetry:
		if st := s.activeStep(a.Address); st != nil && !s.isDraining() && a.Unit >= 0 && a.Unit < len(st.Units) {
			return st.Units[a.Unit].RetryAt
		}
	case AlarmStart:
		if st := s.activeStep(a.Address); st != nil && st.Next == 0 {
			return st.StartAt
		}
	case AlarmAttempt, AlarmClaim, AlarmUnclaimed:
		if _, u := s.findAttempt(a.Address); u != nil {
			return u.Live.dueTime(a.Kind)
		}
	}
	return 0
}

// dueOf returns the end of a step's time in Unix milliseconds, or 0 if the step has no limit.
// During a gentle cancel only subflows have a time limit.
func (s *State) dueOf(st *Step) int64 {
	if s.isDraining() && st.Child == nil {
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

// expireUnclaimed ends an attempt that no worker has claimed in time.
func (d alarmDecider) expireUnclaimed(a Address) {
	st, _ := d.s.findAttempt(a)
	d.expireAttempt(a, fmt.Sprintf("timeout: no worker has taken the job within %d ms", st.unitExec(a.Unit).StartMS))
}

// expireClaim handles an expired claim. With a heartbeat_timeout the attempt ends. Otherwise the
// job is delivered again, unless its worker shows that it is alive and has the job.
func (d alarmDecider) expireClaim(c Lapse) {
	a := c.Address
	st, u := d.s.findAttempt(a)
	if st.unitExec(a.Unit).HeartbeatMS > 0 {
		d.expireAttempt(a, fmt.Sprintf("timeout: worker %s has not been heard of for %d ms",
			u.Live.Worker, st.unitExec(a.Unit).HeartbeatMS))
		return
	}
	visibility := d.claimPart().claimExpiry(st, a.Unit, d.env.Now+c.Visibility) - d.env.Now
	if until := c.Signs.Heard + visibility; until > d.env.Now && u.Live.survivesWith(c.Signs) {
		e := st.newEvent(AttemptExtended)
		e.Unit, e.Attempt, e.Until = a.Unit, a.Attempt, until
		d.emitEvent(e)
		return
	}
	d.claimPart().redeliverLost(a, "")
}

// survivesWith reports whether a claim stays valid because its worker is alive. There are two
// exceptions, in which the worker may never have received the job: it registered after the claim,
// or it has requested other jobs since and sent no note.
func (l *Live) survivesWith(s Signs) bool {
	return s.Heard > 0 && s.Joined <= l.ClaimedAt && (s.Polled <= l.ClaimedAt || l.Note != "")
}

// timeOutAttempt ends an attempt that exceeds its timeout_ms.
func (d alarmDecider) timeOutAttempt(a Address) {
	st, _ := d.s.findAttempt(a)
	if t := st.unitExec(a.Unit).Type; t.Started() || t == ExecContainer {
		d.expireAttempt(a, ProgramTimeout)
		return
	}
	d.expireAttempt(a, fmt.Sprintf("timeout: no result within %d ms", st.Node.TimeoutMS))
}

// expireAttempt ends an attempt that has timed out.
func (d alarmDecider) expireAttempt(a Address, text string) {
	st, u := d.s.findAttempt(a)
	d.effects = append(d.effects, st.withdrawEffect(a, u))
	d.attemptPart().settleAttempt(st, u, Report{Address: a, TimedOut: true, Error: text})
}
