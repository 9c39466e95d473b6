package rehearse

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// strikesTime reports whether something comes later than it would, and by how much; while draws one
// without a bound.
func (r *player) strikesTime(kind FaultKind, at string, d time.Duration, while func() int64) (time.Duration, bool) {
	if r.chance.isQuiet() {
		return 0, false
	}
	return r.chance.drawFault(kind, at, func() (time.Duration, bool) { return r.drawLateness(d, while) })
}

// drawLateness draws by how much something that would come after d is late: a little, so much that
// it comes just before, with or after something else that is to come, or a while. Unless timeouts
// may be missed it stays well within the time that is left until the next one.
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

// anyWhile draws a while, up to a day.
func (r *player) anyWhile() int64 { return r.chance.rng.Int64N(int64(10) << r.chance.rng.IntN(24)) }

// whileOfStory draws any while, or one up to the end of the undisturbed story and as far behind it:
// so results come later than all others, too.
func (r *player) whileOfStory() int64 {
	if r.Lasts > 0 && r.chance.rng.IntN(2) == 0 {
		return r.chance.rng.Int64N(2*r.Lasts.Milliseconds() + 1)
	}
	return r.anyWhile()
}

// timeToTimeout is how long it is until something is over time: the task, a wait, an attempt.
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

// overTime reports whether an alarm means that something took too long. A timer's end, or a retry,
// does not.
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

// activeStep finds an active step.
func (r *player) activeStep(a flow.Address) (found *flow.Step) {
	r.eachActive(func(st *flow.Step) {
		if st.Address() == a {
			found = st
		}
	})
	return found
}

// eachActive goes through all steps that are active, those inside others too.
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
