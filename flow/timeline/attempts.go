package timeline

import "github.com/troupe-engine/troupe/flow"

// addAttemptEvent adds an event about attempts of a lane.
func (t *Timeline) addAttemptEvent(l *Lane, e *flow.Event) {
	if e.Type == flow.AttemptsDispatched {
		for unit := e.Unit; unit < e.Unit+e.Total; unit++ {
			t.addStarted(l, e, unit)
		}
		return
	}
	i, known := l.live[e.Unit]
	if !known || l.attempts[i].Attempt != e.Attempt {
		return
	}
	a := &l.attempts[i]
	switch e.Type {
	case flow.AttemptClaimed, flow.AttemptStarted:
		l.noteBegun(a, e)
	case flow.AttemptRequeued:
		l.startWait(a, "worker", e.At)
	case flow.AttemptDeferred:
		l.startWait(a, flow.WaitsExternal, e.At)
	case flow.PermitGranted:
		t.noteGranted(l, a, e)
	case flow.AttemptEnded:
		l.attemptEnded(i, e)
	}
}

func (t *Timeline) addStarted(l *Lane, e *flow.Event, unit int) {
	l.endRetryWait(unit, e.At)
	if t.attempts >= maxAttempts {
		l.leftOut++
		return
	}
	t.attempts++
	l.live[unit] = len(l.attempts)
	l.attempts = append(l.attempts, Attempt{Unit: unit, Attempt: e.Attempt, Start: e.At, State: flow.AttemptRunning})
	a := &l.attempts[len(l.attempts)-1]
	if len(e.Permits) > 0 {
		l.startWait(a, "permit", e.At)
		return
	}
	l.startWait(a, carrierWord(t.planNode(l.Node), unit), e.At)
}

// carrierWord returns the word for the wait of an attempt for its carrier.
func carrierWord(n *flow.PlanNode, unit int) string {
	if n == nil {
		return ""
	}
	x := &n.Exec
	if n.Kind == flow.KindParallel && n.Each != nil && unit < len(n.Each.Branches) {
		x = &n.Each.Branches[unit].Exec
	}
	switch x.Type {
	case flow.ExecQueue:
		return "worker"
	case flow.ExecDirect:
		return "manual"
	}
	return ""
}

// noteGranted ends the wait for permits of an attempt that has all its permits.
func (t *Timeline) noteGranted(l *Lane, a *Attempt, e *flow.Event) {
	if e.Carrier == "" && e.Due == 0 {
		return
	}
	l.endWait(a, e.At)
	l.startWait(a, carrierWord(t.planNode(l.Node), a.Unit), e.At)
}

// startWait records that an attempt waits from now on.
func (l *Lane) startWait(a *Attempt, word string, at int64) {
	l.endWait(a, at)
	if word == "" || len(l.Waits) >= maxWaits {
		return
	}
	l.Waits = append(l.Waits, Wait{For: word, Start: at})
	a.waitIndex = len(l.Waits)
}

// noteBegun records that a carrier has started an attempt. If the work begins elsewhere, the wait
// for external work continues.
func (l *Lane) noteBegun(a *Attempt, e *flow.Event) {
	elsewhere := e.Type == flow.AttemptStarted && e.Until > 0
	if !elsewhere {
		l.endWait(a, e.At)
	}
	switch {
	case a.Begun != 0:
	case elsewhere:
		a.Begun = e.Until
	default:
		a.Begun = e.At
	}
}

func (l *Lane) endWait(a *Attempt, at int64) {
	if a.waitIndex > 0 {
		l.Waits[a.waitIndex-1].End = at
		a.waitIndex = 0
	}
}

func (l *Lane) attemptEnded(i int, e *flow.Event) {
	a := &l.attempts[i]
	l.endWait(a, e.At)
	a.End, a.State = e.At, flow.AttemptStatus(e.Status)
	delete(l.live, e.Unit)
	if a.State != flow.AttemptOK {
		l.Failed++
	}
	if e.Due > e.At && len(l.Waits) < maxWaits {
		if l.retryWaits == nil {
			l.retryWaits = map[int]int{}
		}
		l.retryWaits[e.Unit] = len(l.Waits)
		l.Waits = append(l.Waits, Wait{For: "retry", Start: e.At})
	}
}

// endRetryWait ends the wait of a unit for its next attempt.
func (l *Lane) endRetryWait(unit int, at int64) {
	if i, waits := l.retryWaits[unit]; waits {
		l.Waits[i].End = at
		delete(l.retryWaits, unit)
	}
}
