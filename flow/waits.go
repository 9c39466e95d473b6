package flow

import (
	"cmp"
	"math/bits"
	"slices"
)

// WaitKinds is a set of what a task waits for that is not done by a worker.
type WaitKinds uint8

// What a task may wait for. Jobs under way and retries are not among them: these go on by
// themselves.
const (
	WaitApproval WaitKinds = 1 << iota // somebody decides
	WaitEvent                          // a signal comes
	WaitTimer                          // a time comes
	WaitManual                         // somebody completes a direct unit
)

// AllWaits is every kind.
const AllWaits = WaitApproval | WaitEvent | WaitTimer | WaitManual

// waitWords are the kinds as filters and listings call them, in the order of their bits.
var waitWords = [...]string{"approval", "event", "timer", "manual"}

// WaitKindOf reads a word; 0 = there is no such kind.
func WaitKindOf(word string) WaitKinds {
	if i := slices.Index(waitWords[:], word); i >= 0 {
		return 1 << i
	}
	return 0
}

// Words are the kinds of a set.
func (k WaitKinds) Words() (words []string) {
	for i, word := range waitWords {
		if k&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return words
}

// Awaited is a step that waits, and what for.
type Awaited struct {
	Kind  string `json:"kind"`
	Scope string `json:"scope,omitempty"`
	Node  string `json:"node"`
	Visit int    `json:"visit"`
	Key   string `json:"key,omitempty"` // to signal
	Since int64  `json:"since"`
	Due   int64  `json:"due,omitempty"` // 0 = no end
}

// waitList are the steps of a task that wait. They are kept as waits begin and end, so that a step
// of another kind costs nothing.
type waitList struct {
	steps []*Step // approvals first, then events, and so on; of each kind the one that has waited longest first
	count [len(waitWords)]int
	first *Awaited // another one whenever another step is the first

	log *approvalLog // of the decision that is being made; nil = nobody wants to know
}

// Waits are the kinds of what a task waits for, and the step that tells most about it: one that
// waits for somebody's approval before others, and of those the one that has waited longest; nil =
// it waits for nothing. As long as that is the same step, it is the same value.
func (s *State) Waits() (WaitKinds, *Awaited) {
	var kinds WaitKinds
	if len(s.waits.steps) == 0 {
		return 0, nil
	}
	for i, n := range s.waits.count {
		if n > 0 {
			kinds |= 1 << i
		}
	}
	return kinds, s.waits.first
}

// waitKind is what a step waits for by its kind; 0 = nothing.
func (n *PlanNode) waitKind() WaitKinds {
	switch n.Kind {
	case KindApproval:
		return WaitApproval
	case KindWaitEvent:
		return WaitEvent
	case KindTimer:
		return WaitTimer
	}
	return 0
}

// trackManual notes that a step begins or ceases to wait for units that somebody completes.
func (s *State) trackManual(st *Step) {
	switch {
	case s.Status.Ended() || s.isDraining(): // what comes late is recorded, and nobody waits for it
	case st.manualUnits > 0 && st.waitsFor == 0:
		s.waits.addStep(st, WaitManual)
	case st.manualUnits == 0 && st.waitsFor == WaitManual:
		s.waits.removeStep(st, s.UpdatedAt)
	}
}

func (w *waitList) addStep(st *Step, kind WaitKinds) {
	st.waitsFor = kind
	i, _ := slices.BinarySearchFunc(w.steps, st, compareWaits)
	w.steps = slices.Insert(w.steps, i, st)
	w.count[bits.TrailingZeros8(uint8(kind))]++
	if i == 0 {
		w.first = st.toAwaited()
	}
	if kind == WaitApproval {
		w.log.noteOpened(st)
	}
}

func (w *waitList) removeStep(st *Step, at int64) {
	if st.waitsFor == 0 {
		return
	}
	if st.waitsFor == WaitApproval {
		w.log.noteClosed(st, at)
	}
	i, _ := slices.BinarySearchFunc(w.steps, st, compareWaits)
	w.steps = slices.Delete(w.steps, i, i+1)
	w.count[bits.TrailingZeros8(uint8(st.waitsFor))]--
	st.waitsFor = 0
	switch {
	case len(w.steps) == 0:
		w.first = nil
	case i == 0:
		w.first = w.steps[0].toAwaited()
	}
}

// endAll has nothing wait any longer.
func (w *waitList) endAll(at int64) {
	for _, st := range w.steps {
		if st.waitsFor == WaitApproval {
			w.log.noteClosed(st, at)
		}
		st.waitsFor = 0
	}
	*w = waitList{log: w.log}
}

// compareWaits orders steps by what they wait for, and since when. It depends on nothing that a
// snapshot does not keep, so that the same state tells the same step. A scope has one active visit
// of a node.
func compareWaits(a, b *Step) int {
	return cmp.Or(cmp.Compare(a.waitsFor, b.waitsFor), cmp.Compare(a.waitsSince(), b.waitsSince()), cmp.Compare(a.scope.Path, b.scope.Path), cmp.Compare(a.Key, b.Key))
}

func (st *Step) waitsSince() int64 { return max(st.EnteredAt, st.StartAt) }

func (st *Step) toAwaited() *Awaited {
	a := &Awaited{Kind: st.waitsFor.Words()[0], Scope: st.scope.Path, Node: st.Key, Visit: st.Visit, Key: st.AwaitedKey(), Since: st.waitsSince(), Due: st.Due}
	if st.waitsFor == WaitManual && len(st.Units) == 1 && st.Units[0].Live != nil {
		a.Due = st.Units[0].Live.Due
	}
	return a
}

// countManual counts the units in flight that somebody has to complete, of a step that is linked.
func (st *Step) countManual() (n int) {
	for i := range st.Units {
		if u := &st.Units[i]; u.Live != nil && st.isManual(u, i) {
			n++
		}
	}
	return n
}

// isManual reports whether an attempt in flight waits for somebody who completes it.
func (st *Step) isManual(u *Unit, i int) bool {
	return st.unitExec(i).Type == ExecDirect && !u.Live.Permits.Waits()
}
