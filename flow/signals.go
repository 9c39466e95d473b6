package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// A signal is stored until a step takes it: one that waits for its key, or one that waits for it
// later, the oldest signal first. A graph takes each signal once. In a dag, where nodes wait beside
// each other, each node takes each signal once, so what happens does not depend on which of them
// began first. Either way a step that is visited again waits for another signal. An answer ends the
// one visit that it names.
//
// A scope with profile pocketflow waits for a value instead, as the original does: whatever is in
// shared when it looks, also what ended a wait before.

// StoredSignal is a signal that steps may take, or that one has taken.
type StoredSignal struct {
	Number int // among the signals and answers of its task, from 1 on
	Key    string
	Value  json.RawMessage
	Taken  []string // the readers that it is over for
}

// MaxSignals bounds how many signals of a task are stored that no step has taken.
const MaxSignals = 1_000

// ReadWaitKey reads what a wait says that it waits for, in a scope of the mode. A key is a key of
// shared, or a path of keys into it; a reference to something else has the key as its value.
func ReadWaitKey(text string, mode Mode) (key string, reference bool, err error) {
	key, _ = strings.CutPrefix(text, sharedPrefix)
	switch {
	case text == "":
		return "", false, fmt.Errorf("is missing: write the key that a signal sets, such as decision")
	case strings.HasPrefix(key, "$") && IsControlRef(key, mode):
		return "", true, nil
	case strings.HasPrefix(key, "$"):
		return "", false, fmt.Errorf("%.80q is no reference: write the key that a signal sets, such as decision, or %s", text, keyReferences(mode))
	case strings.Contains(key, "["):
		return "", false, fmt.Errorf("%.80q is an element of a list, which no signal sets: write a key", text)
	}
	return key, false, checkWaitKey(key)
}

func keyReferences(mode Mode) string {
	if mode == ModeDag {
		return "a reference to it, such as $run.key"
	}
	return "a reference to it, such as $params.key"
}

// checkWaitKey refuses what is no key that a signal can set.
func checkWaitKey(key string) error {
	if err := checkSharedKey(key); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(key, "$"):
		return Errorf(Invalid, "key %.80q begins with $: leave that out", key)
	case strings.HasPrefix(key, "_rt."):
		return Errorf(Invalid, "key _rt belongs to the engine: choose another one")
	case slices.Contains(strings.Split(key, "."), ""):
		return Errorf(Invalid, "key %.80q has an empty part: dots stand between the keys of a path", key)
	}
	return nil
}

// waitKey returns the key that a node waits for: the one that it names, or the value of its
// reference.
func (sc *Scope) waitKey(n *PlanNode, text string, input json.RawMessage) (string, error) {
	key, reference, err := ReadWaitKey(text, sc.Plan.Mode())
	if err != nil || !reference {
		return key, err
	}
	v, _ := sc.controlRef(n, text, input)
	v = sc.openValue(v)
	key, isText := expr.String(v)
	switch {
	case !isText:
		return "", fmt.Errorf("%.80s must be the text of a key, is %s", text, describeValue(v))
	case !utf8.ValidString(key):
		return "", fmt.Errorf("%.80s is not UTF-8 text", text)
	case key == "":
		return "", fmt.Errorf("%.80s is an empty text, which is no key", text)
	}
	if err := checkWaitKey(key); err != nil {
		return "", fmt.Errorf("%.80s: %w", text, err)
	}
	return key, nil
}

// applySignal applies a signal or an answer: it sets shared, and is for the steps that wait for it,
// or stored for one that will.
func (s *State) applySignal(e *Event) {
	sc := s.Root
	if e.Scope != "" {
		sc = s.scopes[e.Scope]
	}
	if sc == nil {
		return
	}
	if first, _, _ := strings.Cut(e.Key, "."); len(e.Input) > 0 {
		sc.setShared(first, e.Input)
	} else {
		sc.setShared(e.Key, e.Output)
	}
	sc.LastAction = ""
	s.Signaled++
	sig := StoredSignal{Number: s.Signaled, Key: e.Key, Value: e.Output}
	if e.Node == "" {
		s.deliverSignal(sig)
	} else if st := s.activeStep(e.stepAddress()); st != nil && !sc.Plan.Pocketflow {
		st.Signal = &sig
	}
}

// deliverSignal stores a signal that steps may wait for, and gives it to those that do. An empty
// value takes back those that are stored.
func (s *State) deliverSignal(sig StoredSignal) {
	switch {
	case !isDecision(s.Root.openValue(sig.Value)):
		s.Signals = slices.DeleteFunc(slices.Clone(s.Signals), func(other StoredSignal) bool { return other.Key == sig.Key })
		return
	case !s.mayAwait(sig.Key):
		return
	}
	if len(s.Signals) >= MaxSignals { // there is one that was taken, or it would have been refused
		if i := slices.IndexFunc(s.Signals, func(other StoredSignal) bool { return len(other.Taken) > 0 }); i >= 0 {
			s.Signals = slices.Delete(slices.Clone(s.Signals), i, i+1)
		}
	}
	s.Signals = append(s.Signals, sig)
	for _, st := range s.waiting {
		s.takeSignal(st)
	}
}

// takeSignal gives a waiting step the oldest signal that is for it. Those before that count for
// nothing are over for it, too.
func (s *State) takeSignal(st *Step) {
	if len(s.Signals) == 0 || st.Signal != nil || st.awaitedParam() == "" || st.scope.Plan.Pocketflow {
		return
	}
	reader := st.readerKey()
	s.Signals = slices.Clone(s.Signals) // others may be reading those
	for i := range s.Signals {
		sig := &s.Signals[i]
		v, matches := st.signalValue(sig)
		if !matches || slices.Contains(sig.Taken, reader) {
			continue
		}
		sig.Taken = append(slices.Clip(sig.Taken), reader)
		if st.acceptsValue(st.scope.openValue(v)) {
			st.Signal = &StoredSignal{Number: sig.Number, Key: sig.Key, Value: v}
			break
		}
	}
	s.Signals = slices.DeleteFunc(s.Signals, s.isOver)
}

