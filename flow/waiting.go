package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Wait describes a wait of a task. The text says what ends the wait.
type Wait struct {
	Address
	// For is one of job, claim, manual, external, retry, timer, signal, approval, delay, resume,
	// permit, code.
	For  string
	Text string
	Key  string // key of a permit

	// Set for a job that a worker has to poll for:
	Service string
	Labels  []string
	Since   int64
	Until   int64 // 0 if unlimited
}

// Waiting returns the waits of a task. For a step with many units it returns the waits of the first
// ones.
func Waiting(s *State) []Wait {
	if s.Status.Ended() || s.Root == nil {
		return nil
	}
	var waits []Wait
	if s.Paused() {
		waits = append(waits, Wait{For: "resume", Text: "the task is paused: resume it", Since: s.PausedAt})
	}
	if s.Permits.Waits() {
		waits = append(waits, s.Permits.describeWait(s.owedPart().holderAddress()))
	}
	waits = s.actingScope().appendWaits(waits, s.CancelAt == 0)
	if s.isDraining() {
		waits = slices.DeleteFunc(waits, func(w Wait) bool { return !w.isUnderWay() })
	}
	if !s.Paused() {
		return waits
	}
	stopped := map[Address]bool{}
	s.evolvePart().eachClock(func(c pausableClock) {
		if *c.remaining > 0 {
			stopped[c.alarm.Address] = true
		}
	})
	for i := range waits {
		if w := &waits[i]; stopped[w.Address] {
			w.Text += "; its timeout stands still while the task is paused"
		}
	}
	return waits
}

// isUnderWay reports whether the wait is for work that has begun. A gently canceled task still
// waits for such work.
func (w *Wait) isUnderWay() bool { return w.For == "job" || w.For == "claim" || w.For == WaitsExternal }

// appendWaits adds the waits of a scope. goesOn is set if further nodes may begin.
func (sc *Scope) appendWaits(waits []Wait, goesOn bool) []Wait {
	active := sc.Active()
	if len(active) == 0 && sc.EnterAt > 0 {
		return append(waits, Wait{Address: Address{Scope: sc.Path, Node: sc.Cursor}, For: "delay",
			Text: "the node failed and is retried", Until: sc.EnterAt})
	}
	for i, st := range active {
		if i > 0 && len(waits) >= maxNamedWaits {
			break
		}
		waits = append(waits, st.describeWaits()...)
		if st.Child != nil {
			waits = st.Child.appendWaits(waits, goesOn)
		}
	}
	if goesOn {
		waits = sc.appendHeld(waits)
	}
	return waits
}

// appendHeld adds the nodes that are ready but held.
func (sc *Scope) appendHeld(waits []Wait) []Wait {
	for i, named := 0, 0; i < len(sc.Nodes) && named < maxNamedWaits; i++ {
		if n := &sc.Nodes[i]; n.Held && n.Status() == "" && n.Waits == 0 && !n.Doomed {
			waits = append(waits, Wait{Address: Address{Scope: sc.Path,
				Node: sc.Plan.Dag.List[i].Key}, For: "resume", Text: "the step is held: release it"})
			named++
		}
	}
	return waits
}

// maxNamedWaits is the maximum number of waits of one step in an answer.
const maxNamedWaits = 20

func (st *Step) describeWaits() []Wait {
	w := Wait{Address: st.Address(), Since: st.EnteredAt, Until: st.Due}
	switch st.Node.Kind {
	case KindTimer:
		w.For, w.Text = "timer", "the timer has not ended"
		if p := st.waitOf(); p.Wait == CodeRetry {
			w.For, w.Text = "retry", fmt.Sprintf("attempt %d failed (%.200s) and is retried", p.Tries, p.Error)
		}
		return []Wait{w}
	case KindWaitEvent:
		w.For, w.Text = "signal", "a signal must set "+st.whatToSignal()
		return []Wait{w}
	case KindApproval:
		w.For, w.Text = "approval", "a person must answer: signal "+st.whatToSignal()
		return []Wait{w}
	}
	if st.StartAt > 0 && st.Next == 0 {
		w.For, w.Text, w.Until = "delay", "its start is delayed", st.StartAt
		return []Wait{w}
	}
	var waits []Wait
	for i := 0; i < len(st.Units) && len(waits) < maxNamedWaits; i++ {
		if w, ok := st.unitWait(i); ok {
			waits = append(waits, w)
		}
	}
	return waits
}

// whatToSignal returns the key to signal, for a text. With the pocketflow profile a signal cannot
// set a path, so the text asks for an object with that path.
func (st *Step) whatToSignal() string {
	key := st.AwaitedKey()
	if first, path, nested := strings.Cut(key, "."); nested && st.scope.Plan.Pocketflow && !strings.HasPrefix(key, "$") {
		return first + ", an object in which " + path + " is set"
	}
	return key
}

// AwaitedKey returns the key that a step waits for.
func (st *Step) AwaitedKey() string {
	return strings.TrimPrefix(textField(st.Params, st.awaitedParam()), "$shared.")
}

// awaitedParam returns the name of the param with the key that a step waits for.
func (st *Step) awaitedParam() string { return awaitedParams[st.Node.Kind] }

