package timeline

import "github.com/troupe-engine/troupe/flow"

// attempt adds an event of attempts of a lane.
func (t *Timeline) attempt(l *Lane, e *flow.Event) {
	if e.Type == flow.AttemptsStarted {
		for unit := e.Unit; unit < e.Unit+e.Total; unit++ {
			t.started(l, e, unit)
		}
		return
	}
	i, known := l.live[e.Unit]
	if !known || l.attempts[i].Attempt != e.Attempt {
		return
	}
	a := &l.attempts[i]
	switch e.Type {
	case flow.AttemptClaimed, flow.AttemptBegun:
		l.begun(a, e)
	case flow.AttemptReturned:
		l.waits(a, "worker", e.At)
	case flow.AttemptDeferred:
		l.waits(a, "outside", e.At)
	case flow.PermitGranted:
		t.granted(l, a, e)
	case flow.AttemptEnded:
		l.attemptEnded(i, e)
	}
}

func (t *Timeline) started(l *Lane, e *flow.Event, unit int) {
	l.retried(unit, e.At)
	if t.attempts >= maxAttempts {
		l.leftOut++
		return
	}
	t.attempts++
	l.live[unit] = len(l.attempts)
	l.attempts = append(l.attempts, Attempt{Unit: unit, Attempt: e.Attempt, Start: e.At, State: flow.AttemptRunning})
	a := &l.attempts[len(l.attempts)-1]
	if len(e.Permits) > 0 {
		l.waits(a, "permit", e.At)
		return
	}
	l.waits(a, carrierWord(t.node(l.Node), unit), e.At)
}

// carrierWord is what an attempt waits for before anybody is at it.
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

// granted has an attempt go on that has all its permits.
func (t *Timeline) granted(l *Lane, a *Attempt, e *flow.Event) {
	if e.Carrier == "" && e.Due == 0 {
		return
	}
	l.waitOver(a, e.At)
	l.waits(a, carrierWord(t.node(l.Node), a.Unit), e.At)
}

// waits notes that an attempt waits.
func (l *Lane) waits(a *Attempt, word string, at int64) {
	l.waitOver(a, at)
	if word == "" || len(l.Waits) >= maxWaits {
		return
	}
	l.Waits = append(l.Waits, Wait{For: word, Start: at})
	a.wait = len(l.Waits)
}

// begun notes that somebody is at an attempt. What is waited for outside has to end, too.
func (l *Lane) begun(a *Attempt, e *flow.Event) {
	elsewhere := e.Type == flow.AttemptBegun && e.Until > 0
	if !elsewhere {
		l.waitOver(a, e.At)
	}
	switch {
	case a.Begun != 0:
	case elsewhere:
		a.Begun = e.Until
	default:
		a.Begun = e.At
	}
}

func (l *Lane) waitOver(a *Attempt, at int64) {
	if a.wait > 0 {
		l.Waits[a.wait-1].End = at
		a.wait = 0
	}
}

func (l *Lane) attemptEnded(i int, e *flow.Event) {
	a := &l.attempts[i]
	l.waitOver(a, e.At)
	a.End, a.State = e.At, flow.AttemptStatus(e.Status)
	delete(l.live, e.Unit)
	if a.State != flow.AttemptOK {
		l.Failed++
	}
	if e.Due > e.At && len(l.Waits) < maxWaits {
		if l.retries == nil {
			l.retries = map[int]int{}
		}
		l.retries[e.Unit] = len(l.Waits)
		l.Waits = append(l.Waits, Wait{For: "retry", Start: e.At})
	}
}

// retried ends the wait for another attempt of a unit.
func (l *Lane) retried(unit int, at int64) {
	if i, waits := l.retries[unit]; waits {
		l.Waits[i].End = at
		delete(l.retries, unit)
	}
}
