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

// A signal is stored until a step consumes it. That step waits for the key of the signal already,
// or will wait for it later. The oldest signal is consumed first.
//
// A graph consumes each signal once. In a dag, where nodes wait in parallel, each node consumes
// each signal once, so the result does not depend on which node began first. In both modes a step
// that is visited again waits for another signal. An answer ends only the visit that it names.
//
// A scope with the pocketflow profile waits for a value instead, as PocketFlow does. Any value that
// is present in shared counts, even a value that has ended an earlier wait.

// StoredSignal is a signal that steps may consume, or that a step has consumed.
type StoredSignal struct {
	Number int // number among the signals and answers of the task, from 1
	Key    string
	Value  json.RawMessage
	Taken  []string // readers that have consumed the signal or passed over it
}

// MaxSignals is the maximum number of stored signals of a task that no step has consumed.
const MaxSignals = 1_000

// ReadWaitKey parses the key param of a wait, in a scope of the given mode. A key is a key of
// shared, or a path of keys into it. If reference is true, the key is the value of the reference.
func ReadWaitKey(text string, mode Mode) (key string, reference bool, err error) {
	key, _ = strings.CutPrefix(text, sharedPrefix)
	switch {
	case text == "":
		return "", false, fmt.Errorf("is missing: write the key that a signal sets, such as decision")
	case strings.HasPrefix(key, "$") && IsControlRef(key, mode):
		return "", true, nil
	case strings.HasPrefix(key, "$"):
		return "", false, fmt.Errorf("%.80q is no reference: write the key that a signal sets, "+
			"such as decision, or %s", text, keyReferences(mode))
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

// checkWaitKey rejects a key that no signal can set.
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

// waitKey returns the key that a node waits for: the key in its definition, or the value of its
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

// applySignal applies a signal or an answer. It sets shared, and gives the signal to the waiting
// steps or stores it for later steps.
func (s evolveState) applySignal(e *Event) {
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

// deliverSignal stores a signal that steps may wait for, and gives it to the waiting steps. An
// empty value removes the stored signals of its key.
func (s evolveState) deliverSignal(sig StoredSignal) {
	switch {
	case !isDecision(s.Root.openValue(sig.Value)):
		s.Signals = slices.DeleteFunc(slices.Clone(s.Signals), func(other StoredSignal) bool { return other.Key == sig.Key })
		return
	case !s.awaitPart().mayAwait(sig.Key):
		return
	}
	// MaxSignals rejects new signals while none is consumed, so a consumed signal must exist
	if len(s.Signals) >= MaxSignals {
		if i := slices.IndexFunc(s.Signals, func(other StoredSignal) bool { return len(other.Taken) > 0 }); i >= 0 {
			s.Signals = slices.Delete(slices.Clone(s.Signals), i, i+1)
		}
	}
	s.Signals = append(s.Signals, sig)
	for _, st := range s.waiting {
		s.takeSignal(st)
	}
}

// takeSignal gives a waiting step the oldest signal that the step accepts. Earlier signals that the
// step does not accept are passed over for good.
func (s evolveState) takeSignal(st *Step) {
	if len(s.Signals) == 0 || st.Signal != nil || st.awaitedParam() == "" || st.scope.Plan.Pocketflow {
		return
	}
	reader := st.readerKey()
	s.Signals = slices.Clone(s.Signals) // readers may hold the old slice
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
	s.Signals = slices.DeleteFunc(s.Signals, s.awaitPart().isOver)
}

// isOver reports whether no node of the flow can consume a stored signal any more.
func (s awaitState) isOver(sig StoredSignal) bool {
	return len(sig.Taken) > 0 && !slices.ContainsFunc(s.awaitedKeys(), func(w awaitedKey) bool {
		return w.matchesKey(sig.Key) && !slices.Contains(sig.Taken, w.readerOf(sig.Key))
	})
}

// readerKey identifies the consumer of a step's signals. It consists of its node in the innermost
// dag (or the whole task) and the awaited key.
func (st *Step) readerKey() string {
	for at := st; at != nil; at = at.scope.parent {
		if at.scope.Plan.Dag != nil {
			return readerOf(at.nodePath(), st.AwaitedKey())
		}
	}
	return readerOf("", st.AwaitedKey())
}

func readerOf(place, key string) string { return place + "\n" + key }

// nodePath returns the path of a step's node in the flow, without visits.
func (st *Step) nodePath() string {
	place := st.Node.Key
	for at := st.scope.parent; at != nil; at = at.scope.parent {
		place = at.Node.Key + "/" + place
	}
	return place
}

// signalValue returns the value of a signal for a step that waits for its key or for a part of its
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

// partOf returns the path from a key to an awaited key. It returns false if the awaited key is not
// below the key.
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

// awaitedKey is a key that a node of a plan waits for.
type awaitedKey struct {
	nodePath string // path of the node in a dag; "" if only graphs surround the node
	key      string // "" if the key depends on the input of the task
}

func (w awaitedKey) matchesKey(key string) bool {
	_, ok := partOf(w.key, key)
	return ok || w.key == ""
}

// readerOf returns the consumer of a signal of the key.
func (w awaitedKey) readerOf(key string) string { return readerOf(w.nodePath, cmp.Or(w.key, key)) }

// mayAwait reports whether a node of the flow may wait for a signal of the key.
func (s awaitState) mayAwait(key string) bool {
	return slices.ContainsFunc(s.awaitedKeys(), func(w awaitedKey) bool { return w.matchesKey(key) })
}

// awaitedKeys returns the keys that the nodes of the flow wait for, except in scopes with the
// pocketflow profile.
func (s awaitState) awaitedKeys() []awaitedKey {
	if s.awaited == nil {
		all := map[awaitedKey]bool{}
		collectAwaited(all, s.Plan.Root, "", "")
		collectAwaited(all, s.Plan.Closing, "", "")
		keys := slices.AppendSeq(make([]awaitedKey, 0, len(all)), maps.Keys(all))
		s.awaited = &keys
	}
	return *s.awaited
}

// collectAwaited adds the keys that the nodes of a scope wait for. within is the path of the scope,
// and dag that of the surrounding node in the innermost dag.
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
		if g.Code {
			all[awaitedKey{inDag, ""}] = true // a function may ask for any key
		}
		param := awaitedParams[n.Kind]
		if param == "" || g.Pocketflow {
			continue
		}
		if key, _, err := ReadWaitKey(textField(n.Params, param), g.Mode()); err == nil {
			all[awaitedKey{inDag, key}] = true
		}
	}
}

// checkStored rejects a signal if too many unconsumed signals are stored. A signal that a step
// waits for is always accepted.
func (d signalDecider) checkStored(sig StoredSignal) error {
	if !isDecision(d.s.Root.openValue(sig.Value)) || !d.s.awaitPart().mayAwait(sig.Key) ||
		slices.ContainsFunc(d.s.waiting, func(st *Step) bool { return st.awaitsKey(sig.Key) }) {
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
		return Errorf(Limit, "the task has %d signals that no step has taken yet, which is the "+
			"most it may have: signal it once it waits", MaxSignals)
	case size > d.limits.Shared:
		return Errorf(Limit, "the signals that steps may take would have %d bytes, more than "+
			"the limit of %d: signal the task once it waits", size, d.limits.Shared)
	}
	return nil
}

// withPathSet returns the new value of the first key of a path into shared after the path was set
// to v. It returns nil if the path is a single key.
func (sc *Scope) withPathSet(key string, v json.RawMessage) json.RawMessage {
	first, rest, nested := strings.Cut(key, ".")
	if !nested || sc.Plan.Pocketflow {
		return nil
	}
	return sc.withNestedField(sc.Shared[first], strings.Split(rest, "."), v)
}