var awaitedParams = map[Kind]string{KindWaitEvent: paramSignal, KindApproval: paramApproval}

// awaitsKey reports whether a step waits for a key of shared, or for a value inside it.
func (st *Step) awaitsKey(key string) bool {
	rest, ok := strings.CutPrefix(st.AwaitedKey(), key)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (st *Step) unitWait(i int) (Wait, bool) {
	u := &st.Units[i]
	w := Wait{Address: st.Address()}
	w.Unit, w.Attempt = i, int(u.Attempt)
	switch {
	case u.RetryAt > 0:
		w.For, w.Text, w.Until = "retry", fmt.Sprintf("attempt %d failed (%.200s) and is retried", u.Attempt, u.Error.Text), u.RetryAt
	case u.Live == nil:
		return Wait{}, false
	case u.Live.Permits.Waits():
		return u.Live.Permits.describeWait(w.Address), true
	case u.Live.Held == HeldWaiting:
		return Wait{}, false // waits inside belong to steps of their own
	case u.Live.Held != "":
		w.For, w.Text = "code", u.Live.Held
	case u.Live.Outside != nil:
		w.Until = u.Live.Due
		return u.Live.Outside.describeWait(w, u.Live.Heard), true
	case u.Live.Worker != "":
		w.For, w.Text, w.Until = "claim", fmt.Sprintf("worker %s has the job", u.Live.Worker), u.Live.Until
	case st.unitExec(i).Type == ExecDirect:
		w.For, w.Text, w.Until = "manual", "a request must complete it", u.Live.Due
	case st.unitExec(i).Type == ExecQueue:
		w.Service, w.Labels = st.unitExec(i).Service, st.unitExec(i).Labels
		w.For, w.Text, w.Until = "job", fmt.Sprintf("a worker must poll for service %s%s", w.Service, withLabels(w.Labels)), u.Live.Due
	default:
		w.For, w.Text, w.Until = "job", st.unitExec(i).underWay(), u.Live.Due
	}
	w.Since = u.Live.Since()
	return w, true
}

// underWay returns a text that describes a job that a member carries out.
func (e *Exec) underWay() string {
	if name := cmp.Or(e.Service, e.Func); name != "" {
		return fmt.Sprintf("a %s job of service %s is running", e.Type, name)
	}
	return fmt.Sprintf("a %s job is running", e.Type) // a script may have no name
}

func withLabels(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return " with the labels " + strings.Join(labels, ", ")
}

// Since returns the start of the attempt; 0 for nil.
func (l *Live) Since() int64 {
	if l == nil {
		return 0
	}
	return l.StartedAt
}

// Idle reports whether a task only waits, so that it can be unloaded and kept as a row in the
// store. due is the time when the task must be loaded again; 0 means that only a message needs it.
// A job that a member carries keeps its task loaded.
func Idle(s *State) (due int64, ok bool) {
	if s.Status != "" && !s.Status.Ended() && s.actingScope().hasCarriedJob() {
		return 0, false // a shortcut for most tasks, which avoids building their jobs
	}
	due, _ = firstAlarm(Outstanding(s))
	return due, true
}

// Parked reports whether a task may wait for long: for a time, a signal, a decision or a manual
// completion only. due is as for Idle. A parked task has no jobs and requests no permits. A task is
// not parked if its steps have scopes or units inside, or if very many steps wait.
func Parked(s *State) (due int64, ok bool) {
	if s.Status == "" || s.Status.Ended() {
		return 0, false
	}
	if sc := s.actingScope(); sc.mode.isBusy(sc, true) || !sc.fewPlain() {
		return 0, false
	}
	due, others := firstAlarm(Outstanding(s))
	return due, !others
}

// maxParkedWaits is the maximum number of waiting steps of a dag in a parked task, because all of
// them are checked with every row.
const maxParkedWaits = 64

// fewPlain reports whether few steps of a scope are active, and none of them has units or a scope
// of its own.
func (sc *Scope) fewPlain() bool {
	composite := func(st *Step) bool { return st.Node.isComposite() }
	if sc.Step != nil {
		return !composite(sc.Step)
	}
	return sc.dag == nil || len(sc.dag.active) <= maxParkedWaits && !slices.ContainsFunc(sc.dag.active, composite)
}

// firstAlarm returns the time of the first alarm (0 if there is none), and whether there are
// effects other than alarms.
func firstAlarm(effects []Effect) (at int64, others bool) {
	for _, e := range effects {
		alarm, ok := e.(Alarm)
		others = others || !ok
		if ok && alarm.At > 0 && (at == 0 || alarm.At < at) {
			at = alarm.At
		}
	}
	return at, others
}

// hasCarriedJob reports whether a scope, or a scope inside, has a job for a member.
func (sc *Scope) hasCarriedJob() bool {
	for _, st := range sc.Active() {
		if st.Child != nil && st.Child.hasCarriedJob() {
			return true
		}
		for i := 0; st.Flying > 0 && i < st.Next; i++ {
			if u := &st.Units[i]; u.Live != nil && (isHeldHere(u.Live.Held) || st.isDispatched(i)) && st.unitExec(i).Type != ExecQueue {
				return true
			}
		}
	}
	return false
}
