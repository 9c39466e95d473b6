package rehearse

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// expect puts what happens from outside on the timeline.
func (r *player) expect() {
	for i := range r.Acts {
		a := &r.Acts[i]
		if a.Waiting != "" {
			r.waiting = append(r.waiting, a)
			continue
		}
		if a.Kind == ActRetry {
			r.retries++
		}
		r.after(r.early(a), func() { r.act(a) })
	}
	r.notice()
}

// early is when an act is done. A signal may come before its time.
func (r *player) early(a *Act) time.Duration {
	if r.chance.quiet() || a.Kind != ActSignal || a.At == 0 {
		return a.At
	}
	by, yes := r.chance.strikes(FaultEarly, a.ID, func() (time.Duration, bool) {
		return time.Duration(1+r.chance.rng.Int64N(a.At.Milliseconds())) * time.Millisecond, true
	})
	if !yes {
		return a.At
	}
	r.struck(FaultEarly, a.ID, by)
	return max(a.At-by, 0)
}

// act does it, perhaps later. What is done as soon as somebody waits for it is not late: when that one's time will be over is not known yet.
func (r *player) act(a *Act) {
	if r.tooEarly(a) {
		r.patient = append(r.patient, a)
		return
	}
	if by, yes := r.strikesTime(FaultLate, a.ID, 0, r.anyWhile); yes {
		r.struck(FaultLate, a.ID, by)
		r.after(by, func() { r.perform(a) })
		return
	}
	r.perform(a)
}

func (r *player) perform(a *Act) {
	if r.tooEarly(a) {
		r.patient = append(r.patient, a)
		return
	}
	if a.Kind == ActRetry && a.Waiting == "" {
		r.retries--
	}
	done := Done{Act: a, Time: r.now(), At: len(r.story.Events)}
	done.Err = r.carryAct(a)
	r.story.Done = append(r.story.Done, done)
}

// tooEarly says whether nobody waits yet for somebody's answer, because something is late: people answer when they are asked. Where nothing goes
// wrong it is a mistake of the test.
func (r *player) tooEarly(a *Act) bool {
	switch a.Kind {
	case ActApprove, ActReject, ActAnswer, ActComplete, ActFail, ActAppend:
		return !r.chance.quiet() && !r.state.Status.Ended() && r.waits(a.Target) == nil
	}
	return false
}

func (r *player) carryAct(a *Act) error {
	switch a.Kind {
	case ActSignal:
		return r.do(flow.Signal{Key: a.Target, Value: a.Value})
	case ActAnswer:
		return r.reply(a, a.Value)
	case ActApprove:
		return r.reply(a, json.RawMessage("true"))
	case ActReject:
		return r.reply(a, json.RawMessage("false"))
	case ActComplete:
		return r.do(flow.Report{Address: r.find(a.Target).at(a.Unit), Output: a.Value, Direct: true})
	case ActFail:
		text, _ := expr.String(a.Value)
		return r.do(flow.Report{Address: r.find(a.Target).at(a.Unit), Error: text, Direct: true})
	case ActAppend:
		return r.do(flow.Append{Address: r.find(a.Target).at(0), Items: a.Items})
	case ActCancel, ActCancelGently:
		return r.cancel(a)
	case ActPause:
		return r.do(flow.Pause{})
	case ActResume:
		return r.do(flow.Resume{})
	}
	return r.do(flow.RetryTask{})
}

// cancel tells whoever writes a test that it came too late, which the core does not.
func (r *player) cancel(a *Act) error {
	if r.state.Status.Ended() {
		return flow.Errorf(flow.Conflict, "the task has ended (%s): it cannot be canceled", r.state.Status)
	}
	return r.do(flow.Cancel{Gently: a.Kind == ActCancelGently})
}

// reply gives a step what it waits for: it signals its key, or completes it.
func (r *player) reply(a *Act, v json.RawMessage) error {
	st := r.waits(a.Target)
	if st == nil {
		return flow.Errorf(flow.Conflict, "nothing named %s waits for an answer", a.Target)
	}
	if st.Node.Kind != flow.KindWaitEvent && st.Node.Kind != flow.KindApproval {
		return r.do(flow.Report{Address: target{step: st}.at(a.Unit), Output: v, Direct: true})
	}
	key, v := st.Placed(v)
	return r.do(flow.Signal{Key: key, Value: v})
}

// target is a step that an act is about, or a node that is not active.
type target struct {
	step *flow.Step
	node string
}

func (t target) at(unit int) flow.Address {
	a := flow.Address{Node: t.node}
	if t.step != nil {
		a = t.step.Address()
		a.Visit = 0
	}
	a.Unit = unit
	return a
}

func (r *player) find(node string) target {
	return target{r.waits(node), node}
}

// waits finds an active step by its path, or by the key that it waits for.
func (r *player) waits(name string) (found *flow.Step) {
	r.eachActive(func(st *flow.Step) {
		if found == nil && (st.Address().Step() == name || awaits(st) == name) {
			found = st
		}
	})
	return found
}

// awaits is the key that a step waits for, "" if it waits for none.
func awaits(st *flow.Step) string {
	if st.Node.Kind == flow.KindWaitEvent || st.Node.Kind == flow.KindApproval {
		return st.AwaitedKey()
	}
	return ""
}

// notice finds steps that have begun to wait, and who has something to do then.
func (r *player) notice() {
	r.remind()
	if len(r.waiting) == 0 {
		return
	}
	r.eachActive(func(st *flow.Step) {
		at := st.Address()
		if r.seen[at] {
			return
		}
		r.seen[at] = true
		names := []string{at.Step(), awaits(st)}
		for _, name := range slices.Compact(names) { // a step that waits for a key of its own name waits once
			if a := r.next(name); a != nil {
				r.after(a.At, func() { r.act(a) })
			}
		}
	})
}

// remind has those answer who came too early, as soon as somebody waits for them.
func (r *player) remind() {
	for i := 0; i < len(r.patient); i++ {
		if a := r.patient[i]; r.waits(a.Target) != nil {
			r.patient = slices.Delete(r.patient, i, i+1)
			i--
			r.after(0, func() { r.perform(a) })
		}
	}
}

// next is what is done when that waits the next time.
func (r *player) next(name string) (next *Act) {
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
