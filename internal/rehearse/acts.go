package rehearse

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// scheduleActs schedules the acts with a fixed time.
func (r *player) scheduleActs() {
	for i := range r.Acts {
		a := &r.Acts[i]
		if a.Waiting != "" {
			r.waiting = append(r.waiting, a)
			continue
		}
		if a.Kind == ActRetry {
			r.retries++
		}
		r.queueAfter(r.actTime(a), func() { r.doAct(a) })
	}
	r.noticeWaiting()
}

// actTime returns the time of an act. A signal may come earlier.
func (r *player) actTime(a *Act) time.Duration {
	if r.chance.isQuiet() || a.Kind != ActSignal || a.At == 0 {
		return a.At
	}
	by, yes := r.chance.drawFault(FaultEarly, a.ID, func() (time.Duration, bool) {
		return time.Duration(1+r.chance.rng.Int64N(a.At.Milliseconds())) * time.Millisecond, true
	})
	if !yes {
		return a.At
	}
	r.recordStrike(FaultEarly, a.ID, by)
	return max(a.At-by, 0)
}

// doAct performs an act, possibly later. An act deferred until its step waits gets no lateness
// fault, because the end of that wait is not known yet.
func (r *player) doAct(a *Act) {
	if r.isTooEarly(a) {
		r.deferredActs = append(r.deferredActs, a)
		return
	}
	if by, yes := r.strikesTime(FaultLate, a.ID, 0, r.anyWhile); yes {
		r.recordStrike(FaultLate, a.ID, by)
		r.queueAfter(by, func() { r.performAct(a) })
		return
	}
	r.performAct(a)
}

func (r *player) performAct(a *Act) {
	if r.isTooEarly(a) {
		r.deferredActs = append(r.deferredActs, a)
		return
	}
	if a.Kind == ActRetry && a.Waiting == "" {
		r.retries--
	}
	done := Done{Act: a, Time: r.elapsed(), At: len(r.story.Events)}
	done.Err = r.carryAct(a)
	r.story.Done = append(r.story.Done, done)
}

// isTooEarly reports whether an answer has to be deferred because a fault has delayed its step: in
// reality people answer only waiting steps. Without faults, an early answer is a mistake of the
// test.
func (r *player) isTooEarly(a *Act) bool {
	switch a.Kind {
	case ActApprove, ActReject, ActAnswer, ActComplete, ActFail, ActAppend:
		return !r.chance.isQuiet() && !r.state.Status.Ended() && r.findWaiting(a.Target) == nil
	}
	return false
}

func (r *player) carryAct(a *Act) error {
	switch a.Kind {
	case ActSignal:
		return r.decideCommand(flow.Signal{Key: a.Target, Value: a.Value})
	case ActAnswer:
		return r.answerStep(a, a.Value)
	case ActApprove:
		return r.answerStep(a, json.RawMessage("true"))
	case ActReject:
		return r.answerStep(a, json.RawMessage("false"))
	case ActComplete:
		return r.decideCommand(flow.Report{Address: r.findTarget(a.Target).unitAddress(a.Unit), Output: a.Value, Direct: true})
	case ActFail:
		text, _ := expr.String(a.Value)
		return r.decideCommand(flow.Report{Address: r.findTarget(a.Target).unitAddress(a.Unit), Error: text, Direct: true})
	case ActAppend:
		return r.decideCommand(flow.Append{Address: r.findTarget(a.Target).unitAddress(0), Items: a.Items})
	case ActCancel, ActCancelGracefully:
		return r.cancelTask(a)
	case ActPause:
		return r.decideCommand(flow.Pause{})
	case ActResume:
		return r.decideCommand(flow.Resume{})
	}
	return r.decideCommand(flow.RetryTask{})
}

// cancelTask cancels the task. Unlike the core, it reports a cancel that is too late as an error to
// the author of the test.
func (r *player) cancelTask(a *Act) error {
	if r.state.Status.Ended() {
		return flow.Errorf(flow.Conflict, "the task has ended (%s): it cannot be canceled", r.state.Status)
	}
	return r.decideCommand(flow.Cancel{Gently: a.Kind == ActCancelGracefully})
}

// answerStep answers a waiting step: it signals the step's key, or completes the step.
func (r *player) answerStep(a *Act, v json.RawMessage) error {
	st := r.findWaiting(a.Target)
	if st == nil {
		return flow.Errorf(flow.Conflict, "nothing named %s waits for an answer", a.Target)
	}
	if st.Node.Kind != flow.KindWaitEvent && st.Node.Kind != flow.KindApproval {
		return r.decideCommand(flow.Report{Address: actTarget{step: st}.unitAddress(a.Unit), Output: v, Direct: true})
	}
	key, v := st.Placed(v)
	return r.decideCommand(flow.Signal{Key: key, Value: v})
}

// actTarget is the step of an act, or a node that is not active.
type actTarget struct {
	step *flow.Step
	node string
}

func (t actTarget) unitAddress(unit int) flow.Address {
	a := flow.Address{Node: t.node}
	if t.step != nil {
		a = t.step.Address()
		a.Visit = 0
	}
	a.Unit = unit
	return a
}

func (r *player) findTarget(node string) actTarget {
	return actTarget{r.findWaiting(node), node}
}

// findWaiting finds an active step by its path, or by the key for which it waits.
func (r *player) findWaiting(name string) (found *flow.Step) {
	r.eachActive(func(st *flow.Step) {
		if found == nil && (st.Address().Step() == name || awaitedKey(st) == name) {
			found = st
		}
	})
	return found
}

// awaitedKey returns the key for which a step waits; "" if none.
func awaitedKey(st *flow.Step) string {
	if st.Node.Kind == flow.KindWaitEvent || st.Node.Kind == flow.KindApproval {
		return st.AwaitedKey()
	}
	return ""
}

// noticeWaiting finds steps that have begun to wait and schedules the acts for them.
func (r *player) noticeWaiting() {
	r.performDeferred()
	if len(r.waiting) == 0 {
		return
	}
	r.eachActive(func(st *flow.Step) {
		at := st.Address()
		if r.seen[at] {
			return
		}
		r.seen[at] = true
		names := []string{at.Step(), awaitedKey(st)}
		// a step that waits for a key equal to its name counts once
		for _, name := range slices.Compact(names) {
			if a := r.nextAct(name); a != nil {
				r.queueAfter(a.At, func() { r.doAct(a) })
			}
		}
	})
}

// performDeferred performs the deferred acts of steps that wait now.
func (r *player) performDeferred() {
	for i := 0; i < len(r.deferredActs); i++ {
		if a := r.deferredActs[i]; r.findWaiting(a.Target) != nil {
			r.deferredActs = slices.Delete(r.deferredActs, i, i+1)
			i--
			r.queueAfter(0, func() { r.performAct(a) })
		}
	}
}

// nextAct returns the act for the next wait of that name.
func (r *player) nextAct(name string) (next *Act) {
	if name == "" {
		return nil
	}
	for _, a := range r.waiting {
		if a.Waiting == name && a.Nth <= r.answered[name] && (next == nil || a.Nth > next.Nth) {
			next = a
		}
	}
	if next != nil {
		r.answered[name]++
	}
	return next
}
