package flow

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// checkOutcome rejects the end of a step if the combined value would exceed the limits, although
// each part is within them. Such a combined value is a list of outputs, the shared values of a
// subflow, or a scope's shared with one more key.
func (d *decider) checkOutcome(st *Step, how stepOutcome) error {
	if expr.Deeper(how.output, d.limits.Levels) { // the step waited for all of shared
		return d.limits.tooDeep("the value")
	}
	size, err := d.limits.checkMade(st)
	if err != nil || !how.posts {
		return err
	}
	return d.limits.checkPost(st, how, size)
}

// checkMade returns an error for a result that would be too large or too deeply nested. Otherwise
// it returns the maximum size of the result in bytes.
func (l Limits) checkMade(st *Step) (size int, err error) {
	switch {
	case st.Node.Single:
		return len(st.Units[0].Output), nil
	case st.Node.Kind == KindParallel || st.Node.Kind == KindForeach || st.Node.Kind == KindFanout:
		m := valueSize{maxLevels: l.Levels}
		for i := range st.Units {
			m.addPart("", st.Units[i].Output)
		}
		return m.bytes, l.checkParts(m, "the list of outputs")
	case st.Child != nil:
		m := st.Child.mode.outputSize(st.Child, l.Levels)
		return m.bytes, l.checkParts(m, "the result of "+st.Key)
	}
	return len(st.Input), nil
}

// checkOutputs rejects a unit's output if the list of all outputs would become too large.
func (l Limits) checkOutputs(st *Step, output json.RawMessage) error {
	if size := st.size + len(output); !st.Node.Single && size > l.Shared {
		return Errorf(Limit, "the outputs of the step's units would have %d bytes together, "+
			"more than the limit of %d; keep large data elsewhere and pass references", size, l.Shared)
	}
	return nil
}

// checkJoin rejects the result of a branch that exceeds the limits. It applies to branches whose
// nodes the compiler placed into the parent's scope.
func (l Limits) checkJoin(sc *Scope, n *PlanNode) error {
	if n.Kind != KindJoin || len(n.Dag.Sees) == 1 && n.Dag.Sees[0].Name == "" {
		return nil
	}
	return l.checkParts(sc.madeOf(n.Dag.Sees, l.Levels), "the result of "+n.Key)
}

func (l Limits) checkParts(m valueSize, what string) error {
	switch {
	case m.tooDeep:
		return l.tooDeep(what)
	case m.bytes > l.Shared:
		return Errorf(Limit, "%s has %d bytes, more than the limit of %d; keep large data "+
			"elsewhere and pass references", what, m.bytes, l.Shared)
	}
	return nil
}

// valueSize measures an array or object against the limits without building it. It does not check
// single values that are passed on unchanged, because these were checked before.
type valueSize struct {
	maxLevels int // maximum depth, counting the value itself
	bytes     int
	tooDeep   bool
}

func (m *valueSize) addPart(key string, v json.RawMessage) {
	m.bytes += len(key) + len(v)
	m.tooDeep = m.tooDeep || expr.Deeper(v, m.maxLevels-1)
}

func (sc *Scope) allShared(levels int) valueSize {
	m := valueSize{maxLevels: levels}
	for key, v := range sc.Shared {
		m.addPart(key, v)
	}
	return m
}

// checkRef rejects an input that is all of shared as one value, if that exceeds the limits. Parts
// of shared were checked before.
func (l Limits) checkRef(sc *Scope, ref string) error {
	if ref == "" || strings.Trim(strings.TrimPrefix(ref, "$shared"), ".") != "" {
		return nil
	}
	return l.checkParts(sc.allShared(l.Levels), "the input")
}

func (sc *Scope) madeOf(seen []Seen, levels int) valueSize {
	m := valueSize{maxLevels: levels}
	for _, s := range seen {
		m.addPart(s.Name, sc.Nodes[s.Index].Output)
	}
	return m
}

// checkPost rejects a result of the given size if writing it to shared would exceed the limit of
// shared.
func (l Limits) checkPost(st *Step, how stepOutcome, size int) error {
	sc, p := st.scope, &st.Node.Post
	if p.OutputKey == "" && len(p.OutputMap) == 0 {
		return nil
	}
	most := (size + len(how.output) + MaxName) * (1 + len(p.OutputMap))
	if *sc.size+most <= l.Shared {
		return nil
	}
	growth := 0
	st.eachPost(st.stepResult(&Event{Output: how.output}), func(key string, v json.RawMessage) { growth += sc.sharedGrowth(key, v) })
	if growth <= 0 || *sc.size+growth <= l.Shared {
		return nil
	}
	return l.sharedFull(*sc.size + growth)
}

