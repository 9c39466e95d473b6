package flow

// cancelUnbegun cancels the attempts of a scope that no carrier has begun, and asks carriers to
// give back waiting jobs. Running work goes on. If the decision is full, Proceed continues.
func (d taskDecider) cancelUnbegun(sc *Scope) {
	for _, st := range sc.Active() {
		for i := 0; st.Flying > 0 && i < len(st.Units); i++ {
			if d.isFull() {
				d.continuation = Proceed{}
				return
			}
			if u := &st.Units[i]; u.Live != nil {
				d.cancelIfUnbegun(st, u, i)
			}
		}
		if st.Child != nil {
			d.cancelUnbegun(st.Child)
		}
	}
}

// cancelIfUnbegun cancels an attempt in flight that waits for a permit or for a poller. For a
// dispatched job it asks the carrier, because only the carrier knows whether the job has begun.
func (d taskDecider) cancelIfUnbegun(st *Step, u *Unit, unit int) {
	a := st.Address()
	a.Unit, a.Attempt = unit, int(u.Attempt)
	switch x := st.unitExec(unit); {
	case u.Live.Permits.Waits() || u.Live.Held != "":
		d.cancelAttempt(st, u, a)
	case !d.s.isDraining() || u.Live.Undoes || u.Live.Outside != nil || x.Type == ExecDirect || u.Status == UnitRunning:
	case x.Type == ExecQueue:
		d.cancelAttempt(st, u, a)
	default:
		d.effects = append(d.effects, Reclaim{st.unitJob(d.s, unit)})
	}
}

// cancelAttempt ends an attempt that no carrier has begun. Its unit is over, but neither completed
// nor failed, so its step ends with the task. A function with recorded steps undoes them first.
func (d taskDecider) cancelAttempt(st *Step, u *Unit, a Address) {
	if mustUndo(st, u) {
		requeueToUndo(d.decider, st, u)
		return
	}
	d.effects = u.Live.Permits.appendReleases(d.effects, a)
	if !u.Live.Permits.Waits() {
		d.effects = append(d.effects, st.withdrawEffect(a, u))
	}
	e := st.newEvent(AttemptEnded)
	e.Unit, e.Attempt, e.Status = a.Unit, a.Attempt, string(AttemptCanceled)
	d.emitEvent(e)
}
