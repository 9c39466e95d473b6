package flow

// A pause stops the timeouts of the task, of approvals, waits and subflows, and of units that are
// completed by hand. While a task is paused nothing may begin, so these must not expire. Each
// continues with its remaining time when the task is resumed.
//
// All other clocks continue. Attempts in flight keep working, so their timeouts run on. Clocks that
// start something (timers, delays, retries) run on, and the start then waits for the end of the
// pause.

// pausableClock is a timeout that a pause stops.
type pausableClock struct {
	alarm     Alarm
	due       *int64 // time when the clock expires; 0 if never, or if the clock is stopped
	remaining *int64 // remaining time of a stopped clock
}

// eachClock calls visit for each pausable clock of the task.
func (s evolveState) eachClock(visit func(pausableClock)) {
	visit(pausableClock{Alarm{Kind: AlarmTask}, &s.Deadline, &s.DeadlineLeft})
	if s.Root != nil {
		s.actingScope().eachClock(visit)
	}
}

func (sc *Scope) eachClock(visit func(pausableClock)) {
	for _, st := range sc.Active() {
		if k := st.Node.Kind; k == KindApproval || k == KindWaitEvent || k == KindSubflow || st.isCall() {
			visit(pausableClock{Alarm{Address: st.Address(), Kind: AlarmStep}, &st.Due, &st.DueLeft})
		}
		for i := 0; st.manualUnits > 0 && i < len(st.Units); i++ {
			if u := &st.Units[i]; u.Live != nil && st.isManual(u, i) {
				a := st.Address()
				a.Unit, a.Attempt = i, int(u.Attempt)
				visit(pausableClock{Alarm{Address: a, Kind: AlarmAttempt}, &u.Live.Due, &u.Live.DueLeft})
			}
		}
		if st.Child != nil {
			st.Child.eachClock(visit)
		}
	}
}

// stopClocks stops the clocks at the given time. A clock that should have expired by then expires
// when it continues.
func (s evolveState) stopClocks(at int64) {
	s.eachClock(func(c pausableClock) {
		if *c.due > 0 {
			*c.remaining, *c.due = max(*c.due-at, 1), 0
		}
	})
	s.waits.updateDueTimes()
}

// startClocks continues the stopped clocks at the given time.
func (s evolveState) startClocks(at int64) {
	s.eachClock(func(c pausableClock) {
		if *c.remaining > 0 {
			*c.due, *c.remaining = at+*c.remaining, 0
		}
	})
	s.waits.updateDueTimes()
}

// setClocks emits the alarms of clocks that were just restarted.
func (d *decider) setClocks() {
	d.s.evolvePart().eachClock(func(c pausableClock) {
		if c.alarm.At = *c.due; c.alarm.At > 0 {
			d.effects = append(d.effects, c.alarm)
		}
	})
}

// updateDueTimes records the changed due times in the lists of waiting approvals.
func (w *waitList) updateDueTimes() {
	for _, st := range w.steps {
		if st.waitsFor == WaitApproval {
			w.log.noteOpened(st)
		}
	}
	if len(w.steps) > 0 {
		w.first = w.steps[0].toAwaited()
	}
}
