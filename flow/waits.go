package flow

import (
	"cmp"
	"math/bits"
	"slices"
)

// WaitKinds is a set of things that a task may wait for, other than work.
type WaitKinds uint8

// Values of WaitKinds. Jobs in flight and retries are not included, because these proceed without a
// person or a signal.
const (
	WaitApproval WaitKinds = 1 << iota // a person's decision
	WaitSignal                         // a signal
	WaitTimer                          // a time
	WaitManual                         // the completion of a direct unit
)

// AllWaits contains every kind.
const AllWaits = WaitApproval | WaitSignal | WaitTimer | WaitManual

// waitWords are the names of the kinds in filters and listings, in the order of their bits.
var waitWords = [...]string{"approval", "signal", "timer", "manual"}

// WaitKindOf returns the kind with a name; 0 if there is none.
func WaitKindOf(word string) WaitKinds {
	if i := slices.Index(waitWords[:], word); i >= 0 {
		return 1 << i
	}
	return 0
}

// Words returns the names of the kinds in a set.
func (k WaitKinds) Words() (words []string) {
	for i, word := range waitWords {
		if k&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return words
}

// Awaited describes a waiting step.
type Awaited struct {
	Kind  string `json:"kind"`
	Scope string `json:"scope,omitempty"`
	Node  string `json:"node"`
	Visit int    `json:"visit"`
	Key   string `json:"key,omitempty"` // key to signal
	Since int64  `json:"since"`
	Due   int64  `json:"due,omitempty"` // 0 if there is no deadline
}

// waitList holds the waiting steps of a task. It changes only when waits begin and end, so other
// steps cost nothing.
type waitList struct {
	steps []*Step // ordered by kind (approvals first), then by the start of the wait
	count [len(waitWords)]int32
	first *Awaited // a new value whenever another step becomes the first

	log *approvalLog // log of the current decision; nil if none is needed
}

// Waits returns the kinds of waits of a task, and its most important waiting step: approvals come
// first, then the longest wait. The step is nil if none waits. The pointer changes only if another
// step becomes the most important one.
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

// waitKind returns the kind of wait of a node; 0 if none.
func (n *PlanNode) waitKind() WaitKinds {
	switch n.Kind {
	case KindApproval:
		return WaitApproval
	case KindWaitEvent:
		return WaitSignal
	case KindTimer:
		if n.Exec.Type == ExecCode {
			return 0 // a pause between tries, which proceeds by itself
		}
		return WaitTimer
	}
	return 0
}

// trackManual updates whether the step is in the list of waits, because of units that are completed
// by hand.
func (s evolveState) trackManual(st *Step) {
	switch {
	// late results are recorded, but the task does not wait for them
	case s.Status.Ended() || s.isDraining():
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

// endAll ends all waits.
func (w *waitList) endAll(at int64) {
	for _, st := range w.steps {
		if st.waitsFor == WaitApproval {
			w.log.noteClosed(st, at)
		}
		st.waitsFor = 0
	}
	*w = waitList{log: w.log}
}

// compareWaits orders steps by the kind and start of their wait. It only uses data that a snapshot
// holds, so that equal states have the same order. A node has at most one active visit in a scope.
func compareWaits(a, b *Step) int {
	return cmp.Or(cmp.Compare(a.waitsFor, b.waitsFor), cmp.Compare(a.waitsSince(), b.waitsSince()),
		cmp.Compare(a.scope.Path, b.scope.Path), cmp.Compare(a.Key, b.Key))
}

func (st *Step) waitsSince() int64 { return max(st.EnteredAt, st.StartAt) }

func (st *Step) toAwaited() *Awaited {
	a := &Awaited{Kind: st.waitsFor.Words()[0], Scope: st.scope.Path, Node: st.Key, Visit: st.Visit,
		Key: st.AwaitedKey(), Since: st.waitsSince(), Due: st.Due}
	if st.waitsFor == WaitManual && len(st.Units) == 1 && st.Units[0].Live != nil {
		a.Due = st.Units[0].Live.Due
	}
	return a
}

// countManual returns the number of units in flight that are completed by hand. The step must be
// linked.
func (st *Step) countManual() (n int) {
	for i := range st.Units {
		if u := &st.Units[i]; u.Live != nil && st.isManual(u, i) {
			n++
		}
	}
	return n
}

// isManual reports whether an attempt in flight is completed by hand.
func (st *Step) isManual(u *Unit, i int) bool {
	return st.unitExec(i).Type == ExecDirect && !u.Live.Permits.Waits()
}
