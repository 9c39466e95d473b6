package rehearse

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// strikesTime reports whether something is delayed, and by how much. The function while draws a
// delay without bound.
func (r *player) strikesTime(kind FaultKind, at string, d time.Duration, while func() int64) (time.Duration, bool) {
	if r.chance.isQuiet() {
		return 0, false
	}
	return r.chance.drawFault(kind, at, func() (time.Duration, bool) { return r.drawLateness(d, while) })
}

// drawLateness draws the delay of something that would come after d: a little, just before, with or
// after another pending item, or arbitrary. Unless timeouts are allowed, it stays well within the
// time to the next timeout.
func (r *player) drawLateness(d time.Duration, while func() int64) (time.Duration, bool) {
	rng := r.chance.rng
	var ms int64
	switch n := rng.IntN(5); {
	case n == 0:
		ms = 1 + rng.Int64N(20)
	case n < 3 && len(r.queue) > 0:
		other := r.queue[rng.IntN(len(r.queue))].at - r.env.Now
		ms = other - d.Milliseconds() + rng.Int64N(3) - 1
	default:
		ms = while()
	}
	by := flow.Milliseconds(max(ms, 1))
	if r.chance.kinds.Timeouts {
		return by, true
	}
	return by, by < (r.timeToTimeout()-d)/4
}

// anyWhile draws a delay of up to a day.
func (r *player) anyWhile() int64 { return r.chance.rng.Int64N(int64(10) << r.chance.rng.IntN(24)) }

// whileOfStory draws any delay, or a delay up to twice the length of the undisturbed story, so that
// some results come later than all others.
func (r *player) whileOfStory() int64 {
	if r.Lasts > 0 && r.chance.rng.IntN(2) == 0 {
		return r.chance.rng.Int64N(2*r.Lasts.Milliseconds() + 1)
	}
	return r.anyWhile()
}

// timeToTimeout returns the time to the next timeout of the task, a wait or an attempt.
func (r *player) timeToTimeout() time.Duration {
	if r.chance.kinds.Timeouts {
		return flow.Milliseconds(flow.MaxDelay)
	}
	first := int64(flow.MaxDelay)
	for i := range r.queue {
		a := r.queue[i].alarm
		if a != nil && r.overTime(a) && r.state.Awaits(*a) {
			first = min(first, a.At-r.env.Now)
		}
	}
	return flow.Milliseconds(first)
}

// overTime reports whether an alarm is a timeout. The end of a timer and a retry are not.
func (r *player) overTime(a *flow.Alarm) bool {
	switch a.Kind {
	case flow.AlarmTask, flow.AlarmAttempt, flow.AlarmUnclaimed:
		return true
	case flow.AlarmStep:
		st := r.activeStep(a.Address)
		return st != nil && st.Node.Kind != flow.KindTimer
	}
	return false
}

// activeStep returns the active step with an address.
func (r *player) activeStep(a flow.Address) (found *flow.Step) {
	r.eachActive(func(st *flow.Step) {
		if st.Address() == a {
			found = st
		}
	})
	return found
}

// eachActive calls f for all active steps, including steps of inner scopes.
func (r *player) eachActive(f func(*flow.Step)) {
	if !r.state.Status.Ended() {
		eachBelow(r.state.Active(), f)
	}
}

func eachBelow(steps []*flow.Step, f func(*flow.Step)) {
	for _, st := range steps {
		f(st)
		if st.Child != nil {
			eachBelow(st.Child.Active(), f)
		}
	}
}
