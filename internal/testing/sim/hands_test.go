package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
)

// TestNewSessionHoldsABroughtJobAfterItsTaskConfirms tests when the simulator considers a
// job to have two holders.
func TestNewSessionHoldsABroughtJobAfterItsTaskConfirms(t *testing.T) {
	const grace = time.Second
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	for name, c := range map[string]struct {
		away    time.Duration
		session string // session with which the worker returns
		again   bool   // its stream breaks again
		passed  bool   // its task has confirmed the move
		broken  bool   // no other worker may have the job
	}{
		"in time, to its session":                        {away: grace / 2, session: "1", broken: true},
		"in time, to a new one":                          {away: grace / 2, session: "2", broken: true},
		"too late":                                       {away: 2 * grace, session: "2"},
		"too late, and once more to the new session":     {away: 2 * grace, session: "2", again: true},
		"as its task says":                               {away: 2 * grace, session: "2", passed: true, broken: true},
		"as its task says, and once more to the session": {away: 2 * grace, session: "2", passed: true, again: true, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			st, a := withMember(t, grace)
			before, other := st.addHand("before"), st.addHand("other")
			before.comes(a, "1")
			before.held[1] = &attachedJob{Job: &attach.Job{Number: 1, Id: flow.JobID("task", at)}, sessionStream: before.sessionStream}
			before.stream.closeStream(true, false)
			st.w.advanceBy(c.away)
			before.comes(a, c.session)
			if c.passed {
				st.check.onJobMoved("task", &flow.Event{Type: flow.AttemptMoved, Node: at.Node,
					Visit: at.Visit, Attempt: at.Attempt, Worker: before.name, Carrier: a.Incarnation()})
			}
			if c.again {
				before.stream.closeStream(true, false)
				before.comes(a, c.session)
				st.w.advanceBy(2 * grace)
			}
			other.comes(a, "3")
			other.checkSoleHolder(&attachedJob{Job: &attach.Job{Number: 1, Id: flow.JobID("task", at)}, sessionStream: other.sessionStream})
			require.Equal(t, c.broken, st.w.failure != nil, "%v", st.w.failure)
		})
	}
}

// withMember returns a run with a single member that has the given grace period, and nothing else.
func withMember(t *testing.T, grace time.Duration) (*simRun, *simMember) {
	w := newWorld(1)
	t.Cleanup(w.unwindAll)
	st := newStage(w, Options{Plain: true})
	var a *simMember
	w.startCoroutine(st.outside, "operator", func() { a = st.addMember() })
	for a == nil {
		require.True(t, w.runNext())
	}
	a.grace = grace
	return st, a
}

// comes lets a member welcome a worker that was away, or is new.
func (d *attachedWorker) comes(a *simMember, session string) {
	d.stream = &workerStream{d: d, a: a, welcomed: true}
	d.handleWelcome(a, &attach.Welcome{Session: session, Resumed: d.sessionStream != nil})
}