func (l Limits) sharedFull(size int) error {
	return Errorf(Limit, "shared would have %d bytes, more than the limit of %d; keep large "+
		"data elsewhere and pass a reference", size, l.Shared)
}

// paramsOrEmpty returns the params of the command, or {} if there are none.
func (c Start) paramsOrEmpty() json.RawMessage {
	if expr.KindOf(c.Params) == expr.KindNull {
		return json.RawMessage("{}")
	}
	return c.Params
}

// Fit checks, before the task exists, that a plan can start with this command. It returns the
// command with defaults filled in. The params must match the inputs that the flow declares. Without
// a declaration, the input of a dag may be any JSON, but a root map needs an array.
func (c Start) Fit(p *Plan, l Limits) (Start, error) {
	if c.checked {
		return c, nil
	}
	if err := CheckJSON(c.Params); err != nil {
		return c, Errorf(Invalid, "params: %v", err)
	}
	if err := c.checkParamsKind(p); err != nil {
		return c, err
	}
	if err := l.checkValue("params", c.paramsOrEmpty()); err != nil {
		return c, err
	}
	if c.Fork != nil {
		if err := c.Fork.Fit(p, l); err != nil {
			return c, err
		}
	}
	if p.Root.Inputs != nil {
		root := &Scope{Plan: p.Root, lost: new(lostContent)}
		whole := root.expandValue(c.paramsOrEmpty())
		filled, problems := p.Root.Inputs.Check(whole)
		switch {
		case root.lost.err != nil:
			return c, root.lost.err
		case len(problems) > 0:
			return c, &BadInputs{problems}
		// an unchanged value keeps its references; filled holds their contents instead
		case len(c.Params) == 0 || !bytes.Equal(filled, whole):
			c.Params = filled
		}
	}
	c.checked = true
	return c, l.checkValue("params", c.paramsOrEmpty())
}

// checkParamsKind rejects params of a JSON type that the flow cannot use, whatever it declares.
func (c Start) checkParamsKind(p *Plan) error {
	kind := expr.KindOf((&Scope{Plan: p.Root}).openValue(c.paramsOrEmpty()))
	switch dag := p.Root.Dag; {
	case p.Profile == ProfileOrk && dag.RootMap == "" && kind != expr.KindObject && kind != expr.KindNull:
		return Errorf(Invalid, "the input must be an object, whose fields the tasks get, or null; it is %s", kind)
	case p.Root.Dag == nil && kind != expr.KindObject:
		return Errorf(Invalid, "params must be a JSON object")
	case p.Root.Mode() == ModeDag && dag.RootMap != "" && kind != expr.KindArray:
		is := "it is " + kind.String()
		if expr.KindOf(c.Params) == expr.KindNull {
			is = "there is none"
		}
		return Errorf(Invalid, "the input must be an array, because the map %s makes a unit of each of its items; %s", dag.RootMap, is)
	}
	return nil
}

// checkSharedKey rejects keys of shared that are reserved for the engine, and keys that a store
// cannot tell apart.
func checkSharedKey(key string) error {
	switch {
	case key == "":
		return Errorf(Invalid, "key is missing: name the key of shared that the signal sets")
	case key == "_rt":
		return Errorf(Invalid, "key _rt belongs to the engine: choose another one")
	case len(key) > MaxName:
		return Errorf(Invalid, "key has %d bytes, more than the limit of %d", len(key), MaxName)
	case !utf8.ValidString(key):
		return Errorf(Invalid, "key is not UTF-8 text")
	case !IsName(key) && IsText(key):
		return Errorf(Invalid, "key %.80q %s", key, NoName)
	}
	return nil
}

// checkRoom rejects a signal that would enlarge a shared that is already too large. Signals for
// keys that exist or that the task waits for are always accepted. So a signal can always continue a
// task, however large its own outputs are.
func (d *decider) checkRoom(e *Event) error {
	root, key, v := d.s.Root, e.Key, e.Output
	if len(e.Input) > 0 {
		key, _, _ = strings.Cut(key, ".")
		v = e.Input
	}
	size := *root.size + root.sharedGrowth(key, v)
	if _, there := root.Shared[key]; there || size <= d.limits.Shared {
		return nil
	}
	for _, st := range d.s.waiting {
		if st.awaitsKey(e.Key) {
			return nil
		}
	}
	return d.limits.sharedFull(size)
}

// checkRequest rejects a request id that cannot be stored.
func checkRequest(id string) error {
	if len(id) > MaxName || !utf8.ValidString(id) {
		return Errorf(Invalid, "the request's id must be UTF-8 text of at most %d bytes", MaxName)
	}
	if strings.ContainsRune(id, utf8.RuneError) {
		return Errorf(Invalid, "the request's id %.80q %s", id, NoName)
	}
	return nil
}