// isOver reports whether nothing in the flow can take a stored signal any more.
func (s *State) isOver(sig StoredSignal) bool {
	return len(sig.Taken) > 0 && !slices.ContainsFunc(s.awaitedKeys(), func(w awaitedKey) bool {
		return w.matchesKey(sig.Key) && !slices.Contains(sig.Taken, w.readerOf(sig.Key))
	})
}

// readerKey names what a step takes signals for: its node in the dag around it, else the whole
// task, and the key that it waits for.
func (st *Step) readerKey() string {
	for at := st; at != nil; at = at.scope.parent {
		if at.scope.Plan.Dag != nil {
			return readerOf(at.nodePath(), st.AwaitedKey())
		}
	}
	return readerOf("", st.AwaitedKey())
}

func readerOf(place, key string) string { return place + "\n" + key }

// nodePath names a step's node within the flow, whatever visit it is.
func (st *Step) nodePath() string {
	place := st.Node.Key
	for at := st.scope.parent; at != nil; at = at.scope.parent {
		place = at.Node.Key + "/" + place
	}
	return place
}

// signalValue returns what a signal means to a step that waits for its key, or for a part of its
// value.
func (st *Step) signalValue(sig *StoredSignal) (v json.RawMessage, ok bool) {
	rest, ok := partOf(st.AwaitedKey(), sig.Key)
	switch {
	case !ok:
		return nil, false
	case rest == "":
		return orNull(sig.Value), true
	}
	return orNull(expr.PathIn(sig.Value, rest, st.scope.pathOpener())), true
}

// partOf returns the path from a key to one that is awaited; false if that is another one.
func partOf(awaited, key string) (path string, ok bool) {
	path, ok = strings.CutPrefix(awaited, key)
	return path, ok && (path == "" || path[0] == '.')
}

// acceptsValue reports whether a value ends a waiting step.
func (st *Step) acceptsValue(v json.RawMessage) bool {
	if st.Node.Kind == KindApproval {
		return isDecision(v)
	}
	return isPresent(v)
}

// awaitedKey is what a node of a plan waits for.
type awaitedKey struct {
	nodePath string // of its node in a dag; "" = in a graph alone
	key      string // "" = it follows from what the task works on
}

func (w awaitedKey) matchesKey(key string) bool {
	_, ok := partOf(w.key, key)
	return ok || w.key == ""
}

// readerOf names the reader of a signal of the key.
func (w awaitedKey) readerOf(key string) string { return readerOf(w.nodePath, cmp.Or(w.key, key)) }

// mayAwait reports whether a node of the flow may wait for a signal of the key.
func (s *State) mayAwait(key string) bool {
	return slices.ContainsFunc(s.awaitedKeys(), func(w awaitedKey) bool { return w.matchesKey(key) })
}

// awaitedKeys returns what the nodes of the flow wait for, those of scopes with profile pocketflow
// apart.
func (s *State) awaitedKeys() []awaitedKey {
	if s.awaitedCache == nil {
		all := map[awaitedKey]bool{}
		collectAwaited(all, s.Plan.Root, "", "")
		collectAwaited(all, s.Plan.Closing, "", "")
		s.awaitedCache = slices.AppendSeq(make([]awaitedKey, 0, len(all)), maps.Keys(all))
	}
	return s.awaitedCache
}

// collectAwaited adds what the nodes of a scope wait for. Within is the place of the scope, and dag
// that of the node around it in the innermost dag.
func collectAwaited(all map[awaitedKey]bool, g *PlanScope, within, dag string) {
	if g == nil {
		return
	}
	for _, n := range g.Nodes {
		place, inDag := within+n.Key, dag
		if g.Dag != nil {
			inDag = place
		}
		collectAwaited(all, n.Sub, place+"/", inDag)
		param := awaitedParams[n.Kind]
		if param == "" || g.Pocketflow {
			continue
		}
		if key, _, err := ReadWaitKey(textField(n.Params, param), g.Mode()); err == nil {
			all[awaitedKey{inDag, key}] = true
		}
	}
}

// checkStored refuses a signal for which there is no room among those that no step has taken. One
// that a step waits for has room.
func (d *decider) checkStored(sig StoredSignal) error {
	if !isDecision(d.s.Root.openValue(sig.Value)) || !d.s.mayAwait(sig.Key) || slices.ContainsFunc(d.s.waiting, func(st *Step) bool { return st.awaitsKey(sig.Key) }) {
		return nil
	}
	size, count := len(sig.Value), 0
	for i := range d.s.Signals {
		size += len(d.s.Signals[i].Value)
		if len(d.s.Signals[i].Taken) == 0 {
			count++
		}
	}
	switch {
	case count >= MaxSignals:
		return Errorf(Limit, "the task has %d signals that no step has taken yet, which is the most it may have: signal it once it waits", MaxSignals)
	case size > d.limits.Shared:
		return Errorf(Limit, "the signals that steps may take would have %d bytes, more than the limit of %d: signal the task once it waits", size, d.limits.Shared)
	}
	return nil
}

// withPathSet returns what the first key of a path into shared holds once a value is set there; nil
// if the path is one key.
func (sc *Scope) withPathSet(key string, v json.RawMessage) json.RawMessage {
	first, rest, nested := strings.Cut(key, ".")
	if !nested || sc.Plan.Pocketflow {
		return nil
	}
	return sc.withNestedField(sc.Shared[first], strings.Split(rest, "."), v)
}
