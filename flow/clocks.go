package flow

// A pause stops the clocks that end something for want of time while nothing may begin, or while
// somebody is waited for: the timeouts of the task, of approvals, waits and subflows, and of units
// that are completed by hand. Each goes on with what is left of it when the task is resumed. All
// other clocks go on: those of attempts under way, whose work goes on, too; and those after which
// something begins (timers, delays, retries), which then waits for the end of the pause.

// pausableClock is one that a pause stops.
type pausableClock struct {
	alarm     Alarm
	due       *int64 // when it ends something; 0 = never, or it stands still
	remaining *int64 // of a clock that stands still: how long it has yet to go
}

// eachClock visits those clocks of a task.
func (s *State) eachClock(visit func(pausableClock)) {
	visit(pausableClock{Alarm{Kind: AlarmTask}, &s.Deadline, &s.DeadlineLeft})
	if s.Root != nil {
		s.actingScope().eachClock(visit)
	}
}

func (sc *Scope) eachClock(visit func(pausableClock)) {
	for _, st := range sc.Active() {
		switch st.Node.Kind {
		case KindApproval, KindWaitEvent, KindSubflow:
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

// stopClocks has the clocks stand still from a time on. One that should have ended something by
// then ends it as soon as it goes on.
func (s *State) stopClocks(at int64) {
	s.eachClock(func(c pausableClock) {
		if *c.due > 0 {
			*c.remaining, *c.due = max(*c.due-at, 1), 0
		}
	})
	s.waits.updateDueTimes()
}

// startClocks has them go on.
func (s *State) startClocks(at int64) {
	s.eachClock(func(c pausableClock) {
		if *c.remaining > 0 {
			*c.due, *c.remaining = at+*c.remaining, 0
		}
	})
	s.waits.updateDueTimes()
}

// setClocks sets the alarms of clocks that have just gone on.
func (d *decider) setClocks() {
	d.s.eachClock(func(c pausableClock) {
		if c.alarm.At = *c.due; c.alarm.At > 0 {
			d.effects = append(d.effects, c.alarm)
		}
	})
}

// updateDueTimes has lists of what is waited for name other times.
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
